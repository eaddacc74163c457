//! The settings kernel, which `serve` and the agent read their configuration by.
//!
//! A [`Schema`] lists what may be written, with its meaning. A [`Reader`] collects what the file, the environment and the
//! flags say. Each setting is then asked for with its [`kind`]: a flag goes before the environment, that before the file,
//! that before the default. All that is said is checked, also what another source overrides. [`Reader::finish`] gives
//! every mistake at once, with its place and its cure.
//!
//! Tables that only the file has (the agent's rules) are read from [`Reader::top`] on, by the same kinds. The kernel does no
//! IO but [`read_text`] and [`Sources::of_process`]; which file to trust is for its users to say.

mod errors;
mod file;
pub mod kind;
pub mod print;
mod reader;
pub mod schema;
mod sources;
pub mod span;
pub mod suggest;

pub use errors::ConfigErrors;
pub use file::{Table, read_text};
pub use reader::{Entry, Reader};
pub use schema::Schema;
pub use sources::{FlagValue, Source, Sources};
