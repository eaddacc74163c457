//! The fleet file: scopes and VMs in YAML.
//!
//! A mistake is answered with its line and its cure before anything is sent: an unknown key, a name twice in
//! a scope, an address twice in a network, a scope twice.

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

/// The largest file: a million VMs, described in some detail.
pub const FILE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of the parser's message is shown: the lines around a mistake fit.
const SHOWN_CHARACTERS_MAX: usize = 1_000;

/// How many nodes any file may have.
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

/// A scope of a file, ready to be sent.
#[derive(Debug)]
pub struct FileScope {
    /// Its parts, as the API's path has them: subscription, group, scope.
    pub path: [String; 3],
    /// What it should be.
    pub spec: ScopeSpec,
}

impl FileScope {
    /// The whole path.
    pub fn display(&self) -> String {
        self.path.join("/")
    }
}

/// Reads a fleet file from text; `name` is what messages call it.
pub fn parse(name: &Path, text: &str) -> Result<Vec<FileScope>> {
    if text.len() > FILE_BYTES_MAX {
        bail!("{} is longer than {FILE_BYTES_MAX} bytes, which is the limit; split it", file_name(name));
    }
    // The parser's own limits are those of a configuration file. These grow with the file, so that what is
    // written once and meant often (anchors) cannot become more than what could have been written out.
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

/// What the parser says, with the cure where it is ours to know. The parser shows keys and texts whole.
fn explain(error: serde_saphyr::Error) -> anyhow::Error {
    use serde_saphyr::Error;
    let shown = shorten(&error.to_string(), SHOWN_CHARACTERS_MAX);
    let mut cause = &error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    match matches!(cause, Error::Budget { .. }) {
        true => anyhow!(
            "its anchors and aliases (&, *) come to more than a file of this size could say without them; write out what they stand for: {shown}"
        ),
        false => anyhow!("{shown}"),
    }
}

/// Finds what is said twice and may be said once.
fn check(file: &File, place: &dyn Fn(u64) -> String) -> Result<()> {
    let mut scopes = HashMap::new();
    let mut addresses: HashMap<String, (String, u64)> = HashMap::new();
    for scope in &file.scopes {
        let path =
            format!("{}/{}/{}", scope.subscription, scope.group, scope.name.value).to_ascii_lowercase();
        let at = line(&scope.name);
        if let Some(first) = scopes.insert(path.clone(), at) {
            bail!(
                "{}: scope {path} is described a second time, first in line {first}; put its VMs into one",
                place(at)
            );
        }
        if let (true, [_, second, ..]) = (scope.kind.value == ScopeKind::Standalone, scope.vms.as_slice()) {
            let at = line(&second.name);
            bail!(
                "{}: scope {path} is standalone and holds one VM; give this one a scope of its own",
                place(at)
            );
        }
        let mut names = HashMap::new();
        for vm in &scope.vms {
            let at = line(&vm.name);
            if let Some(first) = names.insert(vm.name.value.to_ascii_lowercase(), at) {
                let name = &vm.name.value;
                bail!(
                    "{}: VM {name} is in scope {path} twice, first in line {first} (case does not count); rename one",
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
                    bail!("{}: {address:?} is no address; write 10.0.0.4, or network/10.0.0.4", place(at));
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

/// An address with its network, so that `10.0.0.1` and `default/10.0.0.1` are the same.
fn normal(address: &str) -> String {
    let (network, ip) = address.rsplit_once('/').unwrap_or(("default", address));
    let ip =
        ip.parse::<std::net::IpAddr>().map_or_else(|_| ip.to_owned(), |ip| ip.to_canonical().to_string());
    format!("{}/{ip}", network.to_ascii_lowercase())
}

fn line<T>(spanned: &Spanned<T>) -> u64 {
    spanned.referenced.line()
}

/// A span as everywhere else, or in ISO 8601 as Azure's templates write it: `5m`, `PT5M`.
fn parse_notification(text: &str) -> Result<Duration> {
    if !text.starts_with('P') {
        return parse_duration(text).map_err(Error::msg);
    }
    let span = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    span.with_context(|| format!("{text:?} is no span; write 5m, or PT5M"))
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
                    "{}: a terminate_notification may be 5m to 15m (PT5M to PT15M), not {}",
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
            ("PT5", "f:2: \"PT5\" is no span; write 5m, or PT5M"),
            ("P5M", "is no span"),
            ("PT-5M", "is no span"),
            ("PT1H", "f:2: a terminate_notification may be 5m to 15m (PT5M to PT15M), not PT1H"),
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
        assert!(
            scope.starts_with("fleet.yaml:3: scope default/default/a is described a second time"),
            "{scope}"
        );
    }

    #[test]
    fn unknown_keys_are_named_with_line() {
        let key = refusal(&format!("{WEB}      - {{ name: a, updat_domain: 1 }}\n"));
        assert!(key.contains("updat_domain") && key.contains("update_domain") && key.contains('5'), "{key}");
        let kind = refusal("scopes:\n  - name: a\n    kind: alone\n");
        assert!(kind.starts_with("fleet.yaml:3: kind \"alone\" is not one of standalone"), "{kind}");
        let span = refusal("scopes:\n  - { name: a, kind: scale-set, terminate_notification: soon }\n");
        assert!(span.starts_with("fleet.yaml:2: \"soon\" is no span"), "{span}");
        assert!(refusal("nonsense: [").contains("fleet.yaml"));
    }
}
