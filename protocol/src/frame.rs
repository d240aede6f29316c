//! Bytes to lines and back, with the length enforced while reading.
//!
//! Owns: the framing of the wire: one JSON object a line, ended by LF, at most a given length.
//! Never: reads a socket, or parses what is in the line.

/// Room that stays while no bytes are held.
const KEPT_BYTES: usize = 4 << 10;

/// Why bytes are not lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The line is longer than the limit; nothing after it is read.
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes, line feed included.
        limit: usize,
    },
}

/// Cuts a stream of bytes into lines. It never holds more than one line's limit of unfinished bytes
/// beyond what one `push` gives.
///
/// ```
/// use semaprax_protocol::LineCodec;
/// let mut codec = LineCodec::new(16);
/// codec.push(b"{}\n[").unwrap();
/// assert_eq!(codec.next_line(), Some(b"{}".to_vec()));
/// assert_eq!(codec.next_line(), None);
/// assert!(codec.push(&[b'x'; 16]).is_err());
/// ```
#[derive(Debug)]
pub struct LineCodec {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the next line starts in `buffer`.
    start: usize,
    /// Bytes before this place are known to hold no line feed after `start`.
    searched: usize,
    /// The length of the unfinished line at the end of `buffer`.
    unfinished: usize,
}

impl LineCodec {
    /// A codec for lines of at most `limit` bytes, line feed included.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            unfinished: 0,
        }
    }

    /// Takes bytes as they arrive. Complete lines that are within the limit stay available even
    /// when a later one is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.unfinished += piece.len();
            if self.unfinished > self.limit {
                return Err(FrameError::TooLong { limit: self.limit });
            }
            self.buffer.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.unfinished = 0;
            }
        }
        Ok(())
    }

    /// The next complete line, without its LF (and without a CR before it).
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        let rest = self.buffer.get(self.searched..)?;
        let Some(found) = rest.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.buffer.len();
            if self.held() == 0 {
                self.give_back();
            }
            return None;
        };
        let end = self.searched + found;
        let mut line = self.buffer.get(self.start..end)?.to_vec();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// Whether bytes of an unfinished line are held.
    pub fn has_partial(&self) -> bool {
        self.held() > 0
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// A connection that once had a long line keeps no room for the next one.
    fn give_back(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        (self.start, self.searched) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            lines in prop::collection::vec("[a-z]{0,20}", 0..8),
            cuts in prop::collection::vec(1usize..9, 1..40),
        ) {
            let whole: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
            let mut codec = LineCodec::new(64);
            let mut got = Vec::new();
            let mut rest = whole.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                codec.push(now).unwrap();
                while let Some(line) = codec.next_line() { got.push(String::from_utf8(line).unwrap()); }
                rest = later;
            }
            prop_assert_eq!(got, lines);
            prop_assert!(!codec.has_partial());
        }
    }

    #[test]
    fn a_long_line_is_refused_whatever_the_pieces() {
        for piece in [1, 3, 100] {
            let mut codec = LineCodec::new(8);
            let bytes = [b'x'; 9];
            let failed = bytes.chunks(piece).any(|chunk| codec.push(chunk).is_err());
            assert!(failed, "pieces of {piece}");
        }
    }

    #[test]
    fn a_long_line_leaves_no_room_behind() {
        let mut codec = LineCodec::new(1 << 20);
        let mut line = vec![b'x'; 1 << 19];
        line.push(b'\n');
        for _ in 0..3 {
            codec.push(&line).unwrap();
            assert_eq!(codec.held(), line.len());
            assert_eq!(codec.next_line().unwrap().len(), line.len() - 1);
            assert_eq!(codec.next_line(), None);
            assert!(codec.buffer.capacity() <= KEPT_BYTES);
        }
        codec.push(b"a\nb").unwrap();
        assert_eq!(codec.next_line(), Some(b"a".to_vec()));
        assert_eq!((codec.next_line(), codec.held()), (None, 1));
    }

    #[test]
    fn lines_before_a_long_one_are_kept() {
        let mut codec = LineCodec::new(8);
        assert!(codec.push(b"ok\nxxxxxxxxxxxx").is_err());
        assert_eq!(codec.next_line(), Some(b"ok".to_vec()));
    }
}
