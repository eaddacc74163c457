//! Encoder of a DHCP DISCOVER and parser of the OFFER: bytes only.
//!
//! Platforms without a virtual network announce the endpoint in DHCP option 245. The VM's DHCP client may have
//! dropped it; a new DISCOVER costs one packet and takes no lease, because no REQUEST follows.
//!
//! The crate dhcproto is not used: it would add about forty crates to a client that has fifty. It also stops silently
//! at the first invalid option, so a host name that is not UTF-8 would hide the endpoint. This parser ignores the
//! content of other options.

use std::net::Ipv4Addr;

/// The option with the endpoint's address.
pub const ENDPOINT_OPTION: u8 = 245;
/// Longest message read: an Ethernet packet.
pub const MESSAGE_BYTES_MAX: usize = 1_500;

/// Some relays drop messages shorter than BOOTP's.
const MESSAGE_BYTES_MIN: usize = 300;
const OP: usize = 0;
const XID: usize = 4;
const FLAGS: usize = 10;
const HARDWARE_ADDRESS: usize = 28;
const COOKIE: usize = 236;
const OPTIONS: usize = 240;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: [u8; 2] = [1, 6];
const MAGIC: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
/// Request a broadcast reply: we have no address for a unicast one.
const BROADCAST: u8 = 0x80;

const PAD: u8 = 0;
const MESSAGE_TYPE: u8 = 53;
const DISCOVER: u8 = 1;
const WANTED: u8 = 55;
const END: u8 = 255;

/// Identifies our request; a reply must match both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Random transaction id.
    pub xid: [u8; 4],
    /// Hardware address of the interface.
    pub mac: [u8; 6],
}

/// Why a packet is not a usable reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It ends before its options do.
    #[error("a DHCP answer of {bytes} bytes is cut short")]
    Short {
        /// Its length.
        bytes: usize,
    },
    /// Not a DHCP message, or not a reply.
    #[error("a packet that is no DHCP answer")]
    NoAnswer,
    /// A reply to another client.
    #[error("a DHCP answer to another client")]
    NotOurs,
    /// No option 245.
    #[error("a DHCP answer without option 245")]
    NoOption,
    /// Option 245 is not an address.
    #[error("a DHCP answer whose option 245 has {bytes} bytes, where an address has 4")]
    OptionLength {
        /// Its length.
        bytes: usize,
    },
}

/// Builds a DISCOVER that requests option 245.
pub fn discover(transaction: Transaction) -> Vec<u8> {
    let mut packet = vec![0; OPTIONS];
    packet[OP] = REQUEST;
    packet[OP + 1..][..2].copy_from_slice(&ETHERNET);
    packet[XID..][..4].copy_from_slice(&transaction.xid);
    packet[FLAGS] = BROADCAST;
    packet[HARDWARE_ADDRESS..][..6].copy_from_slice(&transaction.mac);
    packet[COOKIE..].copy_from_slice(&MAGIC);
    packet.extend([MESSAGE_TYPE, 1, DISCOVER, WANTED, 1, ENDPOINT_OPTION, END]);
    packet.resize(packet.len().max(MESSAGE_BYTES_MIN), PAD);
    packet
}

/// The address in a reply to us.
pub fn endpoint_in(packet: &[u8], transaction: Transaction) -> Result<Ipv4Addr, PacketError> {
    let short = PacketError::Short { bytes: packet.len() };
    if packet.len() <= OPTIONS {
        return Err(short);
    }
    if packet[OP] != REPLY || packet[COOKIE..OPTIONS] != MAGIC {
        return Err(PacketError::NoAnswer);
    }
    if packet[XID..][..4] != transaction.xid || packet[HARDWARE_ADDRESS..][..6] != transaction.mac {
        return Err(PacketError::NotOurs);
    }
    let mut rest = &packet[OPTIONS..];
    loop {
        let (&tag, after) = rest.split_first().ok_or(short.clone())?;
        match tag {
            PAD => rest = after,
            END => return Err(PacketError::NoOption),
            tag => {
                let (&length, after) = after.split_first().ok_or(short.clone())?;
                let (value, after) = after.split_at_checked(usize::from(length)).ok_or(short.clone())?;
                if tag == ENDPOINT_OPTION {
                    let address: Result<[u8; 4], _> = value.try_into();
                    return address
                        .map(Ipv4Addr::from)
                        .map_err(|_| PacketError::OptionLength { bytes: value.len() });
                }
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKER: Transaction = Transaction { xid: [1, 2, 3, 4], mac: [2, 0, 0, 0, 0, 9] };

    /// A reply with these options.
    fn answer(options: &[u8]) -> Vec<u8> {
        let mut packet = discover(ASKER);
        packet[OP] = REPLY;
        packet.truncate(OPTIONS);
        packet.extend(options);
        packet
    }

    #[test]
    fn a_discover_has_what_servers_look_at() {
        let packet = discover(ASKER);
        assert!(packet.len() >= MESSAGE_BYTES_MIN);
        assert_eq!(packet[..4], [1, 1, 6, 0]);
        assert_eq!(packet[4..8], ASKER.xid);
        assert_eq!(packet[10..12], [0x80, 0]);
        assert_eq!(packet[28..34], ASKER.mac);
        assert_eq!(packet[236..247], [0x63, 0x82, 0x53, 0x63, 53, 1, 1, 55, 1, 245, 255]);
    }

    #[test]
    fn option_245_is_found_at_any_position() {
        let expected = Ok(Ipv4Addr::new(168, 63, 129, 16));
        for options in [
            &[245, 4, 168, 63, 129, 16, 255][..],
            &[53, 1, 2, 0, 0, 3, 4, 10, 0, 0, 1, 245, 4, 168, 63, 129, 16, 255],
            &[0, 245, 4, 168, 63, 129, 16],
            &[12, 0, 245, 4, 168, 63, 129, 16, 255, 0, 0],
        ] {
            assert_eq!(endpoint_in(&answer(options), ASKER), expected, "{options:?}");
        }
    }

    #[test]
    fn foreign_reply_is_rejected() {
        let good = answer(&[245, 4, 168, 63, 129, 16, 255]);
        let changed = |at: usize| {
            let mut packet = good.clone();
            packet[at] ^= 0x40;
            endpoint_in(&packet, ASKER)
        };
        assert_eq!(changed(OP), Err(PacketError::NoAnswer));
        assert_eq!(changed(COOKIE + 3), Err(PacketError::NoAnswer));
        assert_eq!(changed(XID), Err(PacketError::NotOurs));
        assert_eq!(changed(HARDWARE_ADDRESS + 5), Err(PacketError::NotOurs));
        for bytes in [0, 4, 240] {
            assert_eq!(endpoint_in(&good[..bytes], ASKER), Err(PacketError::Short { bytes }));
        }
        for options in [&[245][..], &[245, 4, 168, 63, 129], &[53, 1, 2], &[53, 9, 2]] {
            assert!(
                matches!(endpoint_in(&answer(options), ASKER), Err(PacketError::Short { .. })),
                "{options:?}"
            );
        }
        for bytes in [0, 1, 3, 5, 8] {
            let mut options = vec![245, bytes];
            options.extend(vec![1; bytes.into()]);
            options.push(255);
            let expected = PacketError::OptionLength { bytes: bytes.into() };
            assert_eq!(endpoint_in(&answer(&options), ASKER), Err(expected));
        }
        // Bytes after the end option are ignored.
        assert_eq!(endpoint_in(&answer(&[255, 245, 4, 168, 63, 129, 16]), ASKER), Err(PacketError::NoOption));
    }

    proptest! {
        #[test]
        fn any_packet_is_accepted(options in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = endpoint_in(&answer(&options), ASKER);
        }
    }
}
