//! Who this VM is, among the names that stand in an event's resources.
//!
//! `compute.name` of the instance metadata is what stands there, so that is asked for. No answer is the last word: a
//! platform says 404 of a VM that it does not know yet, and 500 while it looks. Whoever goes on for longer than a
//! command asks with [`Identity::from_metadata`], beside what else there is to do, and with the head start of [`Name::start_lookup`];
//! meanwhile the host name has to do, and [`Identity::by`] says that it is no more than that. In a uniform scale set these
//! differ: instance 36 of `web` is called `web_36` by the platform and `web000010` by its own system, six digits to the base
//! of 36.
//!
//! A name that the VM's owner has set, in either form, does until the platform says it, and for good where it never does. If the
//! metadata says otherwise, that holds, since it is what events name, and it is said aloud: who goes by another VM's name
//! approves another VM's events.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::client::Client;
use crate::document::excerpt;
use crate::failure::{Failure, FailureKind};

/// How many digits a scale set's host names end in.
const DIGITS: usize = 6;
/// What the digits are to the base of.
const BASE: u32 = 36;
/// The longest name that is believed; Azure's have 64 characters at most.
const NAME_BYTES_MAX: usize = 256;
/// How long a command waits for the metadata before the host name has to do. It answers within milliseconds, or is being
/// updated.
const FIND_TIME_MAX: Duration = Duration::from_secs(5);
/// How long whoever follows events waits for the name to come first. Metadata that is well answers within milliseconds, and
/// an event that is looked at with the wrong name may be taken for another VM's; an eviction gives half a minute.
const HEAD_START: Duration = Duration::from_millis(500);
/// How long to rest after the metadata was asked in vain. It doubles, up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(1);
/// An eviction gives half a minute. Where there is no metadata at all, this is a tenth of what polls ask for.
const REST_MAX: Duration = Duration::from_secs(10);
/// An api-version of the instance metadata that every platform with scheduled events knows by now.
const METADATA_VERSION: &str = "2021-02-01";

/// This VM's name, and the ways in which the platform may spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    /// What the same VM may be called in a scale set.
    also: Vec<String>,
    source: NameSource,
}

/// How much a name is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// The platform says so.
    Platform,
    /// The VM's owner says so.
    Setting,
    /// It is what the VM's own system is called, for want of anything better: the platform need not call it so, and may
    /// call another VM so.
    HostName,
}

impl Identity {
    /// A VM that the platform calls exactly this, without regard to case.
    pub fn named(name: impl Into<String>) -> Self {
        Identity { name: name.into(), also: Vec::new(), source: NameSource::Platform }
    }

    /// A VM whose owner calls it this: as the platform does, or as its own system does, which may be the scale set's form.
    pub fn set(name: &str) -> Self {
        let Identity { name: label, also, .. } = Identity::of_host(name);
        Identity {
            name: name.to_owned(),
            also: [label].into_iter().chain(also).collect(),
            source: NameSource::Setting,
        }
    }

    /// A VM whose own system is called this: by its first label, or as a scale set would call it.
    pub fn of_host(host_name: &str) -> Self {
        let name = host_name.split('.').next().unwrap_or(host_name);
        Identity {
            name: name.to_owned(),
            also: [scale_set_name(name), scale_set_host(name)].into_iter().flatten().collect(),
            source: NameSource::HostName,
        }
    }

    /// Finds out within seconds: `compute.name` of the instance metadata, else what the caller goes by otherwise, which is
    /// what was set, or the host name.
    pub async fn find(client: &Client, otherwise: Identity) -> Self {
        let mut last = Failure::new(FailureKind::TimedOut, format!("no answer within {FIND_TIME_MAX:?}"));
        match timeout(FIND_TIME_MAX, Identity::from_metadata_with(client, |failure| last = failure)).await {
            Ok(platform) => otherwise.corrected_by(platform),
            Err(_) => {
                tracing::warn!(
                    "the instance metadata has no name for this VM, so it goes by {}: {last}",
                    otherwise.name
                );
                otherwise
            }
        }
    }

    /// The name that the instance metadata gives, asked for once.
    pub async fn from_metadata_once(client: &Client) -> Result<Self, Failure> {
        metadata_name(client).await.map(Identity::named)
    }

    /// The name that the instance metadata gives, asked for until it does, however long that takes.
    pub async fn from_metadata(client: &Client) -> Self {
        Identity::from_metadata_with(client, |_| {}).await
    }

    /// The same, and every failure on the way is handed out. All of them may pass.
    pub async fn from_metadata_with(client: &Client, mut on_failure: impl FnMut(Failure)) -> Self {
        let mut rest = REST;
        loop {
            match Identity::from_metadata_once(client).await {
                Ok(platform) => return platform,
                Err(failure) => on_failure(failure),
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST_MAX);
        }
    }

    /// What the platform says, after this was gone by. That a setting says otherwise is something for its owner to know.
    pub fn corrected_by(self, platform: Identity) -> Self {
        if self.source == NameSource::Setting && !self.is(&platform.name) {
            tracing::warn!(
                "this VM is set to be {}, and its instance metadata says {}, which is what events name and what it goes by: \
                 take the setting out, or correct it",
                self.name,
                platform.name
            );
        }
        platform
    }

    /// Whether a name in an event's resources is this VM's.
    pub fn is(&self, resource: &str) -> bool {
        let same = |name: &str| name.eq_ignore_ascii_case(resource);
        same(&self.name) || self.also.iter().any(|name| same(name))
    }

    /// The name, as a person would say it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much it is worth.
    pub fn source(&self) -> NameSource {
        self.source
    }
}

/// What a VM is called, for whoever follows its events and does not wait for the answer.
pub enum Name {
    /// This.
    Known(Identity),
    /// The platform has not said so yet; it comes out of this.
    Awaited(NameFuture),
}

/// A name that is being asked for.
pub type NameFuture = Pin<Box<dyn Future<Output = Identity> + Send>>;

impl Name {
    /// Gives a question, as [`Identity::from_metadata`], half a second to be answered. After that nothing should wait for it.
    pub async fn start_lookup(asked: impl Future<Output = Identity> + Send + 'static) -> Self {
        let mut future: NameFuture = Box::pin(asked);
        match timeout(HEAD_START, &mut future).await {
            Ok(me) => Name::Known(me),
            Err(_) => Name::Awaited(future),
        }
    }
}

/// This machine's host name; empty where the system does not say.
pub fn host_name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(windows)]
    return crate::registry::host_name().or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_default();
}

async fn metadata_name(client: &Client) -> Result<String, Failure> {
    let answer = client.metadata("compute/name", METADATA_VERSION).await?;
    let name = answer.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain) {
        true => Ok(name.to_owned()),
        false => {
            let start = excerpt(name.as_bytes());
            Err(Failure::unreadable(client.endpoint(), format_args!("compute.name is no name: {start}")))
        }
    }
}

/// `web_36` for the host `web000010`.
fn scale_set_name(host: &str) -> Option<String> {
    let (prefix, digits) = host.split_at_checked(host.len().checked_sub(DIGITS)?)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let number = u32::from_str_radix(digits, BASE).ok()?;
    (plain && !prefix.is_empty()).then(|| format!("{prefix}_{number}"))
}

/// `web000010` for the name `web_36`.
fn scale_set_host(name: &str) -> Option<String> {
    let (prefix, number) = name.rsplit_once('_')?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let mut rest: u32 = number.parse().ok().filter(|_| plain && !prefix.is_empty())?;
    let mut digits = Vec::new();
    for _ in 0..DIGITS {
        digits.push(char::from_digit(rest % BASE, BASE)?.to_ascii_uppercase());
        rest /= BASE;
    }
    (rest == 0).then(|| format!("{prefix}{}", digits.into_iter().rev().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_compare_case_insensitively() {
        let me = Identity::named("Web-0");
        assert!(me.is("web-0") && me.is("WEB-0"));
        assert!(!me.is("web-00") && !me.is("_web-0") && !me.is(""));
        assert_eq!(me.name(), "Web-0");
    }

    #[test]
    fn platform_name_has_no_aliases() {
        assert!(!Identity::named("web000010").is("web_36"));
    }

    #[test]
    fn configured_name_matches_host_and_scale_set_forms() {
        for set in ["web_36", "web000010", "web000010.internal.example"] {
            let me = Identity::set(set);
            assert!(me.is("web_36") && me.is("WEB000010") && !me.is("web_37"), "{set}");
            assert_eq!((me.name(), me.source()), (set, NameSource::Setting));
        }
        assert!(Identity::set("web.36").is("web.36"), "a VM's name may have a dot");
    }

    #[tokio::test(start_paused = true)]
    async fn late_name_is_awaited() {
        let me = Identity::named("web_3");
        let after = |rest: Duration| {
            let me = me.clone();
            async move {
                tokio::time::sleep(rest).await;
                me
            }
        };
        let a_moment = Duration::from_millis(1);
        assert!(
            matches!(Name::start_lookup(after(HEAD_START - a_moment)).await, Name::Known(known) if known == me)
        );
        let Name::Awaited(future) = Name::start_lookup(after(HEAD_START + a_moment)).await else {
            panic!("it was waited for")
        };
        assert_eq!(timeout(a_moment * 2, future).await, Ok(me));
    }

    #[test]
    fn host_and_scale_set_names_convert() {
        for (host, instance) in [
            ("aks-pool1-vmss000000", "aks-pool1-vmss_0"),
            ("web00000A", "web_10"),
            ("web00000a", "web_10"),
            ("web000010", "web_36"),
            ("webZZZZZZ", "web_2176782335"),
            ("a_b000001", "a_b_1"),
        ] {
            assert!(Identity::of_host(host).is(instance), "{host}");
            assert!(Identity::of_host(instance).is(host), "{instance}");
        }
        assert!(Identity::of_host("web-0.internal.example").is("web-0"));
        for (host, not) in [
            ("000001", "_1"),
            ("web-01", "_37"),
            ("web_", "web000000"),
            ("wébé", "w_1"),
            ("web_2176782336", "web1000000"),
            ("", ""),
        ] {
            assert!(!Identity::of_host(host).is(not) || host == not, "{host}");
        }
    }

    proptest! {
        #[test]
        fn scale_set_names_round_trip(number in 0..BASE.pow(DIGITS as u32)) {
            let name = format!("web_{number}");
            let host = scale_set_host(&name).unwrap();
            prop_assert_eq!(host.len(), 3 + DIGITS);
            prop_assert_eq!(scale_set_name(&host), Some(name));
        }

        #[test]
        fn any_host_name_is_accepted(host in "\\PC{0,20}") {
            let me = Identity::of_host(&host);
            prop_assert!(me.is(me.name()));
        }
    }
}
