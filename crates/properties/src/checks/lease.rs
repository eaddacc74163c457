//! Lease files of DHCP clients.
//!
//! Invariants: addresses are unique, no more than the file has lines, and each is found again in dhclient's format.
//! An input passes if an address is found.

use std::collections::HashSet;

use crate::lease::addresses;
use crate::planted_bug;

pub fn check(bytes: &[u8]) -> bool {
    // As files are read: invalid UTF-8 is replaced.
    let text = String::from_utf8_lossy(bytes);
    let found = addresses(&text);
    assert!(found.len() <= text.lines().count());
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len(), "an address twice");
    for address in &found {
        let [a, b, c, d] = address.octets();
        assert_eq!(addresses(&format!("  option unknown-245 {a:x}:{b:x}:{c:x}:{d:x};")), [*address]);
    }
    planted_bug(found.len() >= 3 && found.iter().any(|address| address.octets()[3] == 0));
    !found.is_empty()
}
