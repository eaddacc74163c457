//! Connection floods against the guest listener.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Flood, REQUESTS, SOURCES, lines_with};
use crate::support::namespace::Namespace;
use crate::support::{Service, connect, exchange, wait_for};

const POLL: &str =
    "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n";
/// Connection limit; a flood has more, and more than unknown callers may have.
const PLACES: &str = "400";
const MANY: usize = 640;
const VM: Ipv4Addr = Ipv4Addr::new(127, 1, 7, 1);

/// A service with `count` VMs from 127.1.7.1 on.
fn served(vms: usize) -> Service {
    served_with(("NOTBEFORE_GUEST_LIMITS_CONNECTIONS_MAX", PLACES), vms)
}

fn served_with(limit: (&str, &str), vms: usize) -> Service {
    let service = Service::start_with(&[("NOTBEFORE_LOG", "warn"), limit], &[]);
    let mut yaml = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n".to_owned();
    for n in 1..=vms {
        let _ = writeln!(yaml, "      - {{ name: web-{n}, addresses: [127.1.7.{n}] }}");
    }
    service.apply_fleet(&yaml);
    service
}

/// Polls of a VM: each on a new connection, and all on one connection.
fn polls(service: &Service, flood: &mut Flood<'_>) -> [usize; 2] {
    let alone = format!("{POLL}Connection: close\r\n\r\n");
    let each = flood.answered(|| exchange(VM.into(), service.guest, alone.as_bytes()).status);
    let mut kept = connect(VM.into(), service.guest).unwrap();
    [each, flood.answered(|| poll_again(&mut kept))]
}

/// A poll on a connection that stays open.
fn poll_again(stream: &mut TcpStream) -> u16 {
    let _ = stream.write_all(format!("{POLL}\r\n").as_bytes());
    let mut text = Vec::new();
    let mut part = [0; 4096];
    while !text.ends_with(b"}") {
        match stream.read(&mut part) {
            Ok(read) if read > 0 => text.extend_from_slice(&part[..read]),
            Ok(_) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&text).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[test]
fn unknown_callers_do_not_block_vm_polls() {
    let whole = format!("{POLL}\r\n");
    let payloads: [&[u8]; 3] = [b"", b"GET /metadata", whole.as_bytes()];
    for sources in SOURCES {
        let service = served(1);
        let mut flood = Flood::new(service.guest, sources, &payloads);
        flood.open(MANY);
        assert_eq!(polls(&service, &mut flood), [REQUESTS; 2], "from {sources} sources");
        let (_, apart) = lines_with(&service.log(), "too many connections of callers that are no VM");
        assert!(apart, "{}", service.log());
    }
}

#[test]
fn local_unknown_callers_are_limited() {
    let service = served(1);
    let flood: Vec<TcpStream> = (0..MANY)
        .map(|_| {
            let mut stream = connect(Ipv4Addr::LOCALHOST.into(), service.guest).unwrap();
            let _ = stream.write_all(b"GET /metadata");
            stream
        })
        .collect();
    let mut none = Flood::new(service.guest, 1, &[b""]);
    assert_eq!(polls(&service, &mut none), [REQUESTS; 2]);
    drop(flood);
}

#[test]
fn partial_requests_of_other_vms_do_not_block_polls() {
    let service = served(12);
    let post = POLL.replace("GET", "POST");
    let halves = ["GET /metadata".to_owned(), format!("{post}Content-Length: 500\r\n\r\n{{")];
    let half = |n: usize| {
        let mut stream = connect(Ipv4Addr::new(127, 1, 7, 2 + (n % 11) as u8).into(), service.guest).unwrap();
        let _ = stream.write_all(halves[n % halves.len()].as_bytes());
        stream
    };
    let mut flood: Vec<TcpStream> = (0..MANY).map(half).collect();
    let alone = format!("{POLL}Connection: close\r\n\r\n");
    let mut kept = connect(VM.into(), service.guest).unwrap();
    // At once: on a busy machine the flood takes so long that a connection without a request would be closed.
    assert_eq!(poll_again(&mut kept), 200, "on a new connection");
    for n in 0..REQUESTS {
        flood.push(half(n));
        assert_eq!(exchange(VM.into(), service.guest, alone.as_bytes()).status, 200, "{n}");
        assert_eq!(poll_again(&mut kept), 200, "{n}, on the same connection");
    }
}

/// A connection that sent garbage keeps its slot for 100 ms, so a VM that keeps sending garbage is refused on connect,
/// at little cost to others.
#[test]
fn malformed_requests_are_limited_per_slot() {
    let service = served_with(("NOTBEFORE_GUEST_LIMITS_CONNECTIONS_PER_SOURCE_MAX", "1"), 1);
    #[allow(clippy::disallowed_methods, reason = "this measures, and decides nothing")]
    let begun = std::time::Instant::now();
    for n in 0..4 {
        wait_for("an answer to garbage", || {
            let mut stream = connect(VM.into(), service.guest).ok()?;
            let _ = stream.write_all(b"\x01\x02 is no request\r\n\r\n");
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).ok()?;
            assert_eq!(&answer, b"HTTP/1.1 400", "{n}");
            Some(())
        });
    }
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
}

#[test]
fn vm_added_while_queued_is_answered() {
    let service = served(1);
    let mut stream = connect([127, 1, 7, 9].into(), service.guest).unwrap();
    stream.write_all(POLL.as_bytes()).unwrap();
    service.cli(&["vm", "add", "new", "--scope", "default/default/web", "--address", "127.1.7.9"]);
    stream.write_all(b"\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

/// An unknown caller with a whole /64 prefix.
#[test]
fn ipv6_prefix_counts_as_one_unknown_caller() {
    let namespace = Namespace::new();
    namespace.ip("-6 route add local fd00:7::/64 dev lo");
    namespace.ip("addr add fd00:8::1/128 dev lo");
    let answered = inside(&namespace, || {
        let variables = [("NOTBEFORE_LOG", "warn"), ("NOTBEFORE_GUEST_LIMITS_CONNECTIONS_MAX", PLACES)];
        let service = Service::start_with(&variables, &["--guest", "[fd00:8::1]:9254"]);
        service.apply_fleet(
            "scopes:\n  - { name: web, kind: availability-set, vms: [ { name: web-0, addresses: [\"fd00:7::1\"] } ] }\n",
        );
        // The VM is one of them, recognised by its address.
        let vm: IpAddr = "fd00:7::1".parse().unwrap();
        let mut flood = Vec::new();
        let mut unknown_caller = |n: usize| {
            let source: IpAddr = format!("fd00:7::1:{n:x}").parse().unwrap();
            let mut stream = connect_v6(source, service.guest).unwrap();
            let _ = stream.write_all(b"GET /metadata");
            flood.push(stream);
        };
        (0..MANY).for_each(&mut unknown_caller);
        (0..REQUESTS)
            .filter(|n| {
                unknown_caller(MANY + n);
                let mut stream = connect_v6(vm, service.guest).unwrap();
                poll_again(&mut stream) == 200
            })
            .count()
    });
    assert_eq!(answered, REQUESTS);
}

/// Runs a closure in a namespace, on a new thread; its child processes are there too.
fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(Path::new("/run/netns").join(namespace.name())).unwrap();
    let enter = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::scope(|scope| match scope.spawn(enter).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn connect_v6(source: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None)?;
    // The namespace accepts every address of the prefix, without configuring them on an interface.
    socket.set_freebind_v6(true)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&to.into())?;
    socket.set_read_timeout(Some(crate::support::PATIENCE))?;
    Ok(socket.into())
}
