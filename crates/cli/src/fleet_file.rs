//! Parser of the fleet file: scopes and VMs in YAML.
//!
//! Errors name the line and the fix before any request is sent: unknown keys, duplicate VM names in a scope, duplicate
//! addresses in a network, duplicate scopes.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use notbefore_core::Name;
use notbefore_core::scope::{TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN};
use notbefore_wire::guest::instance::Instance;
use notbefore_wire::operator::{Policy, ScopeKind, ScopeSpec, VmSpec};
use notbefore_wire::text::shorten;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::output::file_name;
use crate::time::parse_duration;

/// Size limit of a file; enough for a million VMs.
pub const FILE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Limit of the parser's message, which quotes the lines around an error.
const SHOWN_CHARACTERS_MAX: usize = 1_000;

/// Node budget of a small file; larger files get one node per byte.
const NODES_ALWAYS: usize = 100_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scopes: Vec<Scope>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    name: Spanned<String>,
    kind: Spanned<ScopeKind>,
    #[serde(default = "default_name")]
    subscription: String,
    #[serde(default = "default_name")]
    group: String,
    #[serde(default)]
    automatically_approve_reboot: bool,
    #[serde(default)]
    automatically_approve_redeploy: bool,
    terminate_notification: Option<Spanned<String>>,
    #[serde(default)]
    vms: Vec<Vm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vm {
    name: Spanned<String>,
    #[serde(default)]
    update_domain: u32,
    #[serde(default)]
    fault_domain: u32,
    zone: Option<String>,
    host: Option<String>,
    #[serde(default)]
    spot: bool,
    #[serde(default)]
    addresses: Vec<Spanned<String>>,
    instance: Option<Instance>,
}

fn default_name() -> String {
    "default".to_owned()
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
    // The parser's default limits are too small for a fleet. These grow with the file's size, so that anchors cannot
    // expand to more than a file of this size could contain.
    let nodes = text.len().max(NODES_ALWAYS);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: nodes,
            max_nodes: nodes,
            max_total_scalar_bytes: nodes,
        },
    };
    let parsed = serde_saphyr::from_str_with_options(text, options);
    let file: File = parsed.map_err(explain).with_context(|| {
        format!("{} is not a fleet file ('notbefore fleet apply --help' shows one)", file_name(name))
    })?;
    let place = |line: u64| format!("{}:{line}", file_name(name));
    check(&file, &place)?;
    file.scopes.into_iter().map(|scope| to_spec(scope, &place)).collect()
}

/// The parser's message, shortened since it quotes keys and values in full. A budget error also names the fix.
fn explain(error: serde_saphyr::Error) -> anyhow::Error {
    use serde_saphyr::Error;
    let shown = shorten(&error.to_string(), SHOWN_CHARACTERS_MAX);
    let mut cause = &error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    match matches!(cause, Error::Budget { .. }) {
        true => anyhow!(
            "its anchors and aliases (&, *) expand to more than a file of this size may contain; write them out: {shown}"
        ),
        false => anyhow!("{shown}"),
    }
}

/// Refuses duplicates, invalid names and addresses, and standalone scopes with several VMs.
fn check(file: &File, place: &dyn Fn(u64) -> String) -> Result<()> {
    let mut scopes = HashMap::new();
    let mut addresses: HashMap<String, (String, u64)> = HashMap::new();
    for scope in &file.scopes {
        let path =
            format!("{}/{}/{}", scope.subscription, scope.group, scope.name.value).to_ascii_lowercase();
        let at = line(&scope.name);
        if let Some(first) = scopes.insert(path.clone(), at) {
            bail!("{}: scope {path} is defined twice, first in line {first}; merge them", place(at));
        }
        if let (true, [_, second, ..]) = (scope.kind.value == ScopeKind::Standalone, scope.vms.as_slice()) {
            let at = line(&second.name);
            bail!(
                "{}: scope {path} is standalone and can have only one VM; move this VM to its own scope",
                place(at)
            );
        }
        let mut names = HashMap::new();
        for vm in &scope.vms {
            let at = line(&vm.name);
            if let Some(first) = names.insert(vm.name.value.to_ascii_lowercase(), at) {
                let name = &vm.name.value;
                bail!(
                    "{}: VM {name} is in scope {path} twice, first in line {first} (names are case-insensitive); rename one",
                    place(at)
                );
            }
            if let Err(error) = vm.name.value.parse::<Name>() {
                bail!("{}: {error}", place(at));
            }
            for address in &vm.addresses {
                let at = line(address);
                let ip = address.value.rsplit('/').next().unwrap_or_default();
                if ip.parse::<std::net::IpAddr>().is_err() {
                    let address = &address.value;
                    bail!("{}: invalid address {address:?}; write 10.0.0.4 or network/10.0.0.4", place(at));
                }
                let known = addresses.insert(normal(&address.value), (vm.name.value.clone(), at));
                if let Some((owner, first)) = known {
                    let address = &address.value;
                    bail!(
                        "{}: address {address} is taken by VM {owner} in line {first}; give each VM its own, or another network (network/{address})",
                        place(at)
                    );
                }
            }
        }
    }
    Ok(())
}

/// The canonical address with its network: `10.0.0.1` and `default/10.0.0.1` are equal.
fn normal(address: &str) -> String {
    let (network, ip) = address.rsplit_once('/').unwrap_or(("default", address));
    let ip =
        ip.parse::<std::net::IpAddr>().map_or_else(|_| ip.to_owned(), |ip| ip.to_canonical().to_string());
    format!("{}/{ip}", network.to_ascii_lowercase())
}

fn line<T>(spanned: &Spanned<T>) -> u64 {
    spanned.referenced.line()
}

/// Parses a span, either `5m` or in ISO 8601 as in Azure templates: `PT5M`.
fn parse_notification(text: &str) -> Result<Duration> {
    if !text.starts_with('P') {
        return parse_duration(text).map_err(Error::msg);
    }
    let span = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    span.with_context(|| format!("invalid span {text:?}; write 5m or PT5M"))
}

fn to_spec(scope: Scope, place: &dyn Fn(u64) -> String) -> Result<FileScope> {
    if let ScopeKind::Unknown(kind) = &scope.kind.value {
        let kinds = ScopeKind::ALL.iter().map(ScopeKind::as_str).collect::<Vec<_>>().join(", ");
        bail!("{}: kind {kind:?} is not one of {kinds}", place(line(&scope.kind)));
    }
    let notification = match &scope.terminate_notification {
        None => None,
        Some(said) => {
            let span =
                parse_notification(&said.value).map_err(|error| anyhow!("{}: {error}", place(line(said))))?;
            if !(TERMINATE_NOTICE_MIN..=TERMINATE_NOTICE_MAX).contains(&span) {
                bail!(
                    "{}: terminate_notification must be 5m to 15m (PT5M to PT15M), not {}",
                    place(line(said)),
                    said.value
                );
            }
            Some(u32::try_from(span.as_secs()).unwrap_or(u32::MAX))
        }
    };
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
    Ok(FileScope {
        path: [scope.subscription, scope.group, scope.name.value],
        spec: ScopeSpec { kind: scope.kind.value, policy, vms },
    })
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
    fn unknown_keys_are_named_with_line() {
        let key = refusal(&format!("{WEB}      - {{ name: a, updat_domain: 1 }}\n"));
        assert!(key.contains("updat_domain") && key.contains("update_domain") && key.contains('5'), "{key}");
        let kind = refusal("scopes:\n  - name: a\n    kind: alone\n");
        assert!(kind.starts_with("fleet.yaml:3: kind \"alone\" is not one of standalone"), "{kind}");
        let span = refusal("scopes:\n  - { name: a, kind: scale-set, terminate_notification: soon }\n");
        assert!(span.starts_with("fleet.yaml:2: ") && span.contains("\"soon\""), "{span}");
        assert!(refusal("nonsense: [").contains("fleet.yaml"));
    }
}
