//! The invariants of the design, each a function that checks what happened.
//!
//! They do not depend on the model: they also find a mistake that model and engine share.
//!
//! | | invariant | checked by |
//! |---|---|---|
//! | 1 | acknowledged is durable | [`acknowledged_is_durable`] |
//! | 2 | a command takes effect at most once | [`at_most_once`] |
//! | 3 | phases never go back | [`phases_never_go_back`] |
//! | 4 | incarnation + 1 exactly when the document changes | [`incarnation_counts_documents`] |
//! | 5 | no start before NotBefore without approval or a named cause | [`starts_are_justified`] |
//! | 6 | no planned event starts while an event of another update domain is started | [`update_domains_take_turns`] |
//! | 7 | a VM sees and touches only its scope | [`only_members_approve`], [`foreign_is_unknown`] |
//! | 8 | an address maps to at most one VM | [`addresses_are_unambiguous`] |
//! | 9 | published ≤ committed | [`published_is_committed`] |
//! | 10 | `next_due` > now after `apply` | [`nothing_due_is_left`] |
//! | 11 | NotBefore − scheduled ≥ the notice of its kind | [`notice_is_given`] |
//! | 12 | once faults stop, everything due happens within a bound | [`crate::World::drain`] |
//! | 13 | the order of Resources is fixed and the same for every reader | [`order_of_resources_is_fixed`] |
//! | | what the design says of hosts | [`hosts_have_records`], [`host_states_follow_operations`], [`redeployed_vms_get_another_host`] |
//! | | what the design says of commands | [`spawned_as_committed`], [`commands_go_on`], [`ends_when_done`] |

mod commands;
mod hosts;
mod scopes;
mod service;

pub use commands::*;
pub use hosts::*;
pub use scopes::*;
pub use service::*;

use crate::conformance::Violation;

/// The result of a check.
pub type Check = Result<(), Violation>;

fn ensure(holds: bool, number: u8, words: &'static str, detail: impl FnOnce() -> String) -> Check {
    match holds {
        true => Ok(()),
        false => Err(Violation { number: Some(number), words, detail: detail() }),
    }
}

/// Like `ensure`, for a condition without a number.
fn ensure_also(holds: bool, words: &'static str, detail: impl FnOnce() -> String) -> Check {
    match holds {
        true => Ok(()),
        false => Err(Violation { number: None, words, detail: detail() }),
    }
}
