//! Incremental decoder for chunked bodies.
//!
//! The decoder keeps its state between calls, so a body may be split anywhere. The size of its output is limited. Chunk
//! extensions and trailers are limited too; they are read and dropped.

use notbefore_wire::guest::error::GuestError;

use super::settings::{BODY_BYTES_MAX, HEADERS_MAX};

/// Maximum bytes besides the data: sizes, extensions and trailers. A chunk needs five to twelve of them, so this allows
/// a body in chunks of a few bytes.
const OVERHEAD_BYTES_MAX: usize = BODY_BYTES_MAX;

pub(super) const TOO_LARGE: GuestError = GuestError::BodyTooLarge { limit: BODY_BYTES_MAX };

const MALFORMED: GuestError = GuestError::Malformed("the chunked body cannot be parsed");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a chunk's size; whether it has a digit yet.
    Size(bool),
    /// After the size, in white space.
    Blank,
    /// After the size and a semicolon, in a chunk extension.
    Extension,
    /// Before the LF of the size's line.
    SizeEnd,
    Data,
    /// After the data, before its CRLF.
    DataReturn,
    DataEnd,
    /// After the last chunk: header lines up to an empty line.
    Trailers,
    Done,
}

/// A chunked body that is being decoded.
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// Bytes left in the chunk.
    left: usize,
    overhead: usize,
    data: Vec<u8>,
    /// The trailers so far; checked and dropped.
    trailers: Vec<u8>,
}

impl Chunked {
    pub(super) fn new() -> Chunked {
        Chunked { state: State::Size(false), left: 0, overhead: 0, data: Vec::new(), trailers: Vec::new() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The decoded data. Call it when [`Self::is_done`].
    pub(super) fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// Decodes more input; returns how many of its bytes belong to this body.
    pub(super) fn feed(&mut self, input: &[u8]) -> Result<usize, GuestError> {
        let mut used = 0;
        while let Some(&byte) = input.get(used).filter(|_| !self.is_done()) {
            if self.state == State::Data {
                let here = &input[used..input.len().min(used + self.left)];
                self.data.extend_from_slice(here);
                used += here.len();
                self.left -= here.len();
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            self.overhead += 1;
            if self.overhead > OVERHEAD_BYTES_MAX {
                return Err(TOO_LARGE);
            }
            self.state = self.step(byte)?;
            used += 1;
        }
        Ok(used)
    }

    /// The state after one byte that is not data.
    fn step(&mut self, byte: u8) -> Result<State, GuestError> {
        match (self.state, byte) {
            (State::Size(any), _) => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) => {
                    self.left = self.left * 16 + digit as usize;
                    if self.data.len() + self.left > BODY_BYTES_MAX {
                        return Err(TOO_LARGE);
                    }
                    Ok(State::Size(true))
                }
                (None, b'\r') if any => Ok(State::SizeEnd),
                (None, b' ' | b'\t') if any => Ok(State::Blank),
                (None, b';') if any => Ok(State::Extension),
                (None, _) => Err(MALFORMED),
            },
            (State::Blank, b' ' | b'\t') => Ok(State::Blank),
            (State::Blank, b';') => Ok(State::Extension),
            (State::Blank, b'\r') => Ok(State::SizeEnd),
            (State::Extension, b'\r') => Ok(State::SizeEnd),
            (State::Extension, b'\n') => Err(MALFORMED),
            (State::Extension, _) => Ok(State::Extension),
            (State::SizeEnd, b'\n') if self.left == 0 => Ok(State::Trailers),
            (State::SizeEnd, b'\n') => Ok(State::Data),
            (State::DataReturn, b'\r') => Ok(State::DataEnd),
            (State::DataEnd, b'\n') => Ok(State::Size(false)),
            (State::Trailers, _) => {
                self.trailers.push(byte);
                after_trailer(&self.trailers)
            }
            (State::Blank | State::SizeEnd | State::DataReturn | State::DataEnd, _) => Err(MALFORMED),
            (state @ (State::Data | State::Done), _) => Ok(state),
        }
    }
}

/// The state after these bytes of trailers. They end with an empty line and must parse as headers.
fn after_trailer(trailers: &[u8]) -> Result<State, GuestError> {
    match trailers {
        b"\r\n" => return Ok(State::Done),
        b"\n" => return Err(MALFORMED),
        // CR and LF come only together, at the end of a line.
        [.., before, last] if (*before == b'\r') != (*last == b'\n') => return Err(MALFORMED),
        _ => {}
    }
    if !trailers.ends_with(b"\r\n\r\n") {
        return Ok(State::Trailers);
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    match httparse::parse_headers(trailers, &mut headers) {
        Ok(httparse::Status::Complete((length, _))) if length == trailers.len() => Ok(State::Done),
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data and the bytes after the body, if the body has ended.
    type Decoded = Option<(Vec<u8>, Vec<u8>)>;

    /// Decodes an input that arrives in pieces of one size.
    fn decode(input: &[u8], piece: usize) -> Result<Decoded, GuestError> {
        let mut chunked = Chunked::new();
        let mut rest = Vec::new();
        for piece in input.chunks(piece) {
            let used = chunked.feed(piece)?;
            rest.extend_from_slice(&piece[used..]);
        }
        Ok(chunked.is_done().then(|| (chunked.into_data(), rest)))
    }

    #[test]
    fn chunks_decode_at_any_split() {
        let input = b"4\r\nWiki\r\n6;a=\"b\"\r\npedia \r\nE \r\nin \r\n\r\nchunks.\r\n000\r\nA: b\r\nC: d\r\n\r\nGET /";
        for piece in 1..=input.len() {
            let (data, rest) = decode(input, piece).unwrap().unwrap();
            assert_eq!(data, b"Wikipedia in \r\n\r\nchunks.", "pieces of {piece}");
            assert_eq!(rest, b"GET /");
        }
        assert_eq!(decode(b"0\r\n\r\n", 1), Ok(Some((vec![], vec![]))));
        assert_eq!(decode(b"4\r\nWiki\r\n0\r\n", 1), Ok(None));
    }

    #[test]
    fn malformed_chunk_is_refused() {
        for input in [
            "x",
            "\r\n",
            "-1\r\n",
            "4\n",
            "4 x\r\n",
            "4\r\nWikix",
            "4\r\nWiki\rx",
            "4;\n",
            "0\r\nA\r\n\r\n",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
            "0\r\nA\rb",
            " 4\r\n",
        ] {
            assert_eq!(decode(input.as_bytes(), 1), Err(MALFORMED), "{input:?}");
        }
    }

    #[test]
    fn body_limit_holds_for_any_chunking() {
        assert_eq!(decode(b"10001\r\n", 1), Err(TOO_LARGE));
        assert_eq!(decode(b"ffffffffffffffffffffffff\r\n", 1), Err(TOO_LARGE));
        assert_eq!(decode(&b"1\r\nx\r\n".repeat(BODY_BYTES_MAX), 4096), Err(TOO_LARGE));
        let extension = [b"1;".as_slice(), &vec![b'x'; OVERHEAD_BYTES_MAX]].concat();
        assert_eq!(decode(&extension, 4096), Err(TOO_LARGE));
        let zeros = vec![b'0'; OVERHEAD_BYTES_MAX + 1];
        assert_eq!(decode(&zeros, 4096), Err(TOO_LARGE));
        let most = [b"10000\r\n".as_slice(), &vec![b'x'; BODY_BYTES_MAX], b"\r\n0\r\n\r\n"].concat();
        assert_eq!(decode(&most, 4096).unwrap().unwrap().0.len(), BODY_BYTES_MAX);
    }
}
