//! Value kinds that only the service's settings use.

use std::net::SocketAddr;

use notbefore_core::{DriverKind, Name};
use notbefore_etcd::{ConfigError, DEFAULT_PREFIX, EtcdConfig};
use notbefore_service::cluster::join::ClusterConfig;
use notbefore_service::guest::settings::Mode;
use notbefore_service::operator::server::HostName;
use notbefore_service::{AddressPrefix, GuestListener, GuestVm, ProxyAddress};
use notbefore_settings::kind::{FileName, Form, Integer, Kind, OneOf, OrNone, RawValue, Span, Text, ToToml};
use notbefore_wire::guest::version::EventsVersion;
use toml::Value as Toml;

/// Timeouts of the guest listener: 1 second to 1 day. A connection that waits longer is dead.
pub const TIMEOUT: Span = Span { min: 1, max: 86_400 };
/// Retention and duration spans, up to 100 years: longer ones overflow dates.
pub const LONG_SPAN: Span = Span { min: 0, max: 100 * 365 * 86_400 };
/// The size of history. Less has no room for the events of one operation on a large fleet.
pub const HISTORY_SIZE: Size = Size { min: 64 << 20 };
/// The quota of etcd. An empty database has some kilobytes already.
pub const ETCD_QUOTA: Size = Size { min: 1 << 20 };
/// Connection limits. A process cannot open more than a billion files.
pub const CONNECTIONS: Integer<usize> = Integer::between(1, 1_000_000_000);
/// A format level that this release reads.
pub const FORMAT_LEVEL: Integer<u32> =
    Integer::between(ClusterConfig::FORMAT_LEVELS[0] as i64, ClusterConfig::FORMAT_LEVELS[1] as i64);
/// An optional file.
pub const FILE: OrNone<FileName> = OrNone(FileName);
pub const ADDRESS: Text<SocketAddr> = Text::parsed("an address with port, for example \"127.0.0.1:9255\"");
pub const LISTENER: Text<GuestListener> = Text::parsed(
    "an address with port, for example \"127.0.0.1:9254\", optionally with network, device or TPROXY: \"blue=169.254.169.254:80%br-blue\", \"127.0.0.1:9254+tproxy\"",
);
pub const VM: Text<GuestVm> =
    Text::parsed("a VM name and an address with port, for example \"web-0=127.0.0.1:9301\"");
/// Source address of a guest proxy.
pub const PROXY: Text<ProxyAddress> = Text::parsed(
    "an address, for example \"10.9.0.2\" or \"blue=10.9.0.2\", or a prefix without host bits, for example \"10.9.0.0/24\"",
);
/// Source address of an operator proxy.
pub const PREFIX: Text<AddressPrefix> = Text::parsed(
    "an address, for example \"10.9.0.2\", or a prefix without host bits, for example \"10.9.0.0/24\"",
);
/// A name that the operator listener accepts in `Host`.
pub const HOST: Text<HostName> = Text::parsed("a host name without port, for example \"ops.example.com\"");
pub const ETCD_URL: Text<String> =
    Text::new("a URL of etcd, for example \"http://127.0.0.1:2379\"", |text| {
        let is_url = match EtcdConfig::new([text], DEFAULT_PREFIX).check() {
            // An https URL needs files, which have settings of their own.
            Ok(()) | Err(ConfigError::NoAuthority { .. }) => true,
            // Refused later, without a password in the message.
            Err(_) if text.contains('@') => true,
            Err(_) => false,
        };
        is_url.then(|| text.to_owned())
    });
pub const ETCD_PREFIX: Text<String> =
    Text::new("a key that ends with a slash, for example \"/notbefore/\"", |text| {
        EtcdConfig::new(["http://localhost"], text).check().is_ok().then(|| text.to_owned())
    });
pub const ETCD_USER: Text<String> =
    Text::new("the name of a user of etcd", |text| (!text.is_empty()).then(|| text.to_owned()));
/// It is part of a key, and of the node's identity `name~epoch`.
pub const NODE_NAME: Text<String> =
    Text::new("a name of letters, digits, '-', '_' and '.', for example \"node-1\"", |text| {
        text.parse::<Name>().is_ok().then(|| text.to_owned())
    });
pub const DRIVER: OneOf<DriverKind> = OneOf(&[
    ("simulated", DriverKind::Simulated),
    ("manual", DriverKind::Manual),
    ("exec", DriverKind::Exec),
]);
pub const MODE: OneOf<Mode> =
    OneOf(&[("normal", Mode::Normal), ("strict", Mode::Strict), ("lenient", Mode::Lenient)]);
/// Newest api-version that guests are served.
pub const NEWEST_VERSION: OneOf<EventsVersion> =
    OneOf(&[("2024-07-09", EventsVersion::V2024_07_09), ("2020-07-01", EventsVersion::V2020_07_01)]);
/// Name of an environment variable. `NOTBEFORE_*` is refused: the service sets the command's variables itself, and
/// `NOTBEFORE_TOKEN` is a secret.
pub const VARIABLE: Text<String> = Text::new(
    "the name of a variable that does not begin with NOTBEFORE_, for example \"LIBVIRT_DEFAULT_URI\"",
    |text| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let ours = text.to_ascii_uppercase().starts_with("NOTBEFORE_");
        (!text.is_empty() && !ours && text.chars().all(fits)).then(|| text.to_owned())
    },
);

/// The factor of `events.notice`.
#[derive(Clone, Copy, Debug)]
pub struct Factor;

impl Kind for Factor {
    type Value = f64;

    fn expected(&self) -> String {
        "a number from 0 to 1000, for example 0.01".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<f64> {
        let factor = raw.text(Form::Number)?.parse().ok()?;
        (0.0..=1_000.0).contains(&factor).then_some(factor)
    }
}

impl ToToml for Factor {
    fn show(&self, value: &f64) -> Toml {
        Toml::Float(*value)
    }
}

/// A size in bytes, written with a binary unit.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub min: u64,
}

const SIZE_UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A size with the largest unit that divides it.
fn show_size(bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

impl Kind for Size {
    type Value = u64;

    fn expected(&self) -> String {
        format!("a size from {} on, as \"512MiB\" or \"16GiB\"", show_size(self.min))
    }

    fn read(&self, raw: &RawValue) -> Option<u64> {
        let text = raw.text(Form::Text)?;
        let with_unit = |(name, unit): &(&str, u64)| {
            let number = text.trim().strip_suffix(name)?.trim_end();
            number.parse::<u64>().ok()?.checked_mul(*unit)
        };
        SIZE_UNITS.iter().find_map(with_unit).filter(|bytes| *bytes >= self.min)
    }
}

impl ToToml for Size {
    fn show(&self, value: &u64) -> Toml {
        Toml::String(show_size(*value))
    }
}

#[cfg(test)]
mod tests {
    use notbefore_settings::kind::List;

    use super::*;

    fn raw(text: &str) -> RawValue {
        RawValue::Text(text.to_owned())
    }

    fn round<K: ToToml>(kind: K, text: &str, written: &str) {
        let value = kind.read(&raw(text)).unwrap();
        assert_eq!(kind.show(&value).to_string(), written);
        let table: toml::Table = toml::from_str(&format!("x = {written}")).unwrap();
        let again = kind.read(&RawValue::Toml(table["x"].clone())).unwrap();
        assert_eq!(kind.show(&again).to_string(), written);
    }

    #[test]
    fn values_round_trip() {
        round(Factor, "0.01", "0.01");
        round(Factor, "1", "1.0");
        round(List(LISTENER), "127.0.0.1:1, blue=[::1]:2", r#"["127.0.0.1:1", "blue=[::1]:2"]"#);
        round(LISTENER, "blue=10.0.0.1:80%br-blue+tproxy", r#""blue=10.0.0.1:80%br-blue+tproxy""#);
        round(List(PROXY), "10.9.0.2,blue=fd00::/64", r#"["10.9.0.2", "blue=fd00::/64"]"#);
        round(List(PREFIX), "10.9.0.2,fd00::/64", r#"["10.9.0.2", "fd00::/64"]"#);
        round(List(HOST), "Ops.example", r#"["ops.example"]"#);
        round(List(VM), "web-0=127.0.0.1:1", r#"["web-0=127.0.0.1:1"]"#);
        round(MODE, "lenient", "\"lenient\"");
        round(NEWEST_VERSION, "2020-07-01", "\"2020-07-01\"");
        round(HISTORY_SIZE, "512MiB", "\"512MiB\"");
        round(HISTORY_SIZE, "1024 MiB", "\"1GiB\"");
        round(HISTORY_SIZE, "65537KiB", "\"65537KiB\"");
        round(OrNone(HISTORY_SIZE), "none", "\"none\"");
        round(List(VARIABLE), "TZ,LIBVIRT_DEFAULT_URI", r#"["TZ", "LIBVIRT_DEFAULT_URI"]"#);
    }

    #[test]
    fn unusable_values_are_refused() {
        assert!(VARIABLE.read(&raw("NOTBEFORE_TOKEN")).is_none() && VARIABLE.read(&raw("A=b")).is_none());
        assert!(Factor.read(&raw("NaN")).is_none() && Factor.read(&raw("-1")).is_none());
        assert!(Factor.read(&RawValue::Toml(Toml::Integer(2))).is_some());
        for size in ["512", "512MB", "-1GiB", "+GiB", "GiB", "1.5GiB", "63MiB", "99999999999TiB", "1GiBGiB"] {
            assert!(HISTORY_SIZE.read(&raw(size)).is_none(), "{size}");
        }
    }
}
