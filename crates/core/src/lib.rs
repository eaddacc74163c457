//! The domain of Scheduled Events, and nothing else: scopes and their members, events and their phases,
//! operations that span scopes, the rules by which all of them change.
//!
//! Everything here is pure. There is no IO, no async, no clock, no randomness and no logging: time and fresh
//! ids come in as arguments, what happened comes back as [facts](fact). That is what lets the simulator run
//! the production rules through thousands of histories a second.
//!
//! The one verb is [`Scope::apply`]: a scope, a command and the context give the scope's next value,
//! and that value is always *settled*, so that nothing that is due and free to happen is left undone. Where
//! to look:
//!
//! | file | what it decides |
//! |---|---|
//! | [`cause`] | what an event is, from why it happens: type, source, notice, wording, whether it may be made to wait |
//! | [`event`] | the phases of one event and what each holds |
//! | [`scope`] | members, policy, live events, what of it a guest's document shows |
//! | [`apply`] | each command, what it refuses |
//! | [`settle`] | what starts and ends by itself, and the gate between update domains |
//! | [`exec`] | the commands of the exec driver: attempts, owner and fence |
//! | [`access`] | who may do what: roles below paths, and tokens that hold them |
//! | [`operation`] | how one request becomes events in many scopes, and when they are released together |
//! | [`joint_start`] | how all events of a host start together |
//! | [`clock_hold`] | what waits after the clock has jumped |
//!
//! The feature `samples` adds values for tests; nothing that is shipped turns it on.

// A field whose name says all there is to say has no comment.
#![allow(missing_docs)]

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
pub use fact::{EventFact, Fact, Recorded};
pub use ids::{EventId, Name, OperationId, ScopeId, ScopePath, VmId};
pub use joint_start::{Blocked, Blocker, HostPart, HostStartState, JointStart, StartOrder};
pub use operation::{Operation, OperationState, Release, Target, TargetState};
pub use refusal::Refusal;
pub use scope::{Member, MemberState, Origin, Policy, Scope, ScopeKind};
pub use settings::{ExecSettings, Settings, WhenNotEnabled};
