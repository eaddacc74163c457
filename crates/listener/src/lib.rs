//! Shared parts of the HTTP listeners of service and agent: admission, check of `Host`, write timeout.
//!
//! | file | content |
//! |---|---|
//! | `by_source` | groups connections by source; finds the oldest of the source that has most |
//! | `token_quotas` | limits per token: connections, streams |
//! | `admission` | the policy: which connection is evicted for a new one |
//! | `slots` | applies the policy: notifies evicted connections |
//! | `host` | the check of `Host` against DNS rebinding |
//! | `write_timeout` | a socket that fails when its peer reads no byte for too long |
//! | `log_limit` | at most one log line a second |
//!
//! `by_source`, `token_quotas`, `admission`, `host` and `log_limit` are pure; ids and times are arguments. The guest
//! listener has limits of its own and shares `by_source` and `log_limit`.

pub mod admission;
pub mod by_source;
pub mod host;
pub mod log_limit;
pub mod slots;
pub mod token_quotas;
pub mod write_timeout;
