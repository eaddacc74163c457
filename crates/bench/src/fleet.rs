//! Generator of large fleets: writes an export with synthetic VMs, which `notbefore import` turns into a data
//! directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use notbefore_core::{Member, Name, Origin, Policy, Scope, ScopeId, ScopeKind, ScopePath, VmId};
use notbefore_engine::records::{self, Address, Vm};
use notbefore_service::transfer::lines::LineWriter;
use notbefore_store::{Key, Revision, Versioned};
use serde::Serialize;
use uuid::Uuid;

use crate::clock;
use crate::load::guests;
use crate::process::output;
use crate::random::Random;
use crate::service::Binary;

/// Format level of the export: the oldest that is read, so that older binaries can be measured too.
const FLEET_LEVEL: u32 = records::FORMAT_LEVELS_READ[0];

/// Write buffer size.
const PIECE: usize = 1024 * 1024;

/// A fleet of scopes of equal size. Some VMs have loopback addresses, so that they can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Number of scopes.
    pub scopes: usize,
    /// VMs per scope.
    pub per_scope: usize,
    /// Which VMs can call.
    pub callers: Callers,
}

/// Which VMs can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// All, in order.
    All,
    /// The first VM of every n-th scope.
    FirstOfEvery(usize),
}

impl Fleet {
    /// Total number of VMs.
    pub fn vms(&self) -> usize {
        self.scopes * self.per_scope
    }

    /// Scope index of the n-th caller.
    pub fn scope_of_caller(&self, n: usize) -> usize {
        match self.callers {
            Callers::All => n / self.per_scope,
            Callers::FirstOfEvery(every) => n * every,
        }
    }

    /// Id of the first VM of a scope.
    pub fn first_vm(&self, scope: usize) -> Uuid {
        self.vm_of(scope, 0)
    }

    /// Id of a VM of a scope.
    pub fn vm_of(&self, scope: usize, member: usize) -> Uuid {
        vm_id(scope * self.per_scope + member)
    }

    /// Creates a data directory with the fleet.
    pub fn import(&self, binary: &Binary, data: &Path) -> anyhow::Result<()> {
        self.import_into(binary, &data.with_extension("jsonl"), "--data", data.as_os_str()).map(|_| ())
    }

    /// Imports the fleet into etcd, by way of a file; returns how long the import took.
    pub fn import_into_etcd(&self, binary: &Binary, file: &Path, urls: &str) -> anyhow::Result<Duration> {
        self.import_into(binary, file, "--etcd", OsStr::new(urls))
    }

    fn import_into(&self, binary: &Binary, file: &Path, flag: &str, to: &OsStr) -> anyhow::Result<Duration> {
        self.write(file).context("writing a fleet")?;
        let begun = clock::now();
        output(Command::new(&binary.path).arg("import").arg(file).arg(flag).arg(to))?;
        let took = begun.elapsed();
        std::fs::remove_file(file)?;
        Ok(took)
    }

    /// Writes the fleet as an export, with records in key order.
    fn write(&self, file: &Path) -> anyhow::Result<()> {
        let mut out = BufWriter::new(File::create(file)?);
        let epoch = jiff::Timestamp::UNIX_EPOCH;
        let mut lines = LineWriter::of_level(FLEET_LEVEL, Revision(1), epoch, false);
        let vms = 0..self.vms();
        sorted(
            &mut lines,
            &mut out,
            vms.clone(),
            |vm| records::claim(&self.address(vm)),
            |vm| VmId(vm_id(vm)),
        )?;
        sorted(
            &mut lines,
            &mut out,
            0..self.scopes,
            |n| records::scope(&self.scope_id(n)),
            |n| self.scope(n),
        )?;
        sorted(&mut lines, &mut out, vms, |vm| records::vm(VmId(vm_id(vm))), |vm| self.vm(vm))?;
        lines.finish();
        out.write_all(&lines.take())?;
        out.flush()?;
        Ok(())
    }

    /// The fleet's records, for a node in this process.
    pub fn records(&self) -> impl Iterator<Item = (Key, Versioned)> {
        let vms = (0..self.vms()).flat_map(|vm| {
            let id = VmId(vm_id(vm));
            let claim = (records::claim(&self.address(vm)), records::encode(&id));
            [claim, (records::vm(id), records::encode(&self.vm(vm)))]
        });
        let scopes =
            (0..self.scopes).map(|n| (records::scope(&self.scope_id(n)), records::encode(&self.scope(n))));
        scopes.chain(vms).map(|(key, value)| (key, Versioned { revision: Revision(1), value }))
    }

    fn address(&self, vm: usize) -> Address {
        let (scope, member) = (vm / self.per_scope, vm % self.per_scope);
        let ip = match self.callers {
            Callers::All => guests::address(vm),
            Callers::FirstOfEvery(every) if member == 0 && scope.is_multiple_of(every) => {
                guests::address(scope / every)
            }
            Callers::FirstOfEvery(_) => Ipv4Addr::from_bits(0x0A00_0000 + vm as u32),
        };
        Address { network: name("default"), ip: IpAddr::V4(ip) }
    }

    fn path(&self, scope: usize) -> ScopePath {
        ScopePath {
            subscription: name("default"),
            group: name(&format!("group-{}", scope % 100)),
            name: name(&format!("set-{scope}")),
        }
    }

    /// Id of a scope by index.
    pub fn scope_id(&self, scope: usize) -> ScopeId {
        self.path(scope).id()
    }

    /// A scope by index.
    pub fn scope(&self, scope: usize) -> Scope {
        let member = |member: usize| Member {
            update_domain: member as u32 % 5,
            origin: Origin::Fleet,
            ..Member::with_defaults(
                VmId(vm_id(scope * self.per_scope + member)),
                // Fifteen characters, as in a large cloud.
                name(&format!("web-{scope:06}-{member:04}")),
            )
        };
        Scope {
            path: self.path(scope),
            kind: if self.per_scope == 1 { ScopeKind::Standalone } else { ScopeKind::AvailabilitySet },
            policy: Policy::default(),
            incarnation: 1,
            members: (0..self.per_scope).map(member).collect(),
            events: Vec::new(),
            ended: Vec::new(),
            first_run: false,
            origin: Origin::Fleet,
        }
    }

    fn vm(&self, vm: usize) -> Vm {
        Vm {
            id: VmId(vm_id(vm)),
            scope: self.scope_id(vm / self.per_scope),
            addresses: vec![self.address(vm)],
            instance: serde_json::Value::Null,
        }
    }
}

/// Id of the n-th VM: pseudo-random and reproducible.
fn vm_id(n: usize) -> Uuid {
    let mut random = Random::new(n as u64 + 1);
    uuid::Builder::from_random_bytes(
        (u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes(),
    )
    .into_uuid()
}

fn name(text: &str) -> Name {
    #[allow(clippy::unwrap_used, reason = "all names of this file are letters, digits and hyphens")]
    text.parse().unwrap()
}

/// Writes the records of one kind in key order.
fn sorted<T: Serialize>(
    lines: &mut LineWriter,
    out: &mut impl Write,
    numbers: std::ops::Range<usize>,
    key: impl Fn(usize) -> Key,
    record: impl Fn(usize) -> T,
) -> anyhow::Result<()> {
    let mut keys: Vec<(Key, usize)> = numbers.map(|n| (key(n), n)).collect();
    keys.sort();
    for (key, n) in keys {
        let value = [FLEET_LEVEL.to_string().as_bytes(), &records::encode(&record(n))[1..]].concat().into();
        lines.record(&key, &Versioned { revision: Revision(1), value })?;
        if lines.waiting() > PIECE {
            out.write_all(&lines.take())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_finds_nothing_wrong_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("fleet.jsonl");
        for fleet in [
            Fleet { scopes: 30, per_scope: 10, callers: Callers::FirstOfEvery(3) },
            Fleet { scopes: 300, per_scope: 1, callers: Callers::All },
        ] {
            fleet.write(&file).unwrap();
            let lines = std::io::BufReader::new(File::open(&file).unwrap());
            let imported = notbefore_service::transfer::import::check(lines, |_| ()).unwrap();
            assert_eq!((imported.counts.scopes, imported.counts.vms), (fleet.scopes as u64, 300));
        }
    }

    #[test]
    fn callers_have_the_addresses_that_guests_call_from() {
        let fleet = Fleet { scopes: 30, per_scope: 10, callers: Callers::FirstOfEvery(3) };
        for caller in 0..10 {
            let scope = fleet.scope_of_caller(caller);
            assert_eq!(fleet.vm(scope * 10).addresses[0].ip, guests::address(caller));
            assert_eq!(fleet.vm(scope * 10).id.0, fleet.first_vm(scope));
        }
        assert_eq!(fleet.scope(7).members[0].name.as_str().len(), 15);
    }
}
