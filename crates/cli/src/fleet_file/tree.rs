//! The scopes of a fleet file, from its tree of values with their lines. [`scopes`] records every mistake of form and
//! fills in defaults, so that names, addresses and kinds are checked too.

use notbefore_settings::yaml::{At, Mapping, Mistakes, Tree, VALUE_CHARS_MAX};
use notbefore_wire::operator::ScopeKind;
use notbefore_wire::text::shorten;

use super::{Scope, Vm};

/// Keys of the whole file, of a scope and of a VM.
const FILE_KEYS: &[&str] = &["scopes"];
pub(super) const SCOPE_KEYS: &[&str] = &[
    "name",
    "kind",
    "subscription",
    "group",
    "automatically_approve_reboot",
    "automatically_approve_redeploy",
    "terminate_notification",
    "vms",
];
pub(super) const VM_KEYS: &[&str] =
    &["name", "update_domain", "fault_domain", "zone", "host", "spot", "addresses", "instance"];

/// Keys that may stand at the wrong place.
const ELSEWHERE: &[(&str, &[&str])] = &[("of a scope", SCOPE_KEYS), ("of a VM", VM_KEYS)];

/// The scopes, with defaults for what is missing or wrong. Drops the tree as it goes, which takes about ten times the
/// memory of the file.
pub(super) fn scopes(tree: At<Tree>, mistakes: &mut Mistakes) -> Vec<Scope> {
    if let Some(mut file) = Mapping::read(&tree, "a fleet file", FILE_KEYS, ELSEWHERE, mistakes) {
        // A template without items writes an empty value.
        if !file.has("scopes") {
            file.needs("scopes", "a list of scopes");
        }
        file.list("scopes");
    }
    tree.value.into_list("scopes").filter_map(|tree| scope(&tree, mistakes)).collect()
}

fn scope(tree: &At<Tree>, mistakes: &mut Mistakes) -> Option<Scope> {
    let mut scope = Mapping::read(tree, "a scope", SCOPE_KEYS, ELSEWHERE, mistakes)?;
    scope.needs("name", "the scope's name");
    scope.needs("kind", &ScopeKind::ALL.iter().map(ScopeKind::as_str).collect::<Vec<_>>().join(", "));
    scope.refuse_empty(&[
        "subscription",
        "group",
        "automatically_approve_reboot",
        "automatically_approve_redeploy",
    ]);
    let kind = scope.text("kind");
    let mut read = Scope {
        name: scope.text("name").unwrap_or_default(),
        // Without a kind, that with the fewest rules.
        kind: kind.map_or(At { value: ScopeKind::AvailabilitySet, line: 0 }, |kind| At {
            line: kind.line,
            value: kind.value.into(),
        }),
        subscription: scope.text("subscription").unwrap_or_else(super::default_name),
        group: scope.text("group").unwrap_or_else(super::default_name),
        automatically_approve_reboot: scope.switch("automatically_approve_reboot"),
        automatically_approve_redeploy: scope.switch("automatically_approve_redeploy"),
        terminate_notification: scope.text("terminate_notification"),
        vms: Vec::new(),
    };
    let vms = scope.list("vms");
    read.vms = vms.iter().filter_map(|tree| vm(tree, mistakes)).collect();
    Some(read)
}

fn vm(tree: &At<Tree>, mistakes: &mut Mistakes) -> Option<Vm> {
    let mut vm = Mapping::read(tree, "a VM", VM_KEYS, ELSEWHERE, mistakes)?;
    vm.needs("name", "the VM's name");
    vm.refuse_empty(&["update_domain", "fault_domain", "spot"]);
    let addresses = vm.list("addresses").iter().filter_map(|tree| vm.text_of("addresses", tree)).collect();
    let instance = vm.value("instance").and_then(|instance| match instance.value.read() {
        Ok(read) => Some(read),
        Err(error) => {
            let what = format!("instance: {}", shorten(&error.to_string(), 4 * VALUE_CHARS_MAX));
            vm.mistakes.add(instance.line, what);
            None
        }
    });
    Some(Vm {
        name: vm.text("name").unwrap_or_default(),
        update_domain: vm.number("update_domain"),
        fault_domain: vm.number("fault_domain"),
        zone: vm.text("zone").map(|zone| zone.value),
        host: vm.text("host").map(|host| host.value),
        spot: vm.switch("spot"),
        addresses,
        instance,
    })
}
