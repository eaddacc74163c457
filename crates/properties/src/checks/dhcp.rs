//! DHCP offers. The request uses the first four bytes of the packet's transaction id and the hardware address below.
//!
//! Invariants: an address that is found is option 245 of the packet; a packet truncated before it is rejected.

use crate::mutate::Rng;
use crate::packet::{Transaction, endpoint_in};
use crate::planted_bug;

const ASKER: Transaction = Transaction { xid: [1, 2, 3, 4], mac: [2, 0, 0, 0, 0, 9] };

/// Offset of the options.
const OPTIONS: usize = 240;

pub fn check(packet: &[u8]) -> bool {
    let Ok(address) = endpoint_in(packet, ASKER) else { return false };
    let option = [&[245, 4][..], &address.octets()].concat();
    let at = packet[OPTIONS..].windows(6).position(|window| window == option);
    let at = OPTIONS + at.expect("the address is in the packet");
    for end in 0..at + option.len() {
        assert!(endpoint_in(&packet[..end], ASKER).is_err(), "an address in {end} of {} bytes", packet.len());
    }
    let mut of_another = packet.to_vec();
    of_another[4] ^= 1;
    assert!(endpoint_in(&of_another, ASKER).is_err(), "an answer to another question");
    planted_bug(at > OPTIONS + 64 && address.octets()[0] == 0);
    true
}

/// Mutates the list of options, or the content of one.
pub fn options(packet: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let (head, mut rest) = packet.split_at_checked(OPTIONS)?;
    let mut options: Vec<Vec<u8>> = Vec::new();
    while let [tag, after @ ..] = rest {
        let length = match (tag, after) {
            (0 | 255, _) | (_, []) => 1,
            (_, [length, ..]) => 2 + usize::from(*length),
        };
        let (option, after) = rest.split_at(length.min(rest.len()));
        options.push(option.to_vec());
        rest = after;
    }
    for _ in 0..=rng.below(3) {
        let (at, with) = (rng.below(options.len()), rng.below(options.len()));
        let option = options.get(at)?.clone();
        match rng.below(6) {
            0 => drop(options.remove(at)),
            1 => options.insert(with, option),
            2 => options.swap(at, with),
            3 => {
                let length = rng.below(40) as u8;
                let content = vec![rng.number() as u8; length.into()];
                options.insert(with, [&[rng.number() as u8, length][..], &content].concat());
            }
            _ => {
                let last = options[at].len() - 1;
                let place = rng.below(last + 1);
                options[at][place] = [0, 1, 4, 255, rng.number() as u8][rng.below(5)];
            }
        }
    }
    Some([head, &options.concat()].concat())
}
