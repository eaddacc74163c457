//! The exec driver's state machine, with fencing: one command per resource of a started event, run by the service.
//! The host of an operation may have a command too; [`crate::host_command`] has its rules, and the same states.
//!
//! This module records who runs the commands and the state of each. A command is *Running* in the store before it
//! is spawned. So it runs at least once and, while the service does not restart, at most once:
//!
//! ```text
//! Waiting ──due──▶ Running ──succeeded──▶ Done
//!    ▲                │ └─failed, none left, or blocked─▶ Failed ──retry──▶ Waiting
//!    └──── failed ────┘              a VM that leaves: Gone, from anywhere but Done
//! ```
//!
//! **Owner and fence.** A run has an owner, the process that spawns its commands, and a fence. A process that
//! finds another owner's run takes it over: the fence rises by one, and Running commands run again as a further
//! attempt. A report counts only with the fence and attempt that the command was spawned with; other reports are
//! stale and change nothing. A command that must not act twice compares both numbers with those it has seen.
//!
//! **Attempts** are numbered from one and never restart. `left` counts down, also on takeover: a command that
//! takes down the service's own machine must not do so forever. With none left the command is Failed, and the
//! event stays Started until an operator retries or completes it.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::apply::{ApplyContext, Change};
use crate::event::{DriverKind, Event, Phase, Resource, Run};
use crate::fact::EventFact;
use crate::ids::{EventId, Name, OperationId, VmId, is_dots, is_flag};
use crate::refusal::Refusal;
use crate::settings::ExecSettings;
use crate::time::{after, round_up};

/// Limit on a stored failure reason: one line of a program's error output. The log has the whole output.
pub const REASON_BYTES_MAX: usize = 200;
/// Guaranteed size of each reason in a large event: a scope's record holds one for each of up to a thousand VMs.
const REASON_BYTES_MIN: usize = 96;
/// Limit on all reasons of one event together, as long as each has [`REASON_BYTES_MIN`].
const REASONS_BYTES_MAX: usize = 1_000 * REASON_BYTES_MIN;
/// Limit on the name of a host that a command reports.
pub const HOST_BYTES_MAX: usize = 128;

/// The commands of a started event, or the command of an operation's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRun {
    /// The process that runs them.
    pub owner: String,
    /// 1 for the first owner, one more for each takeover.
    pub fence: u64,
    /// In the order of the event's resources; a single one for a host.
    pub commands: Vec<CommandState>,
}

/// The state of one resource's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandState {
    /// To be run at `due_at`.
    Waiting {
        /// The previous attempt; 0 before the first.
        attempt: u32,
        /// Attempts left, including the next one.
        left: u32,
        /// Not before this time.
        due_at: Timestamp,
        /// Why the previous attempt failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// Running or about to: once stored, the command may be spawned. `left` excludes this attempt.
    Running { attempt: u32, left: u32 },
    Done {
        /// The VM's new host, if the command reported one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// Out of attempts, or blocked; `attempt` was the last.
    Failed { attempt: u32, why: String },
    /// The VM left the scope; the command is dropped.
    Gone,
}

/// The report of an ended command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub event: EventId,
    pub vm: VmId,
    /// The fence it was spawned with.
    pub fence: u64,
    /// The attempt it was spawned as.
    pub attempt: u32,
    pub ending: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `host` is the VM's new host, if the command reported one.
    Succeeded { host: Option<String> },
    /// It failed, or its result is unknown.
    Failed { why: String },
    /// It was not run, and a retry does not help until an operator acts.
    Blocked { why: String },
}

/// Limit on each reason in an event with this many resources.
pub fn reason_bytes_max(resources: usize) -> usize {
    (REASONS_BYTES_MAX / resources.max(1)).clamp(REASON_BYTES_MIN, REASON_BYTES_MAX)
}

impl Ending {
    /// Makes an ending fit for the record. An invalid host becomes a failure; reasons are cut to size, without
    /// characters that JSON would escape.
    pub(crate) fn checked(self, reason_bytes_max: usize) -> Self {
        let fits = |host: &str| {
            let is_name = is_plain(host) && !is_dots(host) && !is_flag(host);
            (1..=HOST_BYTES_MAX).contains(&host.len()) && is_name
        };
        match self {
            Self::Succeeded { host: Some(host) } if !fits(&host) => Self::Failed {
                why: format!(
                    "the command reported a host that is not 1 to {HOST_BYTES_MAX} plain characters, or begins with '-'"
                ),
            },
            Self::Succeeded { host } => Self::Succeeded { host },
            Self::Failed { why } => Self::Failed { why: shorten(&why, reason_bytes_max) },
            Self::Blocked { why } => Self::Blocked { why: shorten(&why, reason_bytes_max) },
        }
    }
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c == '"' || c == '\\')
}

/// Cuts a reason to one line.
fn shorten(why: &str, bytes_max: usize) -> String {
    let mut brief = String::new();
    for c in why.trim().chars() {
        let c = match c {
            '"' => '\'',
            '\\' => '/',
            c if c.is_control() => ' ',
            c => c,
        };
        if brief.len() + c.len_utf8() > bytes_max {
            break;
        }
        brief.push(c);
    }
    match brief.is_empty() {
        true => "no reason was given".to_owned(),
        false => brief,
    }
}

impl CommandState {
    /// Whether the state is final.
    fn is_over(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Gone => true,
            Self::Waiting { .. } | Self::Running { .. } | Self::Failed { .. } => false,
        }
    }

    /// When the next attempt is due.
    fn due_at(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due_at, .. } => Some(*due_at),
            Self::Running { .. } | Self::Done { .. } | Self::Failed { .. } | Self::Gone => None,
        }
    }
}

impl ExecRun {
    /// A new run: every command is due at once.
    pub(crate) fn new(owner: &str, commands: usize, settings: &ExecSettings, now: Timestamp) -> Self {
        let left = settings.attempts();
        let command = CommandState::Waiting { attempt: 0, left, due_at: now, why: String::new() };
        Self { owner: owner.to_owned(), fence: 1, commands: vec![command; commands] }
    }

    /// When the first command is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.commands.iter().filter_map(CommandState::due_at).min()
    }

    /// Whether every command is Done or Gone.
    pub fn is_finished(&self) -> bool {
        self.commands.iter().all(CommandState::is_over)
            && self.commands.iter().any(|command| *command != CommandState::Gone)
    }

    /// Whether a command has no attempts left.
    pub fn has_failed(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, CommandState::Failed { .. }))
    }

    /// Sets the commands that are due to Running.
    pub(crate) fn start_due(&mut self, now: Timestamp) {
        for command in &mut self.commands {
            if let CommandState::Waiting { attempt, left, due_at, .. } = command
                && *due_at <= now
            {
                *command = CommandState::Running { attempt: *attempt + 1, left: left.saturating_sub(1) };
            }
        }
    }

    /// Makes failed and waiting commands due at once, with all their attempts. Returns their number.
    pub(crate) fn retry(&mut self, settings: &ExecSettings, now: Timestamp) -> usize {
        let mut retried = 0;
        for command in &mut self.commands {
            let (attempt, why) = match command {
                CommandState::Failed { attempt, why } | CommandState::Waiting { attempt, why, .. } => {
                    (*attempt, std::mem::take(why))
                }
                CommandState::Running { .. } | CommandState::Done { .. } | CommandState::Gone => continue,
            };
            *command = CommandState::Waiting { attempt, left: settings.attempts(), due_at: now, why };
            retried += 1;
        }
        retried
    }

    /// Takes the run over from another process, which is dead or lost its lease. Returns the states of the commands
    /// that were Running: they run again if they have attempts left.
    pub(crate) fn take_over(&mut self, owner: &str) -> Vec<(usize, CommandState, CommandChange)> {
        self.owner = owner.to_owned();
        self.fence += 1;
        let interrupted = self.commands.iter().enumerate().filter_map(|(at, command)| {
            let CommandState::Running { attempt, left } = *command else { return None };
            let why = "the service ended while it ran".to_owned();
            let (next, change) = match left {
                0 => given_up(attempt, why),
                left => {
                    (CommandState::Running { attempt: attempt + 1, left: left - 1 }, CommandChange::Nothing)
                }
            };
            Some((at, next, change))
        });
        interrupted.collect()
    }
}

impl Event {
    /// None if the event has not started or another driver carries it out.
    pub fn exec_run(&self) -> Option<&ExecRun> {
        let Phase::Started { run: Run::Exec(run), .. } = &self.phase else { return None };
        Some(run)
    }

    /// Whether one of its commands has no attempts left.
    pub fn has_failed(&self) -> bool {
        self.exec_run().is_some_and(ExecRun::has_failed)
    }

    /// Whether its commands are done, and it ends once its host's command is done too.
    pub fn is_ready_for_host(&self) -> bool {
        self.waits_for_host && self.exec_run().is_some_and(ExecRun::is_finished)
    }

    fn exec_run_mut(&mut self) -> Option<&mut ExecRun> {
        let Phase::Started { run: Run::Exec(run), .. } = &mut self.phase else { return None };
        Some(run)
    }

    /// The new hosts of its VMs: the one that was chosen, with the simulated driver; those that its commands reported,
    /// with the exec driver.
    pub(crate) fn new_hosts(&self) -> Vec<(VmId, String)> {
        match self.driver {
            DriverKind::Simulated => {
                let vm = self.resources.first().map(|resource| resource.vm);
                vm.zip(self.target_host.clone()).into_iter().collect()
            }
            DriverKind::Manual => Vec::new(),
            DriverKind::Exec => self.reported_hosts(),
        }
    }

    fn reported_hosts(&self) -> Vec<(VmId, String)> {
        let commands = self.exec_run().map(|run| run.commands.as_slice()).unwrap_or_default();
        let hosts = self.resources.iter().zip(commands).filter_map(|(resource, command)| {
            let CommandState::Done { host: Some(host) } = command else { return None };
            Some((resource.vm, host.clone()))
        });
        hosts.collect()
    }
}

/// The fact to record for a change of one command.
pub(crate) enum CommandChange {
    Nothing,
    AttemptFailed { attempt: u32, why: String },
    Failed { attempts: u32, why: String },
}

/// The state of a command without further attempts.
fn given_up(attempt: u32, why: String) -> (CommandState, CommandChange) {
    (CommandState::Failed { attempt, why: why.clone() }, CommandChange::Failed { attempts: attempt, why })
}

/// The state of a command after an attempt ended.
pub(crate) fn state_after(
    settings: &ExecSettings,
    now: Timestamp,
    attempt: u32,
    left: u32,
    ending: Ending,
) -> (CommandState, CommandChange) {
    match ending {
        Ending::Succeeded { host } => (CommandState::Done { host }, CommandChange::Nothing),
        Ending::Blocked { why } => given_up(attempt, why),
        Ending::Failed { why } if left == 0 => given_up(attempt, why),
        Ending::Failed { why } => {
            let pause = settings.backoff(settings.attempts().saturating_sub(left));
            let due_at = round_up(after(now, pause));
            let next = CommandState::Waiting { attempt, left, due_at, why: why.clone() };
            (next, CommandChange::AttemptFailed { attempt, why })
        }
    }
}

impl Change<'_> {
    /// Takes reports of commands. A stale report, or one of an ended event, changes nothing.
    pub(crate) fn ran(&mut self, reports: Vec<Ran>) {
        for Ran { event, vm, fence, attempt, ending } in reports {
            let Some(index) = self.scope.events.iter().position(|one| one.id == event) else { continue };
            let Some(at) = self.scope.events[index].resources.iter().position(|one| one.vm == vm) else {
                continue;
            };
            let Some(run) = self.scope.events[index].exec_run() else { continue };
            let Some(&CommandState::Running { attempt: running, left }) = run.commands.get(at) else {
                continue;
            };
            if (run.fence, running) != (fence, attempt) {
                continue;
            }
            let ending = ending.checked(reason_bytes_max(run.commands.len()));
            let ApplyContext { now, settings, .. } = self.context;
            let (next, command_change) = state_after(&settings.exec, now, attempt, left, ending);
            self.set_command(index, at, next, command_change);
        }
    }

    /// Makes failed and waiting commands due at once, with all their attempts.
    pub(crate) fn retry(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let ApplyContext { now, by, settings, .. } = self.context;
        let mut event = self.scope.events[index].clone();
        if event.driver != DriverKind::Exec {
            return Err(Refusal::NotExec { event: id, driver: event.driver });
        }
        let run = event.exec_run_mut().ok_or(Refusal::EventNotStarted(id))?;
        let retried = run.retry(&settings.exec, now);
        if retried == 0 {
            return Err(Refusal::NothingFailed(id));
        }
        self.note_driver(&mut event, by.clone(), None, EventFact::DriverRetried { commands: retried });
        self.scope.events[index] = event;
        Ok(())
    }

    /// Processes the commands of one event: takes over another owner's run, drops commands of removed VMs, starts what
    /// is due. Returns whether there was such an event.
    pub(crate) fn drive(&mut self) -> bool {
        let Some(index) = self.next_to_drive() else { return false };
        self.take_over(index);
        let now = self.context.now;
        let members = self.members();
        let mut event = self.scope.events[index].clone();
        let vms: Vec<VmId> = event.resources.iter().map(|resource| resource.vm).collect();
        if let Some(run) = event.exec_run_mut() {
            for (vm, command) in vms.iter().zip(&mut run.commands) {
                if !command.is_over() && !members.contains(vm) {
                    *command = CommandState::Gone;
                }
            }
            run.start_due(now);
        }
        self.scope.events[index] = event;
        true
    }

    fn next_to_drive(&self) -> Option<usize> {
        let ApplyContext { now, runner, .. } = self.context;
        if self.scope.events.iter().all(|event| event.exec_run().is_none()) {
            return None;
        }
        let members = self.members();
        self.scope.events.iter().position(|event| {
            event.exec_run().is_some_and(|run| {
                let due = run.next_due().is_some_and(|due| due <= now);
                let gone = |(resource, command): (&Resource, &CommandState)| {
                    !command.is_over() && !members.contains(&resource.vm)
                };
                due || run.owner != runner || event.resources.iter().zip(&run.commands).any(gone)
            })
        })
    }

    /// Takes over another process's run.
    fn take_over(&mut self, index: usize) {
        let runner = self.context.runner;
        let mut event = self.scope.events[index].clone();
        let Some(run) = event.exec_run_mut().filter(|run| run.owner != runner) else { return };
        let interrupted = run.take_over(runner);
        let took_over = EventFact::DriverTookOver { owner: run.owner.clone(), fence: run.fence };
        self.note_driver(&mut event, Actor::Service, None, took_over);
        self.scope.events[index] = event;
        for (at, next, command_change) in interrupted {
            self.set_command(index, at, next, command_change);
        }
    }

    /// The first event whose commands are all Done or Gone, and that does not wait for its host's command.
    pub(crate) fn next_finished(&self) -> Option<usize> {
        self.scope
            .events
            .iter()
            .position(|event| !event.waits_for_host && event.exec_run().is_some_and(ExecRun::is_finished))
    }

    /// The host's command is done: the operation's events end when their own commands are done.
    pub(crate) fn host_done(&mut self, operation: OperationId) {
        for event in self.scope.events.iter_mut().filter(|event| event.operation == operation) {
            event.waits_for_host = false;
        }
    }

    fn members(&self) -> HashSet<VmId> {
        self.scope.members.iter().map(|member| member.vm).collect()
    }

    /// Sets the state of one command and records the fact. A single failed attempt goes to the audit trail only; the
    /// event's trail records commands that are given up.
    fn set_command(&mut self, index: usize, at: usize, next: CommandState, command_change: CommandChange) {
        let mut event = self.scope.events[index].clone();
        let Some(vm) = event.resources.get(at).map(|resource| resource.name.clone()) else { return };
        if let Some(command) = event.exec_run_mut().and_then(|run| run.commands.get_mut(at)) {
            *command = next;
        }
        let driver = Actor::Driver(DriverKind::Exec.to_string());
        match command_change {
            CommandChange::Nothing => {}
            CommandChange::AttemptFailed { attempt, why } => {
                let what = EventFact::DriverAttemptFailed { vm: vm.clone(), attempt, why };
                self.audit(&event, driver, vec![vm], what);
            }
            CommandChange::Failed { attempts, why } => {
                let what = EventFact::DriverFailed { vm: vm.clone(), attempts, why };
                self.note_driver(&mut event, driver, Some(vm), what);
            }
        }
        self.scope.events[index] = event;
    }

    /// Records a fact of the driver in the audit trail and in the event's trail. In the event's trail it replaces the
    /// previous fact of its kind, so the trail does not grow with retries.
    fn note_driver(&mut self, event: &mut Event, by: Actor, vm: Option<Name>, what: EventFact) {
        let all = || event.resources.iter().map(|resource| resource.name.clone()).collect();
        let resources = vm.map_or_else(all, |vm| vec![vm]);
        self.audit(event, by.clone(), resources, what.clone());
        let same = std::mem::discriminant(&what);
        event.trail.retain(|fact| std::mem::discriminant(&fact.fact) != same);
        event.note(self.context.now, by, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_host_that_is_no_plain_name_is_a_failure() {
        let reported = |host: &str| {
            let ending = Ending::Succeeded { host: Some(host.to_owned()) };
            (ending.clone().checked(REASON_BYTES_MAX), ending)
        };
        let longest = "x".repeat(HOST_BYTES_MAX);
        for fine in ["h2", "h-2", longest.as_str()] {
            let (checked, ending) = reported(fine);
            assert_eq!(checked, ending, "{fine}");
        }
        let long = "x".repeat(HOST_BYTES_MAX + 1);
        for bad in ["-h2", "--", ".", "..", "", "a\nb", "a\"b", long.as_str()] {
            let (checked, _) = reported(bad);
            let Ending::Failed { why } = &checked else { panic!("{bad}: {checked:?}") };
            assert!(why.contains("begins with '-'"), "{why}");
        }
    }
}
