//! The exec driver: one command per resource of a started event, run by the service itself.
//!
//! What is kept here is who runs the commands and how far each is. A command is *Running* in the record before
//! it is spawned, so it runs at least once and, unless the service ends in between, at most once:
//!
//! ```text
//! Waiting ──due──▶ Running ──succeeded──▶ Done
//!    ▲                │ └─failed, none left, or blocked─▶ Failed ──retry──▶ Waiting
//!    └──── failed ────┘              a VM that leaves: Gone, from anywhere but Done
//! ```
//!
//! **Owner and fence.** A run has an owner, the process that spawns its commands, and a fencing number. A
//! process that finds another's run takes it over: the fence rises by one, and what was Running is run again as
//! a further attempt. A report counts only under the fence and attempt that it was spawned with; any other is
//! stale and changes nothing. A command that must not act twice compares the two numbers it was given with
//! those it has seen.
//!
//! **Attempts** are numbered from one for ever; how many are `left` is counted down, by takeovers too: a command
//! that takes the service's own machine down must not do so without end. When none is left the command has
//! Failed and the event stays Started until somebody says what is to become of it.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::apply::{ApplyContext, Change};
use crate::event::{DriverKind, Event, Phase, Resource, Run};
use crate::fact::EventFact;
use crate::ids::{EventId, Name, VmId};
use crate::refusal::Refusal;
use crate::time::{after, round_up};

/// How much is kept of why a command failed: a line of an ordinary program's complaint. The whole of a command's
/// output is in the log.
pub const REASON_BYTES_MAX: usize = 200;
/// How much of that a large event can always afford: a scope's record holds one such text for each of up to a
/// thousand VMs.
const REASON_BYTES_MIN: usize = 96;
/// What all reasons of one event take up together at most, as long as each has [`REASON_BYTES_MIN`].
const REASONS_BYTES_MAX: usize = 1_000 * REASON_BYTES_MIN;
/// The longest name of a host that a command may report.
pub const HOST_BYTES_MAX: usize = 128;

/// How the commands of a started event stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRun {
    /// The process that runs them.
    pub owner: String,
    /// The fencing number: 1 for the first owner, one more for each that takes over.
    pub fence: u64,
    /// Where the command of each resource stands, in the order of the event's resources.
    pub commands: Vec<CommandState>,
}

/// Where the command of one resource stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandState {
    /// It will be run.
    Waiting {
        /// The attempt before; 0 before the first.
        attempt: u32,
        /// How many attempts it has, the one it waits for included.
        left: u32,
        /// Not before when.
        due_at: Timestamp,
        /// Why the attempt before failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// It runs, or is about to: what is so in the store may be spawned. It has `left` attempts besides this.
    Running { attempt: u32, left: u32 },
    /// It has succeeded.
    Done {
        /// Where the VM is now, if the command said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// It has used up its attempts, of which `attempt` was the last, or cannot be run.
    Failed { attempt: u32, why: String },
    /// Its VM has left; nothing is to be done for it any more.
    Gone,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// For which event it ran.
    pub event: EventId,
    /// For which VM.
    pub vm: VmId,
    /// Under which fencing number it was spawned.
    pub fence: u64,
    /// As which attempt.
    pub attempt: u32,
    /// How it ended.
    pub ending: Ending,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was to do. `host` is where the VM is now, if the command said so.
    Succeeded { host: Option<String> },
    /// It did not, or nobody can tell.
    Failed { why: String },
    /// It was not run, and cannot be until somebody sees to it; no attempt that is left would fare better.
    Blocked { why: String },
}

/// How much is kept of why each command of an event with so many resources failed.
pub fn reason_bytes_max(resources: usize) -> usize {
    (REASONS_BYTES_MAX / resources.max(1)).clamp(REASON_BYTES_MIN, REASON_BYTES_MAX)
}

impl Ending {
    /// An ending that can be recorded: a host that nobody could record is a failure that says so, and reasons
    /// are cut to what a record has room for, without anything that would have to be escaped there.
    fn checked(self, reason_bytes_max: usize) -> Self {
        let fits = |host: &str| (1..=HOST_BYTES_MAX).contains(&host.len()) && is_plain(host);
        match self {
            Self::Succeeded { host: Some(host) } if !fits(&host) => Self::Failed {
                why: format!("it reported a host that is not 1 to {HOST_BYTES_MAX} plain characters"),
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

/// A reason in one line.
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
    /// Whether nothing more is to be done.
    fn is_over(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Gone => true,
            Self::Waiting { .. } | Self::Running { .. } | Self::Failed { .. } => false,
        }
    }

    /// When it will be due by itself.
    fn due_at(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due_at, .. } => Some(*due_at),
            Self::Running { .. } | Self::Done { .. } | Self::Failed { .. } | Self::Gone => None,
        }
    }
}

impl ExecRun {
    /// When the first command will be due by itself.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.commands.iter().filter_map(CommandState::due_at).min()
    }

    /// Whether every command is done, but for those whose VM has left.
    fn is_finished(&self) -> bool {
        self.commands.iter().all(CommandState::is_over)
            && self.commands.iter().any(|command| *command != CommandState::Gone)
    }
}

impl Event {
    /// How its commands stand, if it is under way and commands carry it out.
    pub fn exec_run(&self) -> Option<&ExecRun> {
        let Phase::Started { run: Run::Exec(run), .. } = &self.phase else { return None };
        Some(run)
    }

    /// The same, to be changed.
    fn exec_run_mut(&mut self) -> Option<&mut ExecRun> {
        let Phase::Started { run: Run::Exec(run), .. } = &mut self.phase else { return None };
        Some(run)
    }

    /// Where its commands said that VMs are now.
    pub(crate) fn reported_hosts(&self) -> Vec<(VmId, String)> {
        let commands = self.exec_run().map(|run| run.commands.as_slice()).unwrap_or_default();
        let hosts = self.resources.iter().zip(commands).filter_map(|(resource, command)| {
            let CommandState::Done { host: Some(host) } = command else { return None };
            Some((resource.vm, host.clone()))
        });
        hosts.collect()
    }
}

/// What a change of one command makes known.
enum CommandChange {
    Nothing,
    AttemptFailed { attempt: u32, why: String },
    Failed { attempts: u32, why: String },
}

/// What becomes of a command that is not tried again after this attempt.
fn given_up(attempt: u32, why: String) -> (CommandState, CommandChange) {
    (CommandState::Failed { attempt, why: why.clone() }, CommandChange::Failed { attempts: attempt, why })
}

impl Change<'_> {
    /// The run of an event that begins: every command is due at once, and settling sets them going.
    pub(crate) fn new_exec_run(&self, resources: &[Resource]) -> ExecRun {
        let left = self.context.settings.exec.attempts();
        let due_at = self.context.now;
        let command = |_: &Resource| CommandState::Waiting { attempt: 0, left, due_at, why: String::new() };
        ExecRun {
            owner: self.context.runner.to_owned(),
            fence: 1,
            commands: resources.iter().map(command).collect(),
        }
    }

    /// Takes reports of commands. One that is stale, or of an event that has ended, changes nothing.
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
            let (next, command_change) = self.state_after(attempt, left, ending);
            self.set_command(index, at, next, command_change);
        }
    }

    /// What becomes of a command whose attempt has ended so.
    fn state_after(&self, attempt: u32, left: u32, ending: Ending) -> (CommandState, CommandChange) {
        let exec = &self.context.settings.exec;
        match ending {
            Ending::Succeeded { host } => (CommandState::Done { host }, CommandChange::Nothing),
            Ending::Blocked { why } => given_up(attempt, why),
            Ending::Failed { why } if left == 0 => given_up(attempt, why),
            Ending::Failed { why } => {
                let pause = exec.backoff(exec.attempts().saturating_sub(left));
                let due_at = round_up(after(self.context.now, pause));
                let next = CommandState::Waiting { attempt, left, due_at, why: why.clone() };
                (next, CommandChange::AttemptFailed { attempt, why })
            }
        }
    }

    /// Gives what has failed, or waits to be tried again, all its attempts anew and no more waiting.
    pub(crate) fn retry(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let ApplyContext { now, by, settings, .. } = self.context;
        let mut event = self.scope.events[index].clone();
        if event.driver != DriverKind::Exec {
            return Err(Refusal::NotExec { event: id, driver: event.driver });
        }
        let run = event.exec_run_mut().ok_or(Refusal::EventNotStarted(id))?;
        let left = settings.exec.attempts();
        let mut retried = 0;
        for command in &mut run.commands {
            let (attempt, why) = match command {
                CommandState::Failed { attempt, why } | CommandState::Waiting { attempt, why, .. } => {
                    (*attempt, std::mem::take(why))
                }
                CommandState::Running { .. } | CommandState::Done { .. } | CommandState::Gone => continue,
            };
            *command = CommandState::Waiting { attempt, left, due_at: now, why };
            retried += 1;
        }
        if retried == 0 {
            return Err(Refusal::NothingFailed(id));
        }
        self.note_driver(&mut event, by.clone(), None, EventFact::DriverRetried { commands: retried });
        self.scope.events[index] = event;
        Ok(())
    }

    /// Does what is due for the commands of one event: takes over another's, drops those whose VM has left, sets
    /// going what is due. Whether there was one.
    pub(crate) fn drive(&mut self) -> bool {
        let Some(index) = self.next_to_drive() else { return false };
        self.take_over(index);
        let now = self.context.now;
        let members = self.members();
        let mut event = self.scope.events[index].clone();
        let vms: Vec<VmId> = event.resources.iter().map(|resource| resource.vm).collect();
        let commands = event.exec_run_mut().map(|run| run.commands.as_mut_slice()).unwrap_or_default();
        for (vm, command) in vms.iter().zip(commands) {
            if !command.is_over() && !members.contains(vm) {
                *command = CommandState::Gone;
            }
            if let CommandState::Waiting { attempt, left, due_at, .. } = command
                && *due_at <= now
            {
                *command = CommandState::Running { attempt: *attempt + 1, left: left.saturating_sub(1) };
            }
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

    /// Makes a run that was another process's our own. That process is dead or has lost its claim; what it had
    /// running is run again, as far as there are attempts left.
    fn take_over(&mut self, index: usize) {
        let runner = self.context.runner;
        let mut event = self.scope.events[index].clone();
        let Some(run) = event.exec_run_mut().filter(|run| run.owner != runner) else { return };
        run.owner = runner.to_owned();
        run.fence += 1;
        let took_over = EventFact::DriverTookOver { owner: run.owner.clone(), fence: run.fence };
        let running = run.commands.iter().enumerate().filter_map(|(at, command)| {
            let CommandState::Running { attempt, left } = *command else { return None };
            Some((at, attempt, left))
        });
        let interrupted: Vec<(usize, u32, u32)> = running.collect();
        self.note_driver(&mut event, Actor::Service, None, took_over);
        self.scope.events[index] = event;
        for (at, attempt, left) in interrupted {
            let why = "the service ended while it ran".to_owned();
            let (next, command_change) = match left {
                0 => given_up(attempt, why),
                left => {
                    (CommandState::Running { attempt: attempt + 1, left: left - 1 }, CommandChange::Nothing)
                }
            };
            self.set_command(index, at, next, command_change);
        }
    }

    /// The first event whose commands are all done.
    pub(crate) fn next_finished(&self) -> Option<usize> {
        self.scope.events.iter().position(|event| event.exec_run().is_some_and(ExecRun::is_finished))
    }

    fn members(&self) -> HashSet<VmId> {
        self.scope.members.iter().map(|member| member.vm).collect()
    }

    /// Sets where one command stands, and writes down what that makes known. A single failure goes into the
    /// audit trail only; the event's own trail has the last word on those that are given up.
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

    /// Writes down what the driver did, in the audit trail for good and in the event's own trail until it does
    /// the same again: an event that is retried for weeks stays as small as it was.
    fn note_driver(&mut self, event: &mut Event, by: Actor, vm: Option<Name>, what: EventFact) {
        let all = || event.resources.iter().map(|resource| resource.name.clone()).collect();
        let resources = vm.map_or_else(all, |vm| vec![vm]);
        self.audit(event, by.clone(), resources, what.clone());
        let same = std::mem::discriminant(&what);
        event.trail.retain(|fact| std::mem::discriminant(&fact.fact) != same);
        event.note(self.context.now, by, what);
    }
}
