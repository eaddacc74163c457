//! The exec driver's command for a host: one for an operation that reboots or freezes its host, run after the commands
//! of its VMs and before their events end.
//!
//! ```text
//! Pending ──every part is ready or has ended──▶ Run ──done──▶ every scope gets Command::HostDone, and the parts end
//! ```
//!
//! A part is *ready* when the commands of its VMs are done; its event stays Started. That does not change again, so the
//! command begins without a lock on the scopes. Once begun, it goes on even if all parts end because their VMs are
//! removed. Attempts, fence and takeover are those of [`crate::exec`]. A command
//! that has failed leaves the events Started until an operator retries it or completes the operation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::cause::Cause;
use crate::event::DriverKind;
use crate::exec::{CommandChange, CommandState, Ending, ExecRun, REASON_BYTES_MAX, state_after};
use crate::fact::{Fact, HostCommandFact, Recorded};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::settings::ExecSettings;

/// The state of a host's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCommand {
    /// Some parts are not ready.
    Pending,
    /// The run has a single command.
    Run(ExecRun),
}

/// Inputs of a change that it does not decide itself.
#[derive(Clone, Copy, Debug)]
pub struct HostCommandContext<'a> {
    pub now: Timestamp,
    pub settings: &'a ExecSettings,
    /// The process that runs commands.
    pub runner: &'a str,
}

/// The report of an ended command of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRan {
    /// The fence it was spawned with.
    pub fence: u64,
    /// The attempt it was spawned as.
    pub attempt: u32,
    pub ending: Ending,
}

impl HostCommand {
    /// The initial state, if the operation has such a command.
    pub fn new(
        host: Option<&str>,
        cause: Cause,
        driver: DriverKind,
        settings: &ExecSettings,
    ) -> Option<Self> {
        let is_exec = driver == DriverKind::Exec && settings.has_host_command;
        (host.is_some() && cause.has_joint_start() && is_exec).then_some(Self::Pending)
    }
}

impl Operation {
    /// The run of its host's command, once it has begun.
    pub fn host_run(&self) -> Option<&ExecRun> {
        match &self.host_command {
            Some(HostCommand::Run(run)) => Some(run),
            Some(HostCommand::Pending) | None => None,
        }
    }

    /// Whether its host's command was run with success.
    pub fn is_host_done(&self) -> bool {
        self.host_run().is_some_and(ExecRun::is_finished)
    }

    /// Whether [`Self::drive_host_command`] would change something without a report.
    pub fn is_host_command_due(&self, are_parts_ready: bool, runner: &str, now: Timestamp) -> bool {
        match &self.host_command {
            None => false,
            Some(HostCommand::Pending) => are_parts_ready,
            Some(HostCommand::Run(run)) => {
                !run.is_finished() && (run.owner != runner || run.next_due().is_some_and(|due| due <= now))
            }
        }
    }

    /// Processes the host's command: begins it when the parts are ready, applies a report, takes over another owner's
    /// run and starts an attempt that is due. A stale report changes nothing.
    pub fn drive_host_command(
        &mut self,
        are_parts_ready: bool,
        report: Option<HostRan>,
        context: HostCommandContext<'_>,
    ) -> Vec<Recorded<Fact>> {
        let HostCommandContext { now, settings, runner } = context;
        let mut facts: Vec<HostCommandFact> = Vec::new();
        if self.host_command == Some(HostCommand::Pending) && are_parts_ready {
            self.host_command = Some(HostCommand::Run(ExecRun::new(runner, 1, settings, now)));
            facts.push(HostCommandFact::Started);
        }
        let Some(HostCommand::Run(run)) = &mut self.host_command else { return Vec::new() };
        if let (Some(report), Some(&CommandState::Running { attempt, left })) = (report, run.commands.first())
            && (report.fence, report.attempt) == (run.fence, attempt)
        {
            // A host does not move: what the command reports as a new host is left out.
            let ending = match report.ending {
                Ending::Succeeded { host: _ } => Ending::Succeeded { host: None },
                failed @ (Ending::Failed { .. } | Ending::Blocked { .. }) => failed.checked(REASON_BYTES_MAX),
            };
            let (next, change) = state_after(settings, now, attempt, left, ending);
            run.commands = vec![next];
            facts.extend(fact_of(change));
            facts.extend(run.is_finished().then_some(HostCommandFact::Succeeded));
        }
        if run.owner != runner && !run.is_finished() {
            let interrupted = run.take_over(runner);
            facts.push(HostCommandFact::TookOver { owner: run.owner.clone(), fence: run.fence });
            for (_, next, change) in interrupted {
                run.commands = vec![next];
                facts.extend(fact_of(change));
            }
        }
        run.start_due(now);
        let by = |what: &HostCommandFact| match what {
            HostCommandFact::Started | HostCommandFact::TookOver { .. } | HostCommandFact::Retried => {
                Actor::Service
            }
            HostCommandFact::AttemptFailed { .. }
            | HostCommandFact::Failed { .. }
            | HostCommandFact::Succeeded => Actor::Driver(DriverKind::Exec.to_string()),
        };
        facts
            .into_iter()
            .map(|what| Recorded { at: now, by: by(&what), fact: self.host_command_fact(what) })
            .collect()
    }

    /// Makes a failed or waiting command of the host due at once, with all its attempts.
    pub fn retry_host_command(&mut self, context: HostCommandContext<'_>) -> Result<Fact, Refusal> {
        let nothing = Refusal::NoHostCommandFailed(self.id);
        let Some(HostCommand::Run(run)) = &mut self.host_command else { return Err(nothing) };
        match run.retry(context.settings, context.now) {
            0 => Err(nothing),
            _ => Ok(self.host_command_fact(HostCommandFact::Retried)),
        }
    }

    fn host_command_fact(&self, what: HostCommandFact) -> Fact {
        Fact::HostCommand { operation: self.id, host: self.host.clone().unwrap_or_default(), what }
    }
}

fn fact_of(change: CommandChange) -> Option<HostCommandFact> {
    match change {
        CommandChange::Nothing => None,
        CommandChange::AttemptFailed { attempt, why } => {
            Some(HostCommandFact::AttemptFailed { attempt, why })
        }
        CommandChange::Failed { attempts, why } => Some(HostCommandFact::Failed { attempts, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{at, operation, target, vm};

    const SETTINGS: ExecSettings = ExecSettings {
        attempts_max: 2,
        backoff_first: std::time::Duration::from_secs(5),
        backoff_max: std::time::Duration::from_secs(60),
        has_host_command: true,
    };

    fn context(runner: &str, seconds: i64) -> HostCommandContext<'_> {
        HostCommandContext { now: at(seconds), settings: &SETTINGS, runner }
    }

    fn with(command: Option<HostCommand>) -> Operation {
        let targets = vec![target("web", 0, 1, &[vm(1)])];
        let host = Some("h1".to_owned());
        Operation { host, host_command: command, ..operation(1, Cause::HostReboot, targets) }
    }

    fn run(owner: &str, fence: u64, command: CommandState) -> Option<HostCommand> {
        Some(HostCommand::Run(ExecRun { owner: owner.to_owned(), fence, commands: vec![command] }))
    }

    fn running(attempt: u32, left: u32) -> CommandState {
        CommandState::Running { attempt, left }
    }

    #[test]
    fn only_host_wide_causes_of_the_exec_driver_have_a_command() {
        let none = ExecSettings { has_host_command: false, ..SETTINGS };
        for (host, cause, driver, settings, expected) in [
            (Some("h1"), Cause::HostReboot, DriverKind::Exec, &SETTINGS, true),
            (Some("h1"), Cause::HostFreeze, DriverKind::Exec, &SETTINGS, true),
            (Some("h1"), Cause::HostRedeploy, DriverKind::Exec, &SETTINGS, false),
            (Some("h1"), Cause::HostReboot, DriverKind::Manual, &SETTINGS, false),
            (Some("h1"), Cause::HostReboot, DriverKind::Exec, &none, false),
            (None, Cause::HostReboot, DriverKind::Exec, &SETTINGS, false),
        ] {
            let found = HostCommand::new(host, cause, driver, settings).is_some();
            assert_eq!(found, expected, "{host:?} {cause} {driver}");
        }
    }

    #[test]
    fn command_of_a_host_is_begun_retried_and_taken_over() {
        let ran = |fence, attempt, ending| Some(HostRan { fence, attempt, ending });
        let failed = || Ending::Failed { why: "exit code 1".to_owned() };
        let moved = Ending::Succeeded { host: Some("h2".to_owned()) };
        let done = CommandState::Done { host: None };
        let why = "exit code 1".to_owned();
        let waits = CommandState::Waiting { attempt: 1, left: 1, due_at: at(5), why: why.clone() };
        let given_up = CommandState::Failed { attempt: 2, why: why.clone() };
        let lost = CommandState::Failed { attempt: 2, why: "the service ended while it ran".to_owned() };
        type Row<'a> =
            (&'a str, Option<HostCommand>, bool, Option<HostRan>, i64, Option<HostCommand>, &'a str);
        let rows: Vec<Row<'_>> = vec![
            ("no command", None, true, None, 0, None, ""),
            ("parts not ready", Some(HostCommand::Pending), false, None, 0, Some(HostCommand::Pending), ""),
            (
                "parts ready",
                Some(HostCommand::Pending),
                true,
                None,
                0,
                run("n1", 1, running(1, 1)),
                "Started",
            ),
            (
                "succeeded",
                run("n1", 1, running(1, 1)),
                true,
                ran(1, 1, moved.clone()),
                0,
                run("n1", 1, done.clone()),
                "Succeeded",
            ),
            (
                "stale fence",
                run("n1", 2, running(1, 1)),
                true,
                ran(1, 1, failed()),
                0,
                run("n1", 2, running(1, 1)),
                "",
            ),
            (
                "stale attempt",
                run("n1", 1, running(2, 0)),
                true,
                ran(1, 1, moved),
                0,
                run("n1", 1, running(2, 0)),
                "",
            ),
            (
                "failed",
                run("n1", 1, running(1, 1)),
                true,
                ran(1, 1, failed()),
                0,
                run("n1", 1, waits.clone()),
                "AttemptFailed",
            ),
            (
                "failed for good",
                run("n1", 1, running(2, 0)),
                true,
                ran(1, 2, failed()),
                0,
                run("n1", 1, given_up.clone()),
                "Failed",
            ),
            ("not due", run("n1", 1, waits.clone()), true, None, 4, run("n1", 1, waits.clone()), ""),
            ("due", run("n1", 1, waits), true, None, 5, run("n1", 1, running(2, 0)), ""),
            (
                "taken over",
                run("n0", 1, running(1, 1)),
                true,
                None,
                0,
                run("n1", 2, running(2, 0)),
                "TookOver",
            ),
            (
                "taken over without attempts",
                run("n0", 1, running(2, 0)),
                true,
                None,
                0,
                run("n1", 2, lost),
                "TookOver Failed",
            ),
            ("done under another owner", run("n0", 1, done.clone()), true, None, 0, run("n0", 1, done), ""),
        ];
        for (name, before, ready, report, seconds, after, said) in rows {
            let mut one = with(before);
            let has_report = report.is_some();
            let is_due = one.is_host_command_due(ready, "n1", at(seconds));
            let unchanged = one.clone();
            let facts = one.drive_host_command(ready, report, context("n1", seconds));
            assert_eq!(one.host_command, after, "{name}");
            assert!(has_report || is_due == (one != unchanged), "{name}: due says what changes");
            let kinds: Vec<&str> = facts.iter().map(|fact| kind(&fact.fact)).collect();
            assert_eq!(kinds.join(" "), said, "{name}");
        }
    }

    fn kind(fact: &Fact) -> &'static str {
        let Fact::HostCommand { what, .. } = fact else { panic!("{fact:?} is not about the host's command") };
        match what {
            HostCommandFact::TookOver { .. } => "TookOver",
            HostCommandFact::AttemptFailed { .. } => "AttemptFailed",
            HostCommandFact::Failed { .. } => "Failed",
            HostCommandFact::Retried => "Retried",
            HostCommandFact::Succeeded => "Succeeded",
            HostCommandFact::Started => "Started",
        }
    }

    #[test]
    fn retry_gives_all_attempts_again() {
        let why = "exit code 1".to_owned();
        let given_up = CommandState::Failed { attempt: 7, why };
        let mut one = with(run("n1", 1, given_up));
        assert_eq!(kind(&one.retry_host_command(context("n1", 9)).unwrap()), "Retried");
        assert!(one.is_host_command_due(false, "n1", at(9)));
        one.drive_host_command(true, None, context("n1", 9));
        assert_eq!(one.host_command, run("n1", 1, running(8, 1)));
        for state in [None, Some(HostCommand::Pending), run("n1", 1, running(1, 1))] {
            let mut one = with(state.clone());
            let refused = one.retry_host_command(context("n1", 9)).unwrap_err();
            assert_eq!(refused.code(), "nothing_failed", "{state:?}");
            assert_eq!(one.host_command, state);
        }
    }
}
