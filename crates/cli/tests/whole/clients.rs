//! The clients that people have written against this endpoint, each through a whole event.
//!
//! They call the fixed address 169.254.169.254:80, so every test makes a network namespace of its own, gives
//! that address to its loopback device and runs service and client inside it. Nothing is ever sent to that
//! address from outside: on a real Azure machine the real service would answer.
//!
//! | where | what |
//! |---|---|
//! | `namespace`, `service`, `program` | the ground: a namespace, a service in it, a client in it |
//! | `curl` | the command lines that the documents print |
//! | `azure_events_az` | Pacemaker's agent, as Debian ships it |
//! | `csharp_2017`, `python` | clients written by us after the documents' samples, which do not run as printed |
//! | `pypi` | dask-cloudprovider and ai4s-jobq, as PyPI has them |
//! | `leader` | three agents of ours, of which the first VM's approves |
//! | `callers` | who is who: the VM of the first run, bound listeners, guests behind links |
//!
//! A client that is not installed fails its test and names the package: a test that skips itself proves
//! nothing. Making namespaces takes root. Nothing waits for luck: an event is kept Started until its test has
//! seen the client see that, and then completed by hand.

mod azure_events_az;
mod callers;
mod csharp_2017;
mod curl;
mod leader;
mod pypi;
mod python;
