//! Nodes that talk: a leader and a follower over one store in memory, with real sockets between them.

mod audit;
mod bad_messages;
mod forwarding;
mod harness;
mod lost_answers;
mod mutual_tls;
mod unknown_callers;
