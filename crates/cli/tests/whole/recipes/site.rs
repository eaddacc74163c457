//! HAProxy with two servers behind it, the first of which is the VM.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::process::{Pid, Signal, kill_process};

use super::vm::{Vm, require_file};
use crate::support::{self, free_address, wait_for};

/// A web server that responds with its name. A request for `/slow` waits until the test releases it.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    held: Arc<(Mutex<Held>, Condvar)>,
}

#[derive(Default)]
struct Held {
    waiting: u32,
    release: bool,
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

    pub fn release(&self) {
        self.held.0.lock().unwrap().release = true;
        self.held.1.notify_all();
    }
}

fn serve(mut stream: TcpStream, name: &str, (held, gone): &(Mutex<Held>, Condvar)) {
    let mut head = [0; 4096];
    let Ok(length) = stream.read(&mut head) else { return };
    if String::from_utf8_lossy(&head[..length]).starts_with("GET /slow ") {
        let mut waiting = held.lock().unwrap();
        waiting.waiting += 1;
        drop(gone.wait_while(waiting, |held| !held.release).unwrap());
    }
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}", name.len());
    let _ = stream.write_all(answer.as_bytes());
}

/// HAProxy with two servers behind it, the first of which is the VM.
pub struct LoadBalancedSite {
    /// The VM.
    pub vm: Vm,
    /// The VM's server, and the other.
    pub servers: [Server; 2],
    /// HAProxy's admin socket.
    pub socket: PathBuf,
    haproxy: Child,
    /// HAProxy's frontend address.
    front: SocketAddr,
}

impl LoadBalancedSite {
    /// Starts HAProxy for a VM whose agent does not run yet, with further options of the backend and of the VM's
    /// server.
    pub fn new(vm: Vm, backend: &str, server: &str) -> Self {
        require_file("/usr/sbin/haproxy", "haproxy");
        let servers = ["web-0", "web-1"].map(Server::new);
        let (socket, front) = (vm.path("haproxy.sock"), free_address());
        let config = format!(
            "global\n  stats socket {} mode 600 level admin\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n\
             frontend all\n  bind {front}\n  default_backend web\n\
             backend web\n{backend}  server web-0 {} {server}\n  server web-1 {}\n",
            socket.display(),
            servers[0].address,
            servers[1].address
        );
        std::fs::write(vm.path("haproxy.cfg"), config).unwrap();
        let mut haproxy = Command::new("/usr/sbin/haproxy");
        haproxy.args(["-db", "-f"]).arg(vm.path("haproxy.cfg")).stderr(Stdio::null());
        let haproxy = haproxy.spawn().unwrap();
        wait_for("HAProxy", || UnixStream::connect(&socket).ok());
        Self { vm, servers, socket, haproxy, front }
    }

    /// Sends a request to HAProxy; returns the name of the server that answered.
    fn get(&self, path: &str) -> String {
        get(self.front, path)
    }

    /// Waits until both servers get requests.
    pub fn wait_until_both_serve(&self) {
        wait_for("requests to go to both", || {
            let (first, second) = (self.get("/"), self.get("/"));
            (first != second).then_some(())
        });
    }

    /// Waits until the VM gets no new requests.
    pub fn wait_until_other_serves(&self) {
        wait_for("requests to go elsewhere", || (0..6).all(|_| self.get("/") == "web-1").then_some(()));
    }

    /// Starts a request that the VM's server holds until the test releases it.
    pub fn start_slow_request(&self) -> std::thread::JoinHandle<String> {
        let front = self.front;
        loop {
            let before = self.servers.each_ref().map(Server::waiting);
            let request = std::thread::spawn(move || get(front, "/slow"));
            let taken = wait_for("a server to take the request", || {
                (0..2).find(|&server| self.servers[server].waiting() > before[server])
            });
            if taken == 0 {
                return request;
            }
            // The other server got the request; release it, so that it answers at once from now on.
            self.servers[1].release();
        }
    }

    /// Ends HAProxy.
    pub fn stop(&mut self) {
        let _ = self.haproxy.kill();
        let _ = self.haproxy.wait();
    }

    /// Stops HAProxy with SIGSTOP, or continues it.
    pub fn freeze(&self, frozen: bool) {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.haproxy), signal).unwrap();
    }

    /// Sends a command to HAProxy's admin socket; returns the response.
    pub fn admin(&self, line: &str) -> String {
        let mut socket = UnixStream::connect(&self.socket).unwrap();
        writeln!(socket, "{line}").unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for LoadBalancedSite {
    fn drop(&mut self) {
        self.stop();
        self.servers.iter().for_each(Server::release);
    }
}

fn get(front: SocketAddr, path: &str) -> String {
    let answer = support::http::get(front, path);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}
