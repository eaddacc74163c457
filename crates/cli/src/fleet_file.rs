//! Parser of the fleet file: scopes and VMs in YAML.
//!
//! All mistakes are reported at once, with line and cure, before any request is sent: unknown keys, values of the wrong
//! form, invalid names, duplicate VM names in a scope, duplicate addresses in a network, duplicate scopes. Only a file
//! that is not YAML has a single error.

mod tree;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use notbefore_core::Name;
use notbefore_core::scope::{
    LOCATION_CHARS_MAX, MEMBERS_MAX, TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN, is_location,
};
use notbefore_settings::yaml::{self, At, Mistakes, explain};
use notbefore_wire::guest::instance::Instance;
use notbefore_wire::operator::{Policy, ScopeKind, ScopeSpec, VmSpec};
use notbefore_wire::text::shorten;

use crate::output::file_name;
use crate::suggest::nearest;
use crate::time::parse_duration;

/// Size limit of a file; enough for a million VMs.
pub const FILE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Limit of the parser's message, which quotes the lines around an error.
const SHOWN_CHARACTERS_MAX: usize = 1_000;

#[derive(Debug)]
struct Scope {
    name: At<String>,
    kind: At<ScopeKind>,
    subscription: At<String>,
    group: At<String>,
    automatically_approve_reboot: bool,
    automatically_approve_redeploy: bool,
    terminate_notification: Option<At<String>>,
    vms: Vec<Vm>,
}

impl Scope {
    fn path(&self) -> String {
        format!("{}/{}/{}", self.subscription.value, self.group.value, self.name.value)
    }
}

#[derive(Debug)]
struct Vm {
    name: At<String>,
    update_domain: u32,
    fault_domain: u32,
    zone: Option<String>,
    host: Option<String>,
    spot: bool,
    addresses: Vec<At<String>>,
    instance: Option<Instance>,
}

fn default_name() -> At<String> {
    At { value: "default".to_owned(), line: 0 }
}

/// A parsed scope of a fleet file.
#[derive(Debug)]
pub struct FileScope {
    /// Subscription, group, scope.
    pub path: [String; 3],
    pub spec: ScopeSpec,
}

impl FileScope {
    /// The path with slashes, as in the API.
    pub fn display(&self) -> String {
        self.path.join("/")
    }
}

/// Parses a fleet file; `name` is used in messages.
pub fn parse(name: &Path, text: &str) -> Result<Vec<FileScope>> {
    if text.len() > FILE_BYTES_MAX {
        bail!("{} exceeds the limit of {FILE_BYTES_MAX} bytes; split it", file_name(name));
    }
    let mut mistakes = Mistakes::default();
    let tree = yaml::parse(text).map_err(|error| anyhow!(explain(&error))).with_context(|| {
        format!("{} is not a fleet file ('notbefore fleet apply --help' shows one)", file_name(name))
    })?;
    let scopes = tree::scopes(tree, &mut mistakes);
    check(&scopes, &mut mistakes);
    if let Some(message) = mistakes.message(&name.to_string_lossy()) {
        bail!(message);
    }
    Ok(scopes.into_iter().map(to_spec).collect())
}

/// Records duplicates, invalid names, kinds, spans and addresses, and scopes with too many VMs.
fn check(all: &[Scope], mistakes: &mut Mistakes) {
    let mut scopes = HashMap::new();
    let mut addresses: HashMap<String, (&str, u64)> = HashMap::new();
    for scope in all {
        let path = scope.path().to_ascii_lowercase();
        for part in [&scope.subscription, &scope.group, &scope.name] {
            check_name(part, mistakes);
        }
        let line = scope.name.line;
        if line > 0
            && let Some(first) = scopes.insert(path.clone(), line)
        {
            mistakes.add(line, format!("scope {path} is defined twice, first in line {first}; merge them"));
        }
        check_kind(&scope.kind, mistakes);
        if let Some(span) = &scope.terminate_notification
            && let Err(error) = notification(&span.value)
        {
            mistakes.add(span.line, error.to_string());
        }
        let second = scope.vms.get(1).filter(|_| scope.kind.value == ScopeKind::Standalone);
        if let Some(second) = second {
            let what = "is standalone and can have only one VM; move this VM to its own scope";
            mistakes.add(second.name.line, format!("scope {path} {what}"));
        }
        if let Some(vm) = scope.vms.get(MEMBERS_MAX) {
            let vms = scope.vms.len();
            let what =
                format!("has {vms} VMs, the limit is {MEMBERS_MAX}; put the others into another scope");
            mistakes.add(vm.name.line, format!("scope {path} {what}"));
        }
        let mut names = HashMap::new();
        for vm in &scope.vms {
            check_name(&vm.name, mistakes);
            let (name, line) = (vm.name.value.as_str(), vm.name.line);
            if line > 0
                && let Some(first) = names.insert(name.to_ascii_lowercase(), line)
            {
                mistakes.add(line, format!("VM {name} is in scope {path} twice, first in line {first} (names are case-insensitive); rename one"));
            }
            for (what, place) in [("host", &vm.host), ("zone", &vm.zone)] {
                if let Some(place) = place.as_ref().filter(|place| !is_location(place)) {
                    let place = shorten(place, SHOWN_CHARACTERS_MAX / 10);
                    let limit = format!(
                        "1 to {LOCATION_CHARS_MAX} characters, none of them a control character, does not begin with '-', and is not '.' or '..'"
                    );
                    mistakes.add(line, format!("{what} {place:?} of VM {name}: a {what} has {limit}"));
                }
            }
            for At { value: address, line } in &vm.addresses {
                let ip = address.rsplit('/').next().unwrap_or_default();
                if ip.parse::<std::net::IpAddr>().is_err() {
                    let address = shorten(address, SHOWN_CHARACTERS_MAX / 10);
                    mistakes.add(
                        *line,
                        format!("invalid address {address:?}; write 10.0.0.4 or network/10.0.0.4"),
                    );
                    continue;
                }
                if let Some((owner, first)) = addresses.insert(normal(address), (name, *line)) {
                    mistakes.add(*line, format!("address {address} is taken by VM {owner} in line {first}; give each VM its own, or another network (network/{address})"));
                }
            }
        }
    }
}

fn check_name(name: &At<String>, mistakes: &mut Mistakes) {
    if name.line > 0
        && let Err(error) = name.value.parse::<Name>()
    {
        mistakes.add(name.line, shorten(&error.to_string(), SHOWN_CHARACTERS_MAX / 4));
    }
}

fn check_kind(kind: &At<ScopeKind>, mistakes: &mut Mistakes) {
    if let ScopeKind::Unknown(word) = &kind.value {
        let kinds: Vec<&str> = ScopeKind::ALL.iter().map(ScopeKind::as_str).collect();
        let word = shorten(word, SHOWN_CHARACTERS_MAX / 10);
        let meant = nearest(&word, kinds.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        mistakes.add(kind.line, format!("kind {word:?} is not one of {}{meant}", kinds.join(", ")));
    }
}

/// The canonical address with its network: `10.0.0.1` and `default/10.0.0.1` are equal.
fn normal(address: &str) -> String {
    let (network, ip) = address.rsplit_once('/').unwrap_or(("default", address));
    let ip =
        ip.parse::<std::net::IpAddr>().map_or_else(|_| ip.to_owned(), |ip| ip.to_canonical().to_string());
    format!("{}/{ip}", network.to_ascii_lowercase())
}

/// Parses a span, either `5m` or in ISO 8601 as in Azure templates: `PT5M`.
fn parse_notification(text: &str) -> Result<Duration> {
    if !text.starts_with('P') {
        return parse_duration(text).map_err(Error::msg);
    }
    let span = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    span.with_context(|| format!("invalid span {text:?}; write 5m or PT5M"))
}

/// The terminate notification in seconds.
fn notification(text: &str) -> Result<u32> {
    let span = parse_notification(text)?;
    if !(TERMINATE_NOTICE_MIN..=TERMINATE_NOTICE_MAX).contains(&span) {
        let text = shorten(text, SHOWN_CHARACTERS_MAX / 10);
        bail!("terminate_notification must be 5m to 15m (PT5M to PT15M), not {text}");
    }
    Ok(u32::try_from(span.as_secs()).unwrap_or(u32::MAX))
}

/// The scope of a file without mistakes.
fn to_spec(scope: Scope) -> FileScope {
    let notification = scope.terminate_notification.and_then(|span| notification(&span.value).ok());
    let policy = Policy {
        automatically_approve_reboot: scope.automatically_approve_reboot,
        automatically_approve_redeploy: scope.automatically_approve_redeploy,
        terminate_notification_seconds: notification,
    };
    let vm = |vm: Vm| VmSpec {
        name: vm.name.value,
        update_domain: vm.update_domain,
        fault_domain: vm.fault_domain,
        zone: vm.zone,
        host: vm.host,
        spot: vm.spot,
        addresses: vm.addresses.into_iter().map(|address| address.value).collect(),
        instance: vm.instance,
    };
    let vms = scope.vms.into_iter().map(vm).collect();
    FileScope {
        path: [scope.subscription.value, scope.group.value, scope.name.value],
        spec: ScopeSpec { kind: scope.kind.value, policy, vms },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        format!("{:#}", parse(Path::new("fleet.yaml"), text).unwrap_err())
    }

    const WEB: &str = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n";

    #[test]
    fn help_page_sample_parses() {
        let text = format!(
            "{WEB}      - {{ name: web-0, update_domain: 0, addresses: [10.0.0.10], host: h1 }}\n  - name: batch\n    kind: scale-set\n    terminate_notification: 5m\n    vms: [ {{ name: batch_0, spot: true, addresses: [10.0.0.20] }} ]\n"
        );
        let scopes = parse(Path::new("f"), &text).unwrap();
        assert_eq!(scopes[0].display(), "default/default/web");
        assert_eq!(scopes[0].spec.vms[0].addresses, ["10.0.0.10"]);
        assert_eq!(scopes[1].spec.policy.terminate_notification_seconds, Some(300));
    }

    #[test]
    fn empty_list_of_scopes_may_have_no_value() {
        for text in ["scopes:\n", "scopes: ~", "scopes: []"] {
            assert_eq!(parse(Path::new("f"), text).unwrap().len(), 0, "{text}");
        }
        assert_eq!(refusal("{}"), "fleet.yaml:1: scopes is missing; expected a list of scopes");
    }

    #[test]
    fn terminate_notification_accepts_azure_format() {
        let said = |text: &str| {
            let file =
                format!("scopes:\n  - {{ name: a, kind: scale-set, terminate_notification: {text} }}\n");
            parse(Path::new("f"), &file).map(|scopes| scopes[0].spec.policy.terminate_notification_seconds)
        };
        for (text, seconds) in [("5m", 300), ("PT5M", 300), ("PT15M", 900), ("PT7M30S", 450), ("PT600S", 600)]
        {
            assert_eq!(said(text).unwrap(), Some(seconds), "{text}");
        }
        for (text, complaint) in [
            ("PT5", "f:2: invalid span \"PT5\"; write 5m or PT5M"),
            ("P5M", "invalid span"),
            ("PT-5M", "invalid span"),
            ("PT1H", "f:2: terminate_notification must be 5m to 15m (PT5M to PT15M), not PT1H"),
        ] {
            let error = said(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn duplicates_are_named_with_line() {
        let twice = refusal(&format!("{WEB}      - name: web-0\n      - name: WEB-0\n"));
        assert!(
            twice
                .starts_with("fleet.yaml:6: VM WEB-0 is in scope default/default/web twice, first in line 5"),
            "{twice}"
        );
        let address = refusal(&format!(
            "{WEB}      - {{ name: a, addresses: [10.0.0.1] }}\n      - {{ name: b, addresses: [\"default/10.0.0.1\"] }}\n"
        ));
        assert!(
            address.starts_with("fleet.yaml:6: address default/10.0.0.1 is taken by VM a in line 5"),
            "{address}"
        );
        let scope =
            refusal("scopes:\n  - { name: a, kind: standalone }\n  - { name: A, kind: standalone }\n");
        assert!(scope.starts_with("fleet.yaml:3: scope default/default/a is defined twice"), "{scope}");
    }

    #[test]
    fn unsafe_hosts_and_zones_are_refused() {
        for (what, name) in [("host", ""), ("host", "-h1"), ("zone", "-1")] {
            let said = refusal(&format!(
                "scopes:\n  - {{ name: a, kind: standalone, vms: [ {{ name: a, {what}: '{name}' }} ] }}\n"
            ));
            let limit = format!(
                "fleet.yaml:2: {what} {name:?} of VM a: a {what} has 1 to {LOCATION_CHARS_MAX} characters"
            );
            assert!(said.starts_with(&limit) && said.contains("does not begin with '-'"), "{said}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "scopes:
  - name: web
    kind: availability-sets
    vmss: []
    host: h1
    automatically_approve_reboot: often
    terminate_notification: soon
    vms:
      - { name: web-0, updat_domain: 1, update_domain: -1, spot: 3 }
      - { name: web 1, addresses: [300.1.1.1, [10.0.0.1]] }
      - update_domain: 0
      - just-a-name
      - { name: WEB-0, instance: { vm_siz: x } }
  - kind: 7
    name: [a]
colour: red
";
        let said = refusal(text);
        let expected = [
            "fleet.yaml has 18 mistakes:",
            "  fleet.yaml:3: kind \"availability-sets\" is not one of standalone, availability-set, cloud-service, scale-set; did you mean availability-set?",
            "  fleet.yaml:4: unknown key vmss of a scope; did you mean vms?",
            "  fleet.yaml:5: unknown key host of a scope; it is a key of a VM",
            "  fleet.yaml:6: automatically_approve_reboot: expected true or false, not \"often\"",
            "  fleet.yaml:7: \"soon\" is not a time span; write 30s, 20m, 1h30m, 7d or 2w",
            "  fleet.yaml:9: unknown key updat_domain of a VM; did you mean update_domain?",
            "  fleet.yaml:9: update_domain: expected a whole number from 0 to 4294967295, not -1",
            "  fleet.yaml:9: spot: expected true or false, not 3",
            "  fleet.yaml:10: addresses: expected text, not a list",
            "  fleet.yaml:10: name \"web 1\" contains ' '; letters, digits, '-', '_' and '.' are allowed",
            "  fleet.yaml:10: invalid address \"300.1.1.1\"; write 10.0.0.4 or network/10.0.0.4",
            "  fleet.yaml:11: name is missing; expected the VM's name",
            "  fleet.yaml:12: expected a VM with name, update_domain, fault_domain, zone, host, spot, addresses, instance, not \"just-a-name\"",
            "  fleet.yaml:13: instance: unknown field `vm_siz`, expected one of ",
            "  fleet.yaml:13: VM WEB-0 is in scope default/default/web twice, first in line 9 (names are case-insensitive); rename one",
            "  fleet.yaml:14: kind \"7\" is not one of standalone, availability-set, cloud-service, scale-set",
            "  fleet.yaml:15: name: expected text, not a list",
            "  fleet.yaml:16: unknown key colour of a fleet file; there are scopes",
        ];
        assert_eq!(said.lines().count(), expected.len(), "{said}");
        for (line, expected) in said.lines().zip(expected) {
            assert!(line.starts_with(expected), "{line}\n{expected}");
        }
    }

    #[test]
    fn text_may_look_like_a_number_and_a_number_like_text() {
        let vm = "name: 1.10, zone: yes, host: 0x1, update_domain: '3', spot: 'true', instance: { offer: 1.0, tags: [[a, 1]], platform_fault_domain: 2 }";
        let scopes = parse(Path::new("f"), &format!("{WEB}      - {{ {vm} }}\n")).unwrap();
        let VmSpec { name, zone, host, update_domain, spot, instance, .. } = &scopes[0].spec.vms[0];
        assert_eq!((name.as_str(), *update_domain, *spot), ("1.10", 3, true));
        assert_eq!((zone.as_deref(), host.as_deref()), (Some("yes"), Some("0x1")));
        let instance = instance.as_ref().unwrap();
        assert_eq!((instance.offer.as_str(), instance.platform_fault_domain), ("1.0", Some(2)));
        assert_eq!(instance.tags, [("a".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn keys_without_a_value_are_refused_if_their_default_is_no_absence() {
        let said = refusal(
            "scopes:\n  - name: a\n    kind: scale-set\n    group:\n    terminate_notification:\n    vms: [ { name: a, zone: , spot: } ]\n",
        );
        assert_eq!(
            said,
            "fleet.yaml has 2 mistakes:\n  fleet.yaml:4: group has no value; write one, or leave it out\n  fleet.yaml:6: spot has no value; write one, or leave it out"
        );
    }

    #[test]
    fn mistakes_in_a_message_are_limited() {
        let vms: String = (0..50).map(|n| format!("      - {{ name: v{n}, x: 1 }}\n")).collect();
        let said = refusal(&format!("{WEB}{vms}"));
        assert!(
            said.starts_with("fleet.yaml has 50 mistakes:\n  fleet.yaml:5: unknown key x of a VM; "),
            "{said}"
        );
        assert!(said.ends_with("\n  and 30 more"), "{said}");
    }

    #[test]
    fn keys_of_the_tree_are_those_of_the_types() {
        let value = |key: &str| match key {
            "vms" | "addresses" => "[]",
            "instance" => "{}",
            "kind" => "scale-set",
            "terminate_notification" => "5m",
            "update_domain" | "fault_domain" => "1",
            "spot" | "automatically_approve_reboot" | "automatically_approve_redeploy" => "true",
            _ => "x",
        };
        let all = |keys: &[&str]| {
            let pairs: Vec<String> = keys.iter().map(|key| format!("{key}: {}", value(key))).collect();
            pairs.join(", ")
        };
        let scope =
            all(tree::SCOPE_KEYS).replace("vms: []", &format!("vms: [ {{ {} }} ]", all(tree::VM_KEYS)));
        parse(Path::new("f"), &format!("scopes: [ {{ {scope} }} ]")).unwrap();
    }

    #[test]
    fn scope_with_too_many_vms_is_refused() {
        let vms: String = (0..=MEMBERS_MAX).map(|n| format!("      - name: v{n}\n")).collect();
        let said = refusal(&format!("{WEB}{vms}"));
        assert!(
            said.starts_with("fleet.yaml:1005: scope default/default/web has 1001 VMs, the limit is 1000"),
            "{said}"
        );
    }

    #[test]
    fn unknown_keys_are_named_with_line() {
        let key = refusal(&format!("{WEB}      - {{ name: a, updat_domain: 1 }}\n"));
        assert_eq!(key, "fleet.yaml:5: unknown key updat_domain of a VM; did you mean update_domain?");
        let kind = refusal("scopes:\n  - name: a\n    kind: alone\n");
        assert!(kind.starts_with("fleet.yaml:3: kind \"alone\" is not one of standalone"), "{kind}");
        let span = refusal("scopes:\n  - { name: a, kind: scale-set, terminate_notification: soon }\n");
        assert!(span.starts_with("fleet.yaml:2: ") && span.contains("\"soon\""), "{span}");
        assert!(refusal("nonsense: [").contains("fleet.yaml"));
    }
}
