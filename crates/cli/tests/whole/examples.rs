//! The sample clients in `examples/`, each through whole events of the real service.
//!
//! They print the same lines, so that one story is told to all of them: a VM that shares its document with another,
//! an event for each, a question before the approval. A second service knows nothing but trouble. PowerShell is not to
//! be had where tests run, so its samples are only read: by a grammar, and for the words that the others use.

mod faults;
mod operator;
mod powershell;
mod samples;
