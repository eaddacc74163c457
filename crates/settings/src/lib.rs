//! Layered settings: file, environment and flags against one schema, for `serve` and the agent.
//!
//! A [`Schema`] lists the keys and their meaning. A [`Reader`] collects values from the file, the environment and the
//! flags. Each setting is then read with its [`kind`]. A flag overrides the environment, which overrides the file,
//! which overrides the default. All values are checked, including overridden ones. [`Reader::finish`] returns every
//! error at once, with its place and what to do.
//!
//! Tables that only the file has (the agent's rules) are read from [`Reader::top`], with the same kinds. The crate does
//! no IO except [`read_text`] and [`Sources::of_process`]; its users decide which file to trust.

mod errors;
mod file;
pub mod kind;
pub mod print;
mod reader;
pub mod schema;
mod sources;
pub mod span;
pub mod suggest;
pub mod yaml;

pub use errors::ConfigErrors;
pub use file::{Table, read_text};
pub use reader::{Entry, Reader};
pub use schema::Schema;
pub use sources::{FlagValue, Source, Sources};
