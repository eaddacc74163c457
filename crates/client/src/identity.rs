//! Identity of this VM among the names in an event's resources.
//!
//! Events use `compute.name` of the instance metadata, so that is requested. A failure is never final: a platform
//! answers 404 for a VM that it does not know yet, and 500 during a lookup. Long-running programs call
//! [`Identity::from_metadata`] in the background, with the short wait of [`Name::start_lookup`]. Until then the host
//! name is a guess; [`Identity::source`] says so. In a uniform scale set the two differ: instance 36 of `web` is
//! `web_36` for the platform and `web000010` for its own system, with six digits in base 36.
//!
//! A configured name, in either form, is used until the metadata answers, and stays if it never does. If the metadata
//! disagrees, it wins, and the difference is logged: a VM with another VM's name approves that VM's events.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::client::Client;
use crate::document::excerpt;
use crate::failure::{Failure, FailureKind};

/// Number of digits at the end of a scale set's host names.
const DIGITS: usize = 6;
/// Base of these digits.
const BASE: u32 = 36;
/// Longest accepted name; Azure's have up to 64 characters.
const NAME_BYTES_MAX: usize = 256;
/// How long a command waits for the metadata before it uses the host name. It answers within milliseconds, or is
/// being updated.
const FIND_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a watcher waits for the name first. With a wrong name, an event may be attributed to another VM; but a
/// Preempt event gives only 30 seconds.
const HEAD_START: Duration = Duration::from_millis(500);
/// First delay after a failed metadata request; doubles up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(1);
/// Longest delay, because a Preempt event gives 30 seconds. Without metadata, this is a tenth of the polling rate.
const REST_MAX: Duration = Duration::from_secs(10);
/// An api-version of the instance metadata that all platforms with scheduled events support.
const METADATA_VERSION: &str = "2021-02-01";

/// This VM's name and its possible spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    /// Alternative names in a scale set.
    also: Vec<String>,
    source: NameSource,
}

/// Source of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// The platform.
    Platform,
    /// The VM's owner.
    Setting,
    /// The system's host name, as a last resort: the platform may use another name for this VM, or this name for
    /// another VM.
    HostName,
}

impl Identity {
    /// A VM with exactly this name on the platform, compared case-insensitively.
    pub fn named(name: impl Into<String>) -> Self {
        Identity { name: name.into(), also: Vec::new(), source: NameSource::Platform }
    }

    /// A VM with a configured name: the platform's, or the system's, which may be the scale set's form.
    pub fn set(name: &str) -> Self {
        let Identity { name: label, also, .. } = Identity::of_host(name);
        Identity {
            name: name.to_owned(),
            also: [label].into_iter().chain(also).collect(),
            source: NameSource::Setting,
        }
    }

    /// A VM with this host name: its first label, or the scale set's form of it.
    pub fn of_host(host_name: &str) -> Self {
        let name = host_name.split('.').next().unwrap_or(host_name);
        Identity {
            name: name.to_owned(),
            also: [scale_set_name(name), scale_set_host(name)].into_iter().flatten().collect(),
            source: NameSource::HostName,
        }
    }

    /// Requests the name for a few seconds: `compute.name` of the instance metadata, else `otherwise`, which is the
    /// configured name or the host name.
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

    /// Requests the name from the instance metadata once.
    pub async fn from_metadata_once(client: &Client) -> Result<Self, Failure> {
        metadata_name(client).await.map(Identity::named)
    }

    /// Requests the name from the instance metadata until it answers.
    pub async fn from_metadata(client: &Client) -> Self {
        Identity::from_metadata_with(client, |_| {}).await
    }

    /// Like [`Identity::from_metadata`], and reports every failure. All of them may be temporary.
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

    /// Replaces a preliminary name by the platform's. Logs a warning if a configured name differs.
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

    /// The name in its main form.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the name comes from.
    pub fn source(&self) -> NameSource {
        self.source
    }
}

/// A VM's name, known or still being requested.
pub enum Name {
    /// Known already.
    Known(Identity),
    /// Not answered yet; the future yields it.
    Awaited(NameFuture),
}

/// A pending name request.
pub type NameFuture = Pin<Box<dyn Future<Output = Identity> + Send>>;

impl Name {
    /// Waits up to half a second for a request such as [`Identity::from_metadata`]; then returns it as pending.
    pub async fn start_lookup(asked: impl Future<Output = Identity> + Send + 'static) -> Self {
        let mut future: NameFuture = Box::pin(asked);
        match timeout(HEAD_START, &mut future).await {
            Ok(me) => Name::Known(me),
            Err(_) => Name::Awaited(future),
        }
    }
}

/// This machine's host name; empty if unknown.
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
