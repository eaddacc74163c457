//! Export and import of a whole store: an import restores the same store, and an invalid export is refused.

use std::path::Path;

use notbefore_core::Cause;
use notbefore_core::samples::{operation_id, vm};
use notbefore_engine::{
    Address, NewOperation, OperationCommand, PutScope, ScopeChange, TargetSelector, VmSpec,
};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::data_dir::DataDir;
use notbefore_service::transfer::import;
use notbefore_store::{Revision, Store};

use crate::used_data_dir;

/// Runs a future and all tasks that it spawned, because they hold the store open.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

/// A data directory with two scopes, live, ended and cancelled events, and the records that belong to them.
async fn used_data_dir(path: &Path) {
    let scope = |scope: &str, count: u128| {
        let spec = |n: u128| VmSpec {
            addresses: vec![Address {
                network: "default".parse().unwrap(),
                ip: format!("10.0.{}.{n}", scope.len()).parse().unwrap(),
            }],
            ..VmSpec::with_defaults(vm(count * 100 + n), format!("{scope}_{n}").parse().unwrap())
        };
        let (kind, vms) = (notbefore_core::ScopeKind::ScaleSet, (0..count).map(spec).collect());
        let origin = notbefore_core::Origin::Fleet;
        let put = PutScope { origin, ..PutScope::with_defaults(scope.parse().unwrap(), kind, vms) };
        ScopeChange::Put(put).into()
    };
    let schedule = |id: u128, vms: &[u128]| {
        let selector = TargetSelector::Vms(vms.iter().map(|n| vm(*n)).collect());
        let description = Some("with \"quotes\",\na line feed and ünïcode".to_owned());
        let bare = NewOperation::with_defaults(operation_id(id), Cause::HostReboot, selector);
        OperationCommand::Schedule(NewOperation { description, ..bare }).into()
    };
    let cancel = OperationCommand::Cancel(operation_id(2)).into();
    let (web, batch) = (scope("web", 5), scope("batch", 3));
    let commands = vec![web, batch, schedule(1, &[500, 501, 300]), schedule(2, &[502]), cancel];
    used_data_dir::make(path, commands).await;
}

async fn exported(path: &Path) -> String {
    let store = DataDir::prepare(path).unwrap().open_store().unwrap();
    used_data_dir::exported(&store, SystemClock.now()).await.unwrap()
}

fn body(text: &str) -> Vec<&str> {
    // Without header and trailer: the header has the time, and the trailer hashes the header.
    let lines: Vec<&str> = text.lines().collect();
    lines[1..lines.len() - 1].to_vec()
}

#[test]
fn import_then_export_round_trips() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (place.path().join("old"), place.path().join("new"));
    block_on(used_data_dir(&old));
    let first = block_on(exported(&old));
    for kind in ["claim/", "command/", "ended/", "fact/", "operation/", "past/", "scope/", "token/", "vm/"] {
        assert!(first.contains(&format!("{{\"key\":\"{kind}")), "there is no record of {kind}");
    }

    let checked = import::check(first.as_bytes(), |_| {}).unwrap();
    let mut seen = 0;
    let imported = import::import(&new, first.as_bytes(), |records| seen = records).unwrap();
    assert_eq!((imported.records, imported.counts), (checked.records, checked.counts));
    assert_eq!(seen, imported.records);
    assert_eq!((imported.counts.scopes, imported.counts.vms, imported.counts.events), (2, 8, 2));
    let second = block_on(exported(&new));
    assert_eq!(body(&first), body(&second));

    let revision = block_on(async {
        let store = DataDir::prepare(&new).unwrap().open_store().unwrap();
        store.snapshot().await.unwrap().revision()
    });
    assert_eq!(revision, Revision(imported.header.revision));
    let again = import::import(&new, first.as_bytes(), |_| {}).unwrap_err().to_string();
    assert!(again.contains("store.redb exists already; choose another --data"), "{again}");
    assert_eq!(body(&block_on(exported(&new))), body(&first), "the existing store is unchanged");
}

#[test]
fn incomplete_export_leaves_no_data_directory() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (place.path().join("old"), place.path().join("new"));
    block_on(used_data_dir(&old));
    let text = block_on(exported(&old));
    let cut = text[..text.len() / 2].to_owned();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at =
        |kind: &str| lines.iter().position(|line| line.starts_with(&format!("{{\"key\":\"{kind}"))).unwrap();
    // With a valid trailer: only the content of the records is wrong.
    let without = |line: usize| {
        let kept: Vec<&str> =
            lines.iter().enumerate().filter(|(n, _)| *n != line).map(|(_, line)| *line).collect();
        resealed(&kept[..kept.len() - 1].concat())
    };
    let instead = |line: usize, from: &str, to: &str| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed[line] = changed[line].replace(from, to);
        assert_ne!(changed[line], lines[line]);
        changed.pop();
        resealed(&changed.concat())
    };
    let with_secret = |key: &str, value: &str| {
        let place = lines.iter().rposition(|line| line.starts_with("{\"key\":\"scope/")).unwrap() + 1;
        let mut more: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        more.insert(place, format!("{{\"key\":\"{key}\",\"revision\":1,\"value\":{value}}}\n"));
        more.pop();
        resealed(&more.concat())
    };
    let link = "{\"token\":\"root\",\"token_revision\":1,\"expires_at\":\"2099-01-01T00:00:00Z\"}";
    let key = format!("{{\"key\":\"{}\"}}", "00".repeat(32));
    let never = |key: &str| format!("{key} is a secret, which an export never contains");
    for (text, expected) in [
        (with_secret("secret/link/ab", link), never("secret/link/ab")),
        (with_secret("secret/session-key", &key), never("secret/session-key")),
        (cut, "the export ends here".to_owned()),
        (without(at("scope/")), format!("line {}: ", at("claim/") + 1)),
        (instead(at("vm/"), "\"scope\"", "\"scoop\""), format!("line {}: record vm/", at("vm/") + 1)),
        (instead(at("scope/"), "\"revision\":", "\"revision\":9"), format!("line {}: ", at("scope/") + 1)),
        (instead(at("past/"), "\"key\":\"past/", "\"key\":\"past/0"), format!("line {}: ", at("past/") + 1)),
    ] {
        let error = import::import(&new, text.as_bytes(), |_| {}).unwrap_err().to_string();
        // If a scope is missing, the error names any one of its VMs or addresses.
        let fits = error.contains(&expected)
            || error.contains("which does not exist")
            || error.contains("does not contain it")
            || error.contains("does not have it");
        assert!(fits, "{error}");
        assert!(!new.exists(), "after {error}");
        // An existing directory stays, and nothing is added to it.
        let there = place.path().join("there");
        std::fs::create_dir_all(&there).unwrap();
        std::fs::write(there.join("note"), "").unwrap();
        import::import(&there, text.as_bytes(), |_| {}).unwrap_err();
        let left: Vec<_> = std::fs::read_dir(&there).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(left, ["note"], "after {error}");
    }
    import::import(&new, text.as_bytes(), |_| {}).unwrap();
}

/// The lines with a matching trailer, as an attacker could make one.
fn resealed(lines: &str) -> String {
    use sha2::{Digest, Sha256};
    let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(lines.as_bytes()));
    let records = lines.lines().count() - 1;
    format!("{lines}{{\"notbefore_export_end\":1,\"records\":{records},\"sha256\":\"{sha256}\"}}\n")
}
