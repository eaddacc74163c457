//! The agent as its owner and its neighbours meet it: what it answers, what it does when it is told to, hooks that do
//! not behave, disks that fail, and configurations with mistakes. `agent_events.rs` takes it through events.
//!
//! | where | what |
//! |---|---|
//! | `vm` | a VM with its service, its agent and the agent's signals |
//! | `signals` | what others can ask, and an endpoint that comes and goes |
//! | `orders` | SIGTERM, SIGHUP, a dry run, a second agent |
//! | `hooks` | hooks that hang, fail, flood, daemonise; word to an administrator |
//! | `foreign_words` | a platform whose words would take a terminal over |
//! | `hostile` | a platform that changes everything at each poll |
//! | `journal` | full, corrupt, and on disks that do not last |
//! | `names` | a platform that can say only later who this VM is |
//! | `page` | the rehearsal that `docs/guide/agent.md` prints |
//! | `rehearsal` | `check --run`: a rule's steps for real, and the VM put back whatever becomes of them |
//! | `trust` | files that another user can have written |
//! | `words` | `check`, `status`, `sample`, and what is said of a bad configuration |

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
