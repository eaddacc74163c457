//! The engine: what the service does, decided without doing it.
//!
//! [`Engine::handle`] takes one [`Input`] and the time, and gives back [`Effect`]s in the order in which they
//! must be carried out: commit this transaction, publish that scope, answer that request. It reads no clock,
//! opens no file, awaits nothing; the runtime around it (or a simulator) does, and comes back with what
//! became of it. So the simulator runs this very code through thousands of histories a second.
//!
//! **Life of a command.** A request becomes a *job*. [`plan`] works out its transaction from the state as it
//! is: the scope's next value, records that go with it, facts, an idempotency record. The records that the
//! transaction compares are locked, the commit goes out, and whatever else wants one of those records waits
//! its turn. When the commit is durable the state takes it over, the change is published, and only then is
//! the request answered: *persist, publish, answer*. If somebody else was faster (a conflict, in a cluster),
//! the job waits until the watch has shown what they did and is planned again. If nobody knows whether the
//! commit is durable, the answer says just that; the retry carries the same idempotency key and finds the
//! truth.
//!
//! **Operations** over several scopes are reconciled: [`operations`] compares an operation's record with the
//! scopes and says what is missing. The same function goes on after a crash.
//!
//! **Commands** of the exec driver follow from the records alone: what is durably Running under this process's name
//! is run once, what no longer is is stopped, and a report waits in memory until a commit has taken it up.
//!
//! | file | what is in it |
//! |---|---|
//! | [`engine`] | the loop: inputs, jobs, locks, deadlines |
//! | [`clock_watch`] | when the clock has jumped, and when it may be trusted again |
//! | [`plan`] | from a command to a transaction |
//! | `schedule` | the plans of operations |
//! | [`fleet`] | the plans that change the inventory |
//! | `joint_start` | the plans that start or complete a whole operation |
//! | [`tokens`] | the plans that change who may do what |
//! | [`draft`] | a transaction being put together |
//! | [`operations`] | what an operation still needs |
//! | [`state`] | the committed records, in memory |
//! | [`keys`] | the records' keys |
//! | [`records`] | their kinds and their bytes |
//! | [`request`] | commands, answers, failures |

// A field whose name says all there is to say has no comment.
#![allow(missing_docs)]

pub mod clock_watch;
pub mod draft;
pub mod engine;
pub mod fleet;
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
pub use engine::{
    CommandId, DriverReport, DriverRun, Effect, Engine, EngineSettings, Input, JobId, Node, RequestId,
};
pub use keys::{KeyError, RecordKey};
pub use records::{Address, DecodeError, FactBatch, Vm};
pub use request::{
    AcceptClock, AddVm, Answer, Command, EventCommand, Failure, FailureCause, FirstRun, GuestApproval,
    Idempotency, InventoryCommand, NewOperation, OperationCommand, Preview, Progress, PutScope, Request,
    ScopeChange, StoreError, TargetSelector, TokenCommand, TypedCommand, VmCommand, VmSpec,
};
pub use scope_plan::{EndedEvent, FieldChange, ScopePlan, TakenAddress, VmChange};
pub use state::inventory::{Inventory, MemberSlot, ScopeSlot};
pub use state::load::{Loader, Prepared, prepare};
pub use state::{Publication, PublishedChange, Revisioned, State};
