//! Source addresses of guests: 127.1.0.1 and up, which need no setup on loopback.

use std::net::Ipv4Addr;

/// Address of the n-th guest. The last byte is never 0 or 255, which some software rejects.
pub fn address(n: usize) -> Ipv4Addr {
    let (high, low) = (n / 254, n % 254 + 1);
    // 127.1.0.0/16 holds 65,024 guests; more continue in 127.2.0.0/16.
    Ipv4Addr::new(127, 1 + (high >> 8) as u8, (high & 255) as u8, low as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guest_has_an_address_of_its_own() {
        assert_eq!(address(0).to_string(), "127.1.0.1");
        assert_eq!(address(253).to_string(), "127.1.0.254");
        assert_eq!(address(254).to_string(), "127.1.1.1");
        assert_eq!(address(65_024).to_string(), "127.2.0.1");
        let all: std::collections::HashSet<Ipv4Addr> = (0..100_000).map(address).collect();
        assert_eq!(all.len(), 100_000);
    }
}
