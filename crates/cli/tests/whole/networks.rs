//! Hypervisor networks, each as `docs/guide/hypervisor.md` prints it.
//!
//! The page's commands are read from the page and run. The hypervisor is a network namespace with a bridge; its guests
//! are namespaces behind ports of that bridge. All of it is removed with the test. Only `systemctl reload` is replaced,
//! by the signal that it would send.
//!
//! | module | content |
//! |---|---|
//! | `page` | the page and its named blocks |
//! | `machine` | namespaces, the service in one, guests in others, and the checks for every setup |
//! | `routes` | address on the bridge, redirect, TPROXY, DHCP |
//! | `proxy` | haproxy with signatures, and callers without valid ones |
//! | `tenants` | two bridges with overlapping addresses |
//! | `guard` | a guest that spoofs its neighbour's address, with and without the rules |
//!
//! Programs come from Debian; a missing one fails its test and names the package.

mod guard;
mod machine;
mod page;
mod proxy;
mod routes;
mod tenants;
