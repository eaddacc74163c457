//! The engine: a sans-IO state machine that decides what the service does.
//!
//! [`Engine::handle`] takes one [`Input`] and the time. It returns [`Effect`]s in the order in which they must be
//! carried out: commit this transaction, publish that scope, answer that request. It reads no clock, opens no file
//! and awaits nothing. The runtime around it (or the simulator) does, and reports results as inputs. So the simulator
//! runs this very code through thousands of histories a second.
//!
//! **Life of a command.** A request becomes a *job*. [`plan`] computes its transaction from the current state: the
//! scope's next value, records that go with it, facts, an idempotency record. The job locks the records that the
//! transaction compares and sends the commit; other jobs that need one of those records queue. When the commit is
//! durable, the engine installs it in its state, publishes the change, and only then answers: *persist, publish,
//! answer*.
//!
//! - On a conflict (another node of a cluster was faster), the job waits until the watch has shown the other change,
//!   and is planned again: optimistic concurrency by revision compare.
//! - If the outcome of the commit is unknown, the answer says so. A retry carries the same idempotency key and finds
//!   the record of the first attempt, if that took effect.
//!
//! **Operations** over several scopes are reconciled: [`operations`] compares an operation's record with the scopes
//! and returns what is missing. The same function continues after a crash.
//!
//! **Commands** of the exec driver follow from the records alone. A command that is durably Running with this process
//! as owner runs once. A command that is no longer Running is stopped. A report stays in memory until a commit has it.
//!
//! | file | contents |
//! |---|---|
//! | [`engine`] | the loop: inputs, jobs, locks, deadlines |
//! | [`clock_watch`] | detection of clock jumps |
//! | [`cluster`] | leader election, and following the watch of a shared store |
//! | [`plan`] | from a command to a transaction |
//! | `schedule` | plans for operations |
//! | [`fleet`] | plans that change the inventory |
//! | `hosts` | plans that change the records of hosts |
//! | `joint_start` | plans that start or complete a whole operation |
//! | [`tokens`] | plans that create and revoke tokens |
//! | [`draft`] | the transaction builder |
//! | [`operations`] | what an operation still needs |
//! | [`state`] | the committed records, in memory |
//! | [`keys`] | keys of records |
//! | [`records`] | kinds of records and their encoding |
//! | [`request`] | commands, answers, failures |

pub mod clock_watch;
pub mod cluster;
pub mod draft;
pub mod engine;
pub mod fleet;
mod hosts;
mod joint_start;
pub mod keys;
pub mod operations;
pub mod plan;
pub mod records;
pub mod request;
mod schedule;
pub mod scope_plan;
pub mod state;
pub mod tokens;

pub use clock_watch::{ClockNews, ClockReading, ClockWatch};
pub use cluster::Role;
pub use engine::{
    CommandId, CommandTarget, DriverReport, DriverRun, Effect, Engine, EngineSettings, Input, JobId, Node,
    RequestId, RunTarget,
};
pub use keys::{KeyError, RecordKey};
pub use records::{Address, DecodeError, FactBatch, Vm};
pub use request::{
    AcceptClock, AddVm, Answer, ClusterCommand, Command, EventCommand, Expected, Failure, FailureCause,
    FirstRun, GuestApproval, HostChange, Idempotency, InventoryCommand, NewOperation, OperationCommand,
    Preview, Progress, PutScope, Request, ScopeChange, StoreError, TargetSelector, TokenCommand,
    TypedCommand, VmCommand, VmSpec,
};
pub use scope_plan::{EndedEvent, FieldChange, ScopePlan, TakenAddress, VmChange};
pub use state::inventory::{Inventory, MemberSlot, ScopeSlot};
pub use state::load::{Loader, Prepared, prepare};
pub use state::{Publication, PublishedChange, Revisioned, State};
