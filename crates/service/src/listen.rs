//! Address of a listener: `ADDR[%DEVICE][+tproxy]`.
//!
//! A *device* (`169.254.169.254:80%br-blue`) restricts the listener to connections that arrive there, and answers leave
//! there. Two tenants' bridges can each have a listener at the same address, and the same source address on each is a
//! different guest.
//!
//! With *tproxy* (`127.0.0.1:9254+tproxy`) the socket accepts connections that the kernel's TPROXY redirects to it from
//! other addresses. Both addresses of the connection stay as the guest sent them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};

/// Backlog of connections to accept. Several times the standard library's: after an outage, the whole fleet reconnects
/// at once.
const BACKLOG: u32 = 1024;
/// Longest device name that the kernel allows.
const DEVICE_BYTES_MAX: usize = 15;
const TPROXY: &str = "+tproxy";

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address.
    pub address: SocketAddr,
    /// The only device to accept connections from, if set.
    pub device: Option<String>,
    /// Whether it accepts connections to other addresses, from TPROXY.
    pub tproxy: bool,
}

/// The step of binding that failed, with the system's error.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The device cannot be used.
    #[error("cannot use device {device}: {error}")]
    Device { device: String, error: io::Error },
    /// The socket cannot be made transparent.
    #[error("cannot take connections from TPROXY: {0}")]
    Tproxy(io::Error),
    /// The address cannot be bound.
    #[error(transparent)]
    Address(#[from] io::Error),
}

impl BindError {
    /// What to do about it; `flag` is the option that sets the address.
    pub fn hint(&self, flag: &str) -> String {
        use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
        match self {
            BindError::Device { error, .. } if error.kind() == PermissionDenied => {
                "listening on a device needs a capability: grant CAP_NET_RAW".to_owned()
            }
            BindError::Device { device, .. } => {
                format!(
                    "create the device first (ip link show {device} must find it), or choose another with {flag}"
                )
            }
            BindError::Tproxy(_) => {
                format!("this needs a capability: grant CAP_NET_ADMIN, or leave {TPROXY} out of {flag}")
            }
            BindError::Address(error) if error.kind() == AddrInUse => {
                format!("another program listens there: stop it, or choose another address with {flag}")
            }
            BindError::Address(error) if error.kind() == PermissionDenied => format!(
                "ports below 1024 need a capability: choose another with {flag}, or grant CAP_NET_BIND_SERVICE"
            ),
            BindError::Address(error) if error.kind() == AddrNotAvailable => {
                format!(
                    "no interface has that address: add it (ip addr add …), or choose another with {flag}"
                )
            }
            BindError::Address(_) => format!("choose another with {flag}"),
        }
    }
}

impl ListenAddress {
    /// Binds and listens.
    pub fn bind(&self) -> Result<TcpListener, BindError> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Connections of the previous process may still be closing.
        socket.set_reuseaddr(true)?;
        if let Some(device) = &self.device {
            let failed = |error| BindError::Device { device: device.clone(), error };
            socket.bind_device(Some(device.as_bytes())).map_err(failed)?;
        }
        if self.tproxy {
            let socket = SockRef::from(&socket);
            let set = match self.address {
                SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
                SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
            };
            set.map_err(BindError::Tproxy)?;
        }
        socket.bind(self.address)?;
        Ok(socket.listen(BACKLOG)?)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        ListenAddress { address, device: None, tproxy: false }
    }
}

impl FromStr for ListenAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_suffix(TPROXY).unwrap_or(text);
        // An IPv6 zone has a % too, within the brackets.
        let (address, device) = match rest.rsplit_once('%') {
            Some((address, device)) if !device.contains(']') => (address, Some(device)),
            Some(_) | None => (rest, None),
        };
        let is_name = |name: &str| {
            let is_invalid = |character: char| character.is_whitespace() || "/:%".contains(character);
            !name.is_empty() && name.len() <= DEVICE_BYTES_MAX && !name.contains(is_invalid)
        };
        if device.is_some_and(|name| !is_name(name)) {
            return Err(());
        }
        let (address, device) = (address.parse::<SocketAddr>().map_err(|_| ())?, device.map(str::to_owned));
        Ok(ListenAddress { address, device, tproxy: rest != text })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(device) = &self.device {
            write!(f, "%{device}")?;
        }
        if self.tproxy { f.write_str(TPROXY) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_parse_and_display() {
        for (text, device, tproxy) in [
            ("127.0.0.1:9254", None, false),
            ("169.254.169.254:80%br-blue", Some("br-blue"), false),
            ("127.0.0.1:9254+tproxy", None, true),
            ("0.0.0.0:80%br+x+tproxy", Some("br+x"), true),
            ("[::1]:80%lo", Some("lo"), false),
            ("[fe80::1%2]:80", None, false),
            ("[fe80::1%2]:80%br0", Some("br0"), false),
        ] {
            let at: ListenAddress = text.parse().unwrap();
            assert_eq!((at.device.as_deref(), at.tproxy, at.to_string().as_str()), (device, tproxy, text));
        }
    }

    #[test]
    fn malformed_listen_addresses_are_refused() {
        for text in [
            "",
            "80",
            "10.0.0.1",
            "web-0:80",
            "10.0.0.1:80+proxy",
            "+tproxy",
            "10.0.0.1:80+tproxy%br0",
            "10.0.0.1:80%",
            "10.0.0.1:80%a/b",
            "10.0.0.1:80%a b",
            "10.0.0.1:80%sixteen-letters-",
        ] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn bind_error_names_missing_device() {
        let at: ListenAddress = "127.0.0.1:0%nowhere".parse().unwrap();
        let error = at.bind().unwrap_err();
        assert!(error.to_string().contains("cannot use device nowhere"), "{error}");
        assert!(error.hint("--guest").contains("create the device first"), "{}", error.hint("--guest"));
    }
}
