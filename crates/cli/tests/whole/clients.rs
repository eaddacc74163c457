//! Third-party clients of the guest endpoint, each through a whole event.
//!
//! They call the fixed address 169.254.169.254:80. Every test creates a network namespace with that address on loopback
//! and runs service and client inside it. Nothing is sent to that address from outside: on an Azure machine the real
//! service would answer.
//!
//! | module | content |
//! |---|---|
//! | `namespace`, `service`, `program` | a namespace, a service in it, a client in it |
//! | `curl` | the commands that Azure's documentation prints |
//! | `azure_events_az` | Pacemaker's agent from Debian |
//! | `csharp_2017`, `python` | our versions of the documentation's samples, which do not run as printed |
//! | `pypi` | dask-cloudprovider and ai4s-jobq from PyPI |
//! | `leader` | three of our agents; that of the first VM approves |
//! | `callers` | caller identity: first-run VM, bound listeners, guests behind links |
//!
//! A client that is not installed fails its test and names the package: a skipped test proves nothing. Creating
//! namespaces needs root. Tests do not depend on timing: an event stays Started until the test has seen the client
//! notice it, then the test completes it.

mod azure_events_az;
mod callers;
mod csharp_2017;
mod curl;
mod leader;
mod pypi;
mod python;
