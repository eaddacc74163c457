//! Export and import: everything the store holds as lines of JSON, and a store from such lines.
//!
//! An export is the backup, and the road from one store to another. It shows the store at one revision while
//! the service goes on; everything that matters comes along, byte by byte: scopes with their incarnations and
//! live events, operations, history, and the answers kept for those who ask twice. So a service that starts
//! from it goes on where the other stood: documents are the same, what fell due meanwhile happens, what was
//! cut short is finished, as after a restart.
//!
//! | file | what is in it |
//! |---|---|
//! | [`lines`] | the lines themselves: written, and read with their order, count and hash checked |
//! | [`export`] | from a snapshot to lines, at the pace of whoever reads them |
//! | [`kinds`] | whether a record is what its key says, and fits the others |
//! | [`import`] | from lines to a new store, whole or not at all |
//! | [`damaged`] | what is wrong with a store that no service uses, and the lines of what is left of it |
//!
//! An import makes a new store and never touches one that is there. Merging two fleets would have to choose
//! whose incarnations and whose addresses count, and there is no right choice.

pub mod damaged;
pub mod export;
pub mod import;
pub mod kinds;
pub mod lines;
