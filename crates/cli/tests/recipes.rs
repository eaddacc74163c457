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
//! | `ground` | a VM: the service that knows it, the recipe's configuration, the agent |
//! | `redis` | Redis servers, for two recipes |
//! | `site` | HAProxy with two servers behind it, for two more |
//! | `rehearsal` | what `recipes/README.md` tells its reader to type |
//! | the rest | a recipe each |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[path = "recipes/checkpoint.rs"]
mod checkpoint;
#[path = "recipes/degraded_hardware.rs"]
mod degraded_hardware;
#[path = "recipes/event_log.rs"]
mod event_log;
#[path = "recipes/graceful_shutdown.rs"]
mod graceful_shutdown;
#[path = "recipes/ground.rs"]
mod ground;
#[path = "recipes/health_probe.rs"]
mod health_probe;
#[path = "recipes/kubernetes_node.rs"]
mod kubernetes_node;
#[path = "recipes/load_balancer.rs"]
mod load_balancer;
#[path = "clients/namespace.rs"]
#[allow(dead_code, reason = "the tests of clients use the rest")]
mod namespace;
#[path = "recipes/queue_worker.rs"]
mod queue_worker;
#[path = "recipes/redis.rs"]
mod redis;
#[path = "recipes/redis_failover.rs"]
mod redis_failover;
#[path = "recipes/rehearsal.rs"]
mod rehearsal;
#[path = "clients/service.rs"]
#[allow(dead_code, reason = "the tests of clients use the rest")]
mod service;
#[path = "recipes/site.rs"]
mod site;
