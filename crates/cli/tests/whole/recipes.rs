//! The recipes, each with the real agent, the real service and the real program.
//!
//! A recipe's `agent.toml` is used unchanged, except for addresses and paths; its scripts are copied to the test's
//! paths. Every recipe handles a whole event (before, approval, start, end, after), and those that undo something a
//! cancelled one. HAProxy and Redis are Debian's. Two programs are fake: `kubectl`, because there is no cluster, and
//! `systemctl`, because a test must not stop units. Fakes keep their state in files and record their calls.
//!
//! | module | content |
//! |---|---|
//! | `vm` | a VM: its service, the recipe's configuration, the agent |
//! | `redis` | Redis servers, for two recipes |
//! | `site` | HAProxy with two servers behind it, for two more |
//! | `rehearsal` | the commands in `recipes/README.md` |
//! | others | one recipe each |

mod checkpoint;
mod degraded_hardware;
mod event_log;
mod graceful_shutdown;
mod health_probe;
mod kubernetes_node;
mod load_balancer;
mod queue_worker;
mod redis;
mod redis_failover;
mod rehearsal;
mod site;
mod vm;
