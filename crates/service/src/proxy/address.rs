//! Address of a proxy: `10.9.0.2`, `10.9.0.0/24`, or `blue=10.9.0.2` in another network than `default`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use notbefore_core::Name;

/// An address or a prefix of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    /// The prefix; all bits after it are zero.
    prefix: IpAddr,
    bits: u32,
}

impl AddressPrefix {
    /// Whether an address has this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == Some(self.prefix)
    }
}

/// An address or a prefix of addresses in a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAddress {
    /// The network, in lower case.
    network: String,
    addresses: AddressPrefix,
}

impl ProxyAddress {
    /// Whether an address of a network matches. `network` is in lower case, as listeners have it.
    pub(super) fn contains(&self, network: &str, address: IpAddr) -> bool {
        self.network == network && self.addresses.contains(address)
    }
}

/// The first bits of an address; none if it has fewer.
fn masked(address: IpAddr, bits: u32) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let dropped = 32_u32.checked_sub(bits)?;
            let mask = u32::MAX.checked_shl(dropped).unwrap_or(0);
            Some(IpAddr::V4((address.to_bits() & mask).into()))
        }
        IpAddr::V6(address) => {
            let dropped = 128_u32.checked_sub(bits)?;
            let mask = u128::MAX.checked_shl(dropped).unwrap_or(0);
            Some(IpAddr::V6((address.to_bits() & mask).into()))
        }
    }
}

impl FromStr for AddressPrefix {
    type Err = ();

    /// Parses `ADDR[/BITS]`. Refuses a prefix with bits set after its length, which is often a typing error, and the
    /// prefix of all addresses.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| ())?)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| ())?.to_canonical();
        let bits = bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
        let prefix = masked(address, bits).filter(|prefix| *prefix == address && bits > 0).ok_or(())?;
        Ok(AddressPrefix { prefix, bits })
    }
}

impl FromStr for ProxyAddress {
    type Err = ();

    /// Parses `[NETWORK=]ADDR[/BITS]`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (network, addresses) = text.split_once('=').unwrap_or(("default", text));
        let network = network.parse::<Name>().map_err(|_| ())?.folded();
        Ok(ProxyAddress { network, addresses: addresses.parse()? })
    }
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.network != "default" {
            write!(f, "{}=", self.network)?;
        }
        self.addresses.fmt(f)
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix)?;
        let whole = if self.prefix.is_ipv4() { 32 } else { 128 };
        if self.bits == whole { Ok(()) } else { write!(f, "/{}", self.bits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_addresses_parse_and_display() {
        for (text, written) in [
            ("10.9.0.2", "10.9.0.2"),
            ("10.9.0.2/32", "10.9.0.2"),
            ("Blue=10.9.0.0/24", "blue=10.9.0.0/24"),
            ("default=10.0.0.0/8", "10.0.0.0/8"),
            ("fd00::/64", "fd00::/64"),
            ("::ffff:10.9.0.2", "10.9.0.2"),
        ] {
            assert_eq!(text.parse::<ProxyAddress>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn malformed_proxy_addresses_are_refused() {
        for text in [
            "",
            "proxy.example",
            "10.9.0.0/33",
            "10.9.0.0/",
            "10.9.0.0/-1",
            "10.9.0.2:80",
            "10.9.0.2/24",
            "0.0.0.0/0",
            "::/0",
            "b/ue=10.9.0.2",
        ] {
            assert!(text.parse::<ProxyAddress>().is_err(), "{text}");
        }
    }
}
