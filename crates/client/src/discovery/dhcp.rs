//! DHCP client for option 245: sends a DISCOVER on every Ethernet interface that is up and waits for offers.
//!
//! Needs root for port 68. It does not disturb a DHCP client on the same machine: the port is shared, offers are
//! requested as broadcasts, which all sockets receive, and each one is matched to our transaction.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::packet::{self, MESSAGE_BYTES_MAX, PacketError, Transaction};
use crate::random;

/// Timeout of each attempt. A server may probe first whether an address is in use, which takes one to three seconds.
const TRIES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(4)];
/// Most interfaces used, physical devices first. A VM has few of them; a container host has hundreds of virtual ones.
const INTERFACES_MAX: usize = 16;
/// Most unrelated packets read while waiting.
const FOREIGN_PACKETS_MAX: usize = 1_000;

const CLIENT_PORT: u16 = 68;
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::BROADCAST), 67);
/// Linux's interface type of Ethernet.
const ETHERNET: &str = "1";

/// An interface to send on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interface {
    name: String,
    mac: [u8; 6],
    /// Whether it has a device, unlike bridges and virtual pairs.
    device: bool,
}

/// Result per interface: an address, or why there is none.
pub type InterfaceResults = Vec<(String, Result<Ipv4Addr, AskError>)>;

/// Why an interface yielded no address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum AskError {
    #[error("asking DHCP needs root")]
    NeedsRoot,
    #[error("cannot ask DHCP: {0}")]
    Socket(String),
    #[error("no DHCP server answers within {0:?}")]
    Silence(Duration),
    /// Servers answer, but without the endpoint.
    #[error("{0}")]
    Useless(String),
    #[error("{FOREIGN_PACKETS_MAX} DHCP packets that do not help")]
    Strangers,
}

/// Sends on all interfaces at once.
pub async fn ask() -> InterfaceResults {
    let interfaces = interfaces(Path::new("/sys/class/net"));
    let mut asking = JoinSet::new();
    for interface in interfaces {
        asking.spawn(async move {
            let answer = ask_on(&interface).await;
            (interface.name, answer)
        });
    }
    let mut asked = asking.join_all().await;
    asked.sort();
    asked
}

async fn ask_on(interface: &Interface) -> Result<Ipv4Addr, AskError> {
    let socket =
        open(&interface.name).map_err(|error| match error.kind() == io::ErrorKind::PermissionDenied {
            true => AskError::NeedsRoot,
            false => AskError::Socket(error.to_string()),
        })?;
    let transaction = Transaction { xid: random::number().to_be_bytes(), mac: interface.mac };
    let question = packet::discover(transaction);
    let mut useless = None;
    for patience in TRIES {
        socket.send_to(&question, SERVER).await.map_err(|error| AskError::Socket(error.to_string()))?;
        match timeout(patience, answer(&socket, transaction, &mut useless)).await {
            Ok(answered) => return answered,
            // Servers answer, and none has the option.
            Err(_) if useless.is_some() => break,
            Err(_) => {}
        }
    }
    let silence = || AskError::Silence(TRIES.iter().sum());
    Err(useless.map_or_else(silence, |error| AskError::Useless(error.to_string())))
}

/// The first offer for us with option 245. Offers without it are noted while waiting for other servers.
async fn answer(
    socket: &UdpSocket,
    transaction: Transaction,
    useless: &mut Option<PacketError>,
) -> Result<Ipv4Addr, AskError> {
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    for _ in 0..FOREIGN_PACKETS_MAX {
        let (bytes, _) =
            socket.recv_from(&mut buffer).await.map_err(|error| AskError::Socket(error.to_string()))?;
        match packet::endpoint_in(&buffer[..bytes], transaction) {
            Ok(address) => return Ok(address),
            Err(PacketError::NotOurs | PacketError::NoAnswer) => {}
            Err(
                error
                @ (PacketError::Short { .. } | PacketError::NoOption | PacketError::OptionLength { .. }),
            ) => *useless = Some(error),
        }
    }
    Err(AskError::Strangers)
}

fn open(interface: &str) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT)).into())?;
    UdpSocket::from_std(socket.into())
}

/// Ethernet interfaces that are up, physical devices first, because the platform's network is behind one of them.
fn interfaces(class: &Path) -> Vec<Interface> {
    let Ok(entries) = fs::read_dir(class) else {
        return Vec::new();
    };
    let interface = |entry: fs::DirEntry| {
        let read = |what: &str| fs::read_to_string(entry.path().join(what)).ok();
        let is = |what: &str, expected: &str| read(what).is_some_and(|text| text.trim() == expected);
        if !is("type", ETHERNET) || !is("carrier", "1") {
            return None;
        }
        Some(Interface {
            name: entry.file_name().into_string().ok()?,
            mac: mac(read("address")?.trim())?,
            device: entry.path().join("device").exists(),
        })
    };
    let mut found: Vec<Interface> = entries.filter_map(Result::ok).filter_map(interface).collect();
    found.sort_by(|a, b| b.device.cmp(&a.device).then_with(|| a.name.cmp(&b.name)));
    found.truncate(INTERFACES_MAX);
    found
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_up_ethernet_interfaces_are_used() {
        let class = tempfile::tempdir().unwrap();
        let put = |name: &str, kind: &str, carrier: &str, address: &str| {
            let place = class.path().join(name);
            fs::create_dir(&place).unwrap();
            for (file, text) in [("type", kind), ("carrier", carrier), ("address", address)] {
                fs::write(place.join(file), format!("{text}\n")).unwrap();
            }
        };
        put("eth1", "1", "1", "02:00:00:00:00:0a");
        put("eth0", "1", "1", "02:00:00:00:00:09");
        put("eth2", "1", "0", "02:00:00:00:00:0b");
        put("lo", "772", "1", "00:00:00:00:00:00");
        put("odd", "1", "1", "02:00");
        let found = interfaces(class.path());
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["eth0", "eth1"]);
        assert_eq!(found[0].mac, [2, 0, 0, 0, 0, 9]);
        assert!(interfaces(Path::new("/nowhere")).is_empty());
        // A container host: its own device is used, whatever its name.
        for number in 10..40 {
            put(&format!("cali{number}"), "1", "1", &format!("02:00:00:00:01:{number}"));
        }
        put("wan", "1", "1", "02:00:00:00:00:0c");
        fs::create_dir(class.path().join("wan/device")).unwrap();
        let found = interfaces(class.path());
        assert_eq!((found[0].name.as_str(), found.len()), ("wan", INTERFACES_MAX));
    }
}
