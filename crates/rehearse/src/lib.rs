//! Rehearsals: play events to a maintenance handler, record what it does, and judge it.
//!
//! ```text
//!  scenario ──► player ──► stage: service in memory, handlers ──► recording ──► judge ──► verdict ──► report
//!  what happens  (pure)    carries out, records                   (data)        (pure)
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`scenario`] | VMs, steps and expectations, read from YAML; [`library`] has those that come with the program |
//! | [`pace`] | how long the waits of a scenario take |
//! | [`player`] | decides what is due; pure |
//! | [`platform`] | the real service in memory, with a clock that can be moved; useful alone, in Rust tests |
//! | [`handler`], [`namespace`] | handlers as processes, and a network for those with a fixed address |
//! | [`keeper`] | ends the handlers of a rehearsal that was killed |
//! | [`stage`] | carries out what the player decides, and records |
//! | [`recording`] | what happened |
//! | [`judge`] | compares the recording with the expectations; pure. It knows nothing of particular handlers |
//! | [`by_hand`] | a rehearsal in a Rust test, with a clock that the test moves |
//! | [`doctor`] | plays the whole library, several scenarios side by side |
//! | [`report`] | a recording and its verdict as text, JUnit XML and HTML |

pub mod by_hand;
mod crowd;
mod directory;
pub mod doctor;
pub mod handler;
pub mod judge;
pub mod keeper;
pub mod library;
pub mod namespace;
mod operator;
pub mod pace;
pub mod platform;
pub mod player;
pub mod recording;
pub mod report;
pub mod scenario;
pub mod stage;
pub mod verdict;
