//! A list of byte strings in one, each after its length (four bytes, big-endian). Two different lists are never equal
//! as bytes, so a signature of the bytes is one of every part.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Most parts of a list: two for each header of a request, and a few more.
pub const PARTS_MAX: usize = 512;

/// None if a part is too long for its length field.
pub fn encode<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Option<Bytes> {
    let mut bytes = BytesMut::new();
    for part in parts {
        bytes.put_u32(u32::try_from(part.len()).ok()?);
        bytes.put_slice(part);
    }
    Some(bytes.freeze())
}

/// None if the bytes are no such list.
pub fn decode(mut bytes: Bytes) -> Option<Vec<Bytes>> {
    let mut parts = Vec::new();
    while bytes.has_remaining() {
        let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
        if length > bytes.len() || parts.len() == PARTS_MAX {
            return None;
        }
        parts.push(bytes.split_to(length));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_round_trip() {
        for parts in [&[][..], &[&b""[..]], &[b"a", b"", b"bc"], &[&[0; 300]]] {
            let bytes = encode(parts.iter().copied()).unwrap();
            assert_eq!(decode(bytes).unwrap(), parts);
        }
    }

    #[test]
    fn malformed_lists_are_refused() {
        for bytes in [&b"\0"[..], b"\0\0\0\x02a", b"\xff\xff\xff\xff", b"\0\0\0\x01ab", b"\0\0\0\x01a\0\0"] {
            assert_eq!(decode(Bytes::copy_from_slice(bytes)), None, "{bytes:?}");
        }
        let many = |count: usize| Bytes::from(vec![0; 4 * count]);
        assert!(decode(many(PARTS_MAX)).is_some());
        assert!(decode(many(PARTS_MAX + 1)).is_none());
    }
}
