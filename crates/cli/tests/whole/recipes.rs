//! The recipes, each with the real agent, the real service and the real program that it is about.
//!
//! A recipe's `agent.toml` is used as it stands, but for the addresses and paths that a test names; its scripts are
//! copied to where the test says they are installed. Every recipe goes through a whole event (before, approval, start,
//! end, after), and those that undo something through a cancelled one. HAProxy and Redis are Debian's. Two programs are
//! played: `kubectl`, for there is no cluster, and `systemctl`, for nobody wants a test to stop units. What is played
//! keeps its state in files and writes its calls down.
//!
//! | where | what |
//! |---|---|
//! | `vm` | a VM: the service that knows it, the recipe's configuration, the agent |
//! | `redis` | Redis servers, for two recipes |
//! | `site` | HAProxy with two servers behind it, for two more |
//! | `rehearsal` | what `recipes/README.md` tells its reader to type |
//! | the rest | a recipe each |

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
