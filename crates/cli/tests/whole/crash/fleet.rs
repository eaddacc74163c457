//! The fleet under load: VMs in scopes of every kind, each with an address in 127.1.0.0/16. These VMs stay; clients add
//! and remove others in their own `pool-N`.

use std::fmt::Write;
use std::net::Ipv4Addr;

use notbefore_wire::operator as wire;
use uuid::Uuid;

use super::CLIENTS;
use super::random::Random;

/// A VM that is never removed.
pub struct Vm {
    pub id: Uuid,
    pub scope: String,
    pub address: Ipv4Addr,
}

pub struct Fleet {
    pub vms: Vec<Vm>,
    /// Every scope's path.
    pub scopes: Vec<String>,
}

impl Fleet {
    /// The fleet as a file.
    pub fn yaml() -> String {
        let mut scopes: Vec<(String, &str, usize, usize)> = vec![
            ("web".to_owned(), "availability-set", 9, 3),
            ("db".to_owned(), "availability-set", 6, 3),
            ("cache".to_owned(), "availability-set", 4, 2),
            ("batch".to_owned(), "scale-set", 6, 1),
        ];
        scopes.extend((0..CLIENTS).map(|n| (format!("solo-{n}"), "standalone", 1, 1)));
        scopes.extend((0..CLIENTS).map(|n| (pool_name(n), "scale-set", 1, 1)));
        let mut yaml = "scopes:\n".to_owned();
        for (place, (scope, kind, vms, domains)) in scopes.iter().enumerate() {
            let notification = if *kind == "scale-set" { ", terminate_notification: 5m" } else { "" };
            let _ = write!(yaml, "  - {{ name: {scope}, kind: {kind}{notification}, vms: [");
            for vm in 0..*vms {
                let (domain, last) = (vm % domains, vm + 1);
                let address = format!("addresses: [127.1.{place}.{last}]");
                let _ = write!(yaml, "{{ name: {scope}_{vm}, update_domain: {domain}, {address} }}, ");
            }
            yaml.push_str("] }\n");
        }
        yaml
    }

    /// The fleet as the service lists it.
    pub fn listed(vms: Vec<wire::Vm>) -> Self {
        let vm = |vm: wire::Vm| Vm { id: vm.id, scope: vm.scope, address: vm.addresses[0].parse().unwrap() };
        let vms: Vec<Vm> = vms.into_iter().map(vm).collect();
        let mut scopes: Vec<String> = vms.iter().map(|vm| vm.scope.clone()).collect();
        scopes.dedup();
        Self { vms, scopes }
    }

    pub fn has(&self, vm: Uuid) -> bool {
        self.vms.iter().any(|one| one.id == vm)
    }

    pub fn calls_from(&self, address: Ipv4Addr) -> bool {
        self.vms.iter().any(|one| one.address == address)
    }

    /// The VMs of a scope.
    pub fn of<'a>(&'a self, scope: &'a str) -> impl Iterator<Item = &'a Vm> {
        self.vms.iter().filter(move |vm| vm.scope == scope)
    }

    /// Some VMs for an operation: often one, sometimes several of several scopes.
    pub fn some(&self, random: &mut Random) -> Vec<Uuid> {
        let several = if random.chance(45) { random.within(2..=5) } else { 1 };
        (0..several).map(|_| random.pick(&self.vms).id).collect()
    }
}

/// The scope in which a client adds and removes VMs.
pub fn pool_name(client: usize) -> String {
    format!("pool-{client}")
}

/// The scope's path.
pub fn pool(client: usize) -> String {
    format!("default/default/{}", pool_name(client))
}
