//! Out of HAProxy's pool before the event, back in after it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use super::ground::{Vm, free_port, need};
use super::support::wait_for;

/// A web server that says its name. What asks it for `/slow` waits until it is let go.
struct Server {
    address: SocketAddr,
    held: Arc<(Mutex<Held>, Condvar)>,
}

#[derive(Default)]
struct Held {
    waiting: u32,
    let_go: bool,
}

impl Server {
    fn new(name: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::new((Mutex::new(Held::default()), Condvar::new()));
        let shared = held.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream.unwrap(), name, &shared));
            }
        });
        Self { address, held }
    }

    fn waiting(&self) -> u32 {
        self.held.0.lock().unwrap().waiting
    }

    fn let_go(&self) {
        self.held.0.lock().unwrap().let_go = true;
        self.held.1.notify_all();
    }
}

fn serve(mut stream: TcpStream, name: &str, (held, gone): &(Mutex<Held>, Condvar)) {
    let mut head = [0; 4096];
    let Ok(length) = stream.read(&mut head) else { return };
    if String::from_utf8_lossy(&head[..length]).starts_with("GET /slow ") {
        let mut waiting = held.lock().unwrap();
        waiting.waiting += 1;
        drop(gone.wait_while(waiting, |held| !held.let_go).unwrap());
    }
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}", name.len());
    let _ = stream.write_all(answer.as_bytes());
}

/// HAProxy with two servers behind it, the first of which is the VM.
struct Balanced {
    vm: Vm,
    servers: [Server; 2],
    haproxy: Child,
    socket: PathBuf,
    port: u16,
}

impl Balanced {
    fn new() -> Self {
        need("/usr/sbin/haproxy", "haproxy");
        need("/usr/bin/socat", "socat");
        let mut vm = Vm::new("load-balancer", &[]);
        let servers = ["web-0", "web-1"].map(Server::new);
        let (socket, port) = (vm.path("haproxy.sock"), free_port());
        let config = format!(
            "global\n  stats socket {} mode 600 level admin\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n\
             frontend all\n  bind 127.0.0.1:{port}\n  default_backend web\n\
             backend web\n  server web-0 {}\n  server web-1 {}\n",
            socket.display(),
            servers[0].address,
            servers[1].address
        );
        std::fs::write(vm.path("haproxy.cfg"), config).unwrap();
        let mut haproxy = Command::new("/usr/sbin/haproxy");
        haproxy.args(["-db", "-f"]).arg(vm.path("haproxy.cfg")).stderr(Stdio::null());
        let haproxy = haproxy.spawn().unwrap();
        let balanced = Self {
            servers,
            haproxy,
            port,
            socket: socket.clone(),
            vm: {
                wait_for("HAProxy", || UnixStream::connect(&socket).ok());
                vm.start(&[("/run/haproxy/admin.sock", socket.to_str().unwrap())]);
                vm
            },
        };
        balanced.both_serve();
        balanced
    }

    /// Asks HAProxy for something, and gives the name of the server that answered.
    fn get(&self, path: &str) -> String {
        get(self.port, path)
    }

    /// Waits until requests go to both.
    fn both_serve(&self) {
        wait_for("requests to go to both", || {
            let (first, second) = (self.get("/"), self.get("/"));
            (first != second).then_some(())
        });
    }

    /// Waits until nothing new goes to the VM.
    fn only_the_other_serves(&self) {
        wait_for("requests to go elsewhere", || (0..6).all(|_| self.get("/") == "web-1").then_some(()));
    }

    /// Has the VM work on a request, which ends when the server lets go of it.
    fn under_way(&self) -> std::thread::JoinHandle<String> {
        let port = self.port;
        loop {
            let before = self.servers.each_ref().map(Server::waiting);
            let request = std::thread::spawn(move || get(port, "/slow"));
            let taken = wait_for("somebody to take the request", || {
                (0..2).find(|&server| self.servers[server].waiting() > before[server])
            });
            if taken == 0 {
                return request;
            }
            // It was the other's turn; that one answers at once from now on.
            self.servers[1].let_go();
        }
    }

    /// Says something to HAProxy's admin socket.
    fn admin(&self, line: &str) -> String {
        let mut socket = UnixStream::connect(&self.socket).unwrap();
        writeln!(socket, "{line}").unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Balanced {
    fn drop(&mut self) {
        let _ = self.haproxy.kill();
        let _ = self.haproxy.wait();
        self.servers.iter().for_each(Server::let_go);
    }
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.rsplit("\r\n").next().unwrap().to_owned()
}

/// A request under way is finished, new ones go elsewhere, and the agent's own end in the middle of it changes nothing.
#[test]
fn requests_under_way_are_finished_and_new_ones_go_elsewhere() {
    let mut site = Balanced::new();
    let request = site.under_way();
    let event = site.vm.announce("reboot");
    site.only_the_other_serves();
    assert!(site.vm.draining());
    site.vm.restart_agent();
    assert_eq!(site.vm.status(&event), "Scheduled", "somebody is still being served");

    site.servers[0].let_go();
    assert_eq!(request.join().unwrap(), "web-0", "it was finished where it was begun");
    site.vm.approved(&event);
    site.vm.reboot();
    site.only_the_other_serves();
    site.vm.complete(&event);
    site.vm.back_in_service();
    site.both_serve();
}

#[test]
fn a_cancelled_event_is_undone() {
    let site = Balanced::new();
    let request = site.under_way();
    let event = site.vm.announce("redeploy");
    site.only_the_other_serves();
    site.vm.cancel(&event);
    site.vm.back_in_service();
    site.both_serve();
    site.servers[0].let_go();
    assert_eq!(request.join().unwrap(), "web-0");
}

#[test]
fn what_somebody_took_out_by_hand_stays_out() {
    let site = Balanced::new();
    site.admin("set server web/web-0 state maint");
    let event = site.vm.announce("reboot");
    site.vm.approved(&event);
    site.vm.complete(&event);
    site.vm.back_in_service();
    assert!(
        site.admin("show stat")
            .lines()
            .any(|line| line.starts_with("web,web-0,") && line.contains(",MAINT,"))
    );
    site.only_the_other_serves();
}

#[test]
fn a_short_freeze_is_let_happen() {
    let site = Balanced::new();
    let event =
        site.vm.announced(&["event", "schedule", "--type", "freeze", "--duration", "9", super::ground::VM]);
    site.vm.approved(&event);
    assert!(!site.vm.draining());
    site.both_serve();
}

/// Without HAProxy's word the VM does not say that it is out.
#[test]
fn what_haproxy_refuses_is_not_approved() {
    let site = Balanced::new();
    let socket = format!("UNIX-CONNECT:{}", site.socket.display());
    for (words, why) in [
        (["drain", &socket, "web", "nobody"], "knows no web/nobody"),
        (["drain", "UNIX-CONNECT:/nowhere", "web", "web-0"], "knows no web/web-0"),
        (["idle", &socket, "web", "nobody"], "knows no web/nobody"),
    ] {
        let said = site.vm.script("haproxy-server", &words);
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && complaint.contains(why), "{words:?}: {complaint}");
    }
}
