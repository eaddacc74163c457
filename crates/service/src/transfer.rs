//! Export and import of the whole store as JSON lines.
//!
//! An export is the backup, and the way to move to another store. It is a snapshot at one revision; the service keeps
//! running. It contains all records byte for byte: scopes with incarnations and live events, operations, history, and
//! the stored answers for repeated requests. A service that starts from it continues as after a restart: documents are
//! the same, overdue events start, and interrupted changes are finished.
//!
//! | file | content |
//! |---|---|
//! | [`lines`] | writes the lines; reads them and checks their order, count and hash |
//! | [`export`] | from a snapshot to lines, with back-pressure |
//! | [`kinds`] | checks each record, and the consistency of all records |
//! | [`import`] | from lines to a new store, all or nothing |
//! | [`damaged`] | checks a store that no service uses, and exports its undamaged records |
//!
//! An import creates a new store and never changes an existing one. Merging two fleets is not supported: incarnations
//! and addresses could conflict.

pub mod damaged;
pub mod export;
pub mod import;
pub mod kinds;
pub mod lines;
