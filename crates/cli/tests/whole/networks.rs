//! The ways onto a hypervisor, each as `docs/guide/hypervisor.md` prints it.
//!
//! The page's commands are taken from the page and run, so that what is printed is what was tried. The
//! hypervisor of the page is a network namespace with a bridge, its guests are namespaces behind ports of that
//! bridge; nothing of it exists outside of them, and all of it goes with the test. The one command that is played
//! is `systemctl reload`, which becomes the signal that it would send.
//!
//! | where | what |
//! |---|---|
//! | `page` | the page and its named blocks |
//! | `machine` | namespaces, the service in one, guests in others, what every way must achieve |
//! | `routes` | the address on the bridge, the redirect, TPROXY, DHCP |
//! | `proxy` | haproxy that signs, and everyone who only says so |
//! | `tenants` | two bridges with the same addresses |
//! | `guard` | a guest that takes its neighbour's address, without the rules and with them |
//!
//! Programs come from Debian; one that is missing fails its test and names the package.

mod guard;
mod machine;
mod page;
mod proxy;
mod routes;
mod tenants;
