//! The agent: its signals, orders, misbehaving hooks, failing disks and invalid configurations. Whole events are in
//! `agent_events.rs`.
//!
//! | module | content |
//! |---|---|
//! | `vm` | a VM with its service, its agent and the agent's signals |
//! | `signals` | HTTP signals, and an endpoint that comes and goes |
//! | `orders` | SIGTERM, SIGHUP, dry run, second agent |
//! | `commands` | `reload`, `retry`, `history`, exit codes of `status`; a wrong rule is mended while an event waits |
//! | `hooks` | hooks that hang, fail, flood or daemonise; notifications |
//! | `untrusted_text` | a platform that sends control characters |
//! | `hostile` | a platform that changes everything at each poll |
//! | `journal` | full, corrupt and volatile disks |
//! | `names` | a platform that provides the VM's name late |
//! | `page` | the rehearsal in `docs/guide/agent.md` |
//! | `rehearsal` | `check --run`: runs a rule's steps, and restores the VM |
//! | `trust` | files that another user may have written |
//! | `messages` | `check`, `status`, `sample`, and configuration errors |

mod commands;
mod hooks;
mod hostile;
mod journal;
mod messages;
mod names;
mod orders;
mod page;
mod rehearsal;
mod signals;
mod trust;
mod untrusted_text;
mod vm;
