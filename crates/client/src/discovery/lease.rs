//! Parser of DHCP option 245 in lease files of other DHCP clients.
//!
//! These formats are not stable, so they are parsed loosely. A result is only a hint: it is verified by a real
//! request.

use std::net::Ipv4Addr;

/// Names of the option: dhclient's for an unknown and for a declared option, systemd-networkd's, and
/// NetworkManager's, old and new.
const NAMES: [&str; 6] =
    ["unknown-245", "option-245", "option_245", "dhcp4.private_245", "private_245", "unknown_245"];

/// The addresses in a lease file, newest first, because clients append.
///
/// Both formats are lines: dhclient's `option unknown-245 a8:3f:81:10;`, the others' `OPTION_245=a83f8110`.
pub fn addresses(text: &str) -> Vec<Ipv4Addr> {
    let mut found: Vec<Ipv4Addr> = text.lines().rev().filter_map(address_in).collect();
    let mut seen = Vec::new();
    found.retain(|address| {
        let new = !seen.contains(address);
        seen.push(*address);
        new
    });
    found
}

fn address_in(line: &str) -> Option<Ipv4Addr> {
    let line = line.trim();
    let line = line.strip_prefix("option ").unwrap_or(line).trim_start();
    let (name, value) = line.split_once(|c: char| c == '=' || c.is_whitespace())?;
    if !NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let value = value.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
    let value = value.trim_end().trim_end_matches(';').trim_end();
    let bytes = quoted(value).or_else(|| dotted(value)).or_else(|| hexadecimal(value))?;
    let address: [u8; 4] = bytes.try_into().ok()?;
    Some(address.into())
}

fn dotted(value: &str) -> Option<Vec<u8>> {
    value.parse::<Ipv4Addr>().ok().map(|address| address.octets().to_vec())
}

/// `a8:3f:81:10`, where dhclient omits leading zeros, or `a83f8110`.
fn hexadecimal(value: &str) -> Option<Vec<u8>> {
    let byte = |text: &str| u8::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+'));
    match value.contains(':') {
        true => value.split(':').map(byte).collect(),
        false if value.len() % 2 == 1 => None,
        false => value.as_bytes().chunks(2).map(|pair| byte(std::str::from_utf8(pair).ok()?)).collect(),
    }
}

/// dhclient writes printable bytes as a string with escapes.
fn quoted(value: &str) -> Option<Vec<u8>> {
    let inside = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = inside.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let octal = rest.as_slice().get(..3).filter(|digits| digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest.nth(2);
            }
            None => bytes.push(*rest.next()?),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

    #[test]
    fn dhclients_newest_lease_comes_first() {
        let text = r#"
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option subnet-mask 255.255.255.0;
  option unknown-245 a:0:0:1;
  expire 1 2026/11/16 05:00:00;
}
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option unknown-245 a8:3f:81:10;
  option unknown-245-not a8:3f:81:11;
}
"#;
        assert_eq!(addresses(text), [AZURE, Ipv4Addr::new(10, 0, 0, 1)]);
    }

    /// As systemd-networkd 252 writes it, and NetworkManager 1.42 in its device state; its lease file has only the
    /// address.
    #[test]
    fn newer_lease_formats_are_read() {
        let networkd = "# This is private data. Do not parse.\nADDRESS=10.0.0.4\nROUTER=10.0.0.1\nLIFETIME=3600\n\
            HOSTNAME=vm\nCLIENTID=ffae517bec00020000ab110033bdebf95e192c\nOPTION_245=a83f8110\n";
        let network_manager = "[device]\nmanaged=true\nnext-server=10.0.0.1\n\n[dhcp4]\ndhcp4.ip_address=10.0.0.4\n\
            dhcp4.private_245=a8:3f:81:10\ndhcp4.routers=10.0.0.1\n";
        assert_eq!(addresses(networkd), [AZURE]);
        assert_eq!(addresses(network_manager), [AZURE]);
    }

    #[test]
    fn option_spellings_are_read() {
        for line in [
            "option option-245 a8:3f:81:10;",
            "  option unknown-245 168.63.129.16 ;",
            "OPTION_245=a83f8110",
            "option_245 = A8:3F:81:10",
            "private_245=a8:3f:81:10",
            r#"option unknown-245 "\250?\201\020";"#,
        ] {
            assert_eq!(addresses(line), [AZURE], "{line}");
        }
        assert_eq!(addresses(r#"option unknown-245 "AB\"\\";"#), [Ipv4Addr::new(65, 66, 34, 92)]);
    }

    #[test]
    fn invalid_address_is_none() {
        for line in [
            "",
            "option unknown-245 a8:3f:81;",
            "option unknown-245 a8:3f:81:10:0;",
            "option unknown-245 a8:3f:81:100;",
            "option unknown-245 a8:3f::10;",
            "option unknown-245 \"ABC\";",
            "option unknown-245 \"ABC\\",
            "option unknown-245",
            "OPTION_245=a83f81",
            "OPTION_245=a83f811",
            "OPTION_245=+83f8110",
            "OPTION_2450=a83f8110",
            "#OPTION_245=a83f8110",
            "OPTION_245=é83f81",
        ] {
            assert!(addresses(line).is_empty(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_lease_file_is_accepted(value in "\\PC{0,12}") {
            let _ = addresses(&format!("option unknown-245 {value}\nOPTION_245={value}\n{value}"));
        }

        #[test]
        fn every_address_is_read_as_dhclient_writes_it(bytes: [u8; 4]) {
            let [a, b, c, d] = bytes;
            prop_assert_eq!(addresses(&format!("  option unknown-245 {a:x}:{b:x}:{c:x}:{d:x};")), vec![Ipv4Addr::from(bytes)]);
        }
    }
}
