//! Private network namespaces that own 169.254.169.254.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use notbefore_rehearse::handler::HandlerEvent;
use notbefore_rehearse::namespace::{Namespace, NamespaceError, REEXECUTED, reexec_unprivileged};
use notbefore_rehearse::recording::Marker;

use crate::support::{exited, shell, spec, start, with_marker};

/// Azure's address, in a namespace that the test made.
fn address() -> SocketAddr {
    "169.254.169.254:80".parse().unwrap()
}

/// The name of the network namespace of this thread.
fn own_network() -> String {
    std::fs::read_link("/proc/thread-self/ns/net").unwrap().display().to_string()
}

#[tokio::test]
async fn handler_reaches_the_address_and_the_hook_in_its_namespace() {
    let before = own_network();
    let namespace = Namespace::create().unwrap();
    let listener = namespace.bind(address()).unwrap();
    // Another namespace has an address of its own.
    let other = Namespace::create().unwrap();
    let _other_listener = other.bind(address()).unwrap();
    assert_eq!(own_network(), before, "only the namespace's thread is in it");

    let server = std::thread::spawn(move || {
        let (mut stream, from) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        (from.ip().to_string(), String::from_utf8_lossy(&request[..length]).into_owned())
    });
    // A handler that is not in the namespace must not send anything to the address.
    let inside = namespace.run(|| Ok(own_network())).unwrap();
    let script = "import os, sys, urllib.request as r
if os.readlink('/proc/self/ns/net') != sys.argv[1]: sys.exit('not in the namespace')
print(r.urlopen('http://169.254.169.254/metadata').read().decode(), flush=True)
print(r.urlopen(os.environ['NOTBEFORE_HOOK'] + '/drained').status, flush=True)
print(sorted(os.listdir('/proc/self/net/dev_snmp6')), flush=True)
";
    let spec = with_marker(spec(&["python3", "-c", script, &inside]), Marker::Drained, "call");
    let mut running = start(&spec, Some(&namespace)).await;
    // The handler keeps the namespace.
    drop(namespace);
    assert_eq!(running.line().await, "hello");
    let (from, request) = server.join().unwrap();
    assert_eq!(from, "169.254.169.254");
    assert!(request.starts_with("GET /metadata HTTP/1.1"), "{request}");
    assert_eq!(running.next().await, HandlerEvent::Marker(Marker::Drained));
    assert_eq!(running.line().await, "204");
    assert_eq!(running.line().await, "['lo']");
    assert_eq!(running.next().await, exited(0));
}

#[tokio::test]
async fn repeated_handler_stays_in_its_namespace() {
    let namespace = Namespace::create().unwrap();
    let inside = namespace.run(|| Ok(own_network())).unwrap();
    assert_ne!(inside, own_network());
    let mut spec = shell("readlink /proc/self/ns/net");
    spec.repeat = Some(std::time::Duration::ZERO);
    let mut running = start(&spec, Some(&namespace)).await;
    for _ in 0..3 {
        assert_eq!(running.line().await, inside);
    }
    running.handler.stop().await;
}

#[test]
fn failed_work_leaves_the_namespace_usable() {
    let namespace = Namespace::create().unwrap();
    let taken = namespace.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = namespace.bind(taken.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    namespace.bind("127.0.0.1:0".parse().unwrap()).unwrap();
}

/// Run by the next test as an ordinary user, in a process of its own.
#[test]
#[ignore = "run by ordinary_user_gets_a_namespace_by_reexecution"]
fn as_ordinary_user() {
    match Namespace::create() {
        Ok(namespace) => {
            namespace.bind(address()).unwrap();
            println!("bound, reexecuted: {}", std::env::var_os(REEXECUTED).is_some());
        }
        Err(error @ NamespaceError::NotPermitted(_)) => {
            println!("before: {error}");
            panic!("after: {}", reexec_unprivileged());
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn ordinary_user_gets_a_namespace_by_reexecution() {
    // The user may not read the build's directories.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("it");
    // By another process: see write_program.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |variables: &[(&str, &str)]| {
        let done = Command::new(&program)
            .args(["--exact", "namespace::as_ordinary_user", "--ignored", "--nocapture", "--test-threads=1"])
            .envs(variables.iter().copied())
            .current_dir("/")
            .gid(65534)
            .uid(65534)
            .output()
            .unwrap();
        let text = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (has_succeeded, text) = run(&[]);
    assert!(has_succeeded && text.contains("bound, reexecuted: true"), "{text}");
    assert!(text.contains("run as root, or with 'unshare --map-root-user'"), "{text}");

    let (has_succeeded, text) = run(&[(REEXECUTED, "1")]);
    assert!(!has_succeeded && text.contains("after: cannot create a network namespace"), "{text}");
    let (has_succeeded, text) = run(&[("PATH", "/nonexistent")]);
    assert!(!has_succeeded && text.contains("install util-linux, or run as root"), "{text}");
}
