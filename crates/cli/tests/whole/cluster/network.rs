//! Machines in network namespaces, all on one bridge, and cuts between them.
//!
//! Every machine knows the MAC addresses of the others as permanent neighbours. A cut in one direction gives the senders
//! a MAC address that no machine has: packets are lost, and no program gets an error.

use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::namespace::{Namespace, failure_text};

/// MAC address of no machine.
const NOWHERE: &str = "02:00:00:00:ff:ff";
/// Addresses of guests are on the loopback device of the machine of clients.
const GUESTS: &str = "10.0.4.0/24";

/// A machine: a namespace with one device, `eth0`.
pub struct Machine {
    pub namespace: Namespace,
    pub address: Ipv4Addr,
    number: u8,
}

impl Machine {
    fn mac(&self) -> String {
        format!("02:00:00:00:00:{:02x}", self.number)
    }

    /// Its port of the bridge.
    fn port(&self) -> String {
        format!("port{}", self.number)
    }

    /// Commands that give this machine's neighbour an address.
    fn neighbour(address: Ipv4Addr, mac: &str) -> String {
        format!("neigh replace {address} lladdr {mac} nud permanent dev eth0\n")
    }

    /// Runs several commands of `ip`, one a line.
    fn ip_batch(&self, lines: &str) {
        let mut command = Command::new("ip");
        command.args(["-n", self.namespace.name(), "-batch", "-"]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "ip {lines}: {}", failure_text(&output));
    }
}

/// The bridge and its machines.
pub struct Network {
    bridge: Namespace,
    pub machines: Vec<Machine>,
}

/// Number of the machine from which clients and guests call.
const CLIENTS: usize = 0;

impl Network {
    /// Machine 0 is that of the clients and guests.
    pub fn new(machines: usize, guests: usize) -> Self {
        let bridge = Namespace::new();
        bridge.ip("link add br0 type bridge");
        bridge.ip("link set br0 up");
        let machines: Vec<Machine> = (0..machines)
            .map(|number| {
                let number = u8::try_from(number + 1).unwrap();
                let address = Ipv4Addr::new(10, 0, 0, number);
                let machine = Machine { namespace: Namespace::new(), address, number };
                let port = machine.port();
                bridge.ip(&format!(
                    "link add {port} type veth peer name eth0 netns {}",
                    machine.namespace.name()
                ));
                bridge.ip(&format!("link set {port} master br0 up"));
                let mac = machine.mac();
                machine
                    .ip_batch(&format!("link set eth0 address {mac} up\naddr add {address}/24 dev eth0\n"));
                machine
            })
            .collect();
        let network = Self { bridge, machines };
        let clients = network.clients();
        for (index, machine) in network.machines.iter().enumerate() {
            network.reconnect(index);
            if index != CLIENTS {
                machine.namespace.ip(&format!("route add {GUESTS} via {}", clients.address));
            }
        }
        let lines: String =
            (0..guests).map(|guest| format!("addr add {}/32 dev lo\n", guest_address(guest))).collect();
        clients.ip_batch(&lines);
        network
    }

    pub fn clients(&self) -> &Machine {
        &self.machines[CLIENTS]
    }

    /// Moves this thread to the machine of the clients. Its sockets and new threads and processes are there.
    pub fn enter(&self) {
        let file = File::open(format!("/run/netns/{}", self.clients().namespace.name())).unwrap();
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }

    /// Cuts a machine off in both directions: its cable is pulled.
    pub fn cut_off(&self, machine: usize) {
        self.bridge.ip(&format!("link set {} down", self.machines[machine].port()));
    }

    /// The machine sends, and receives nothing.
    pub fn deafen(&self, machine: usize) {
        let line = Machine::neighbour(self.machines[machine].address, NOWHERE);
        self.others(machine).for_each(|other| other.ip_batch(&line));
    }

    /// The machine receives, and nothing that it sends arrives.
    pub fn mute(&self, machine: usize) {
        let lines: String =
            self.others(machine).map(|other| Machine::neighbour(other.address, NOWHERE)).collect();
        self.machines[machine].ip_batch(&lines);
    }

    /// Ends every cut of a machine.
    pub fn reconnect(&self, machine: usize) {
        let me = &self.machines[machine];
        self.bridge.ip(&format!("link set {} up", me.port()));
        let line = Machine::neighbour(me.address, &me.mac());
        self.others(machine).for_each(|other| other.ip_batch(&line));
        let lines: String =
            self.others(machine).map(|other| Machine::neighbour(other.address, &other.mac())).collect();
        me.ip_batch(&lines);
    }

    fn others(&self, machine: usize) -> impl Iterator<Item = &Machine> {
        self.machines.iter().enumerate().filter(move |(index, _)| *index != machine).map(|(_, other)| other)
    }
}

pub fn guest_address(guest: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 4, u8::try_from(guest + 1).unwrap())
}
