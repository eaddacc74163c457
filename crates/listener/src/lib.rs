//! What the HTTP listeners of the service and the agent share: which connections stay open when there are too many,
//! which `Host` is answered, and how long a client may leave bytes unread.
//!
//! | file | what it does |
//! |---|---|
//! | `by_source` | groups connections by source, and names the oldest of the source that has most |
//! | `token_quotas` | what each token may hold: connections, streams |
//! | `admission` | the policy: who is let in, who is closed for it |
//! | `slots` | the policy at work: tells the chosen connection to close |
//! | `host` | the check of `Host` against DNS rebinding |
//! | `write_timeout` | a socket that fails when its peer takes no byte for too long |
//! | `log_limit` | at most one log line a second |
//!
//! `by_source`, `token_quotas`, `admission`, `host` and `log_limit` decide and do nothing else; ids and times are arguments.
//! The guest listener has limits of its own and shares `by_source` and `log_limit`.

pub mod admission;
pub mod by_source;
pub mod host;
pub mod log_limit;
pub mod slots;
pub mod token_quotas;
pub mod write_timeout;
