//! The sample clients in `examples/`, each through whole events with the real service.
//!
//! They print the same lines, so one scenario tests all of them: a VM that shares its document with another, an event
//! for each, and a question before the approval. A second, faulty service tests errors. PowerShell is not available
//! where tests run, so its samples are only parsed and compared with the others.

mod ci;
mod faults;
mod operator;
mod powershell;
mod samples;
