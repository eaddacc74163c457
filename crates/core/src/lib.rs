//! The domain model of Scheduled Events: scopes and their members, events and their phases, operations that span
//! scopes, and the rules by which they change.
//!
//! Everything here is pure: no IO, no async, no clock, no randomness, no logging. Time and new ids are arguments;
//! what happened is returned as [facts](fact). So the simulator can run the production rules through thousands of
//! histories a second.
//!
//! The entry point is [`Scope::apply`]: a scope, a command and a context give the scope's next value. That value is
//! always *settled*: nothing that is due and not blocked is left undone.
//!
//! | file | contents |
//! |---|---|
//! | [`cause`] | why an event happens, and what follows: type, source, notice, description, whether it may be blocked |
//! | [`event`] | the phases of one event and the data of each |
//! | [`scope`] | members, policy, live events, and what a guest's document shows |
//! | [`apply`] | each command and its refusals |
//! | [`settle`] | automatic starts and ends, and the gate between update domains |
//! | [`exec`] | the commands of the exec driver: attempts, owner and fence |
//! | [`access`] | access control: roles below paths, and tokens |
//! | [`operation`] | how one request becomes events in many scopes, and when they are released together |
//! | [`joint_start`] | how all events of a host start together |
//! | [`host`] | records of hosts, and the choice of a redeployed VM's new host |
//! | [`host_command`] | the exec driver's command for the host of an operation |
//! | [`clock_hold`] | the events that wait after a clock jump |
//!
//! The feature `samples` adds test fixtures; shipped builds do not enable it.

#[macro_use]
mod words;

pub mod access;
pub mod actor;
pub mod apply;
pub mod cause;
pub mod clock_hold;
pub mod event;
pub mod exec;
pub mod fact;
pub mod host;
pub mod host_command;
pub mod ids;
pub mod joint_start;
pub mod operation;
pub mod refusal;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod scope;
pub mod settings;
pub mod settle;
pub mod time;

pub use access::{Grant, Prefix, Role, Token};
pub use actor::Actor;
pub use apply::{Applied, ApplyContext, Change, Command, NewEvent};
pub use cause::{Cause, EventType, Source};
pub use clock_hold::ClockHold;
pub use event::{Approval, DriverKind, Event, Outcome, Past, Phase, Resource, Run, StartReason};
pub use exec::{CommandState, Ending, ExecRun, Ran};
pub use fact::{EventFact, Fact, HostCommandFact, Recorded, SignInMethod};
pub use host::{FreeHost, FreeHosts, Host, HostState, NoFreeHosts};
pub use host_command::{HostCommand, HostCommandContext, HostRan};
pub use ids::{EventId, Name, OperationId, ScopeId, ScopePath, VmId};
pub use joint_start::{Blocked, Blocker, HostPart, HostStartState, JointStart, StartOrder};
pub use operation::{Operation, OperationState, Release, Target, TargetState};
pub use refusal::Refusal;
pub use scope::{Member, MemberState, Origin, Policy, Scope, ScopeKind};
pub use settings::{ExecSettings, Settings, WhenNotEnabled};
