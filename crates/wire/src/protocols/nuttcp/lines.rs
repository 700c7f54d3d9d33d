//! Splits bytes into lines of bounded length.

use crate::error::WireError;

/// Longest line, bytes. nuttcp's longest line, the parameters of 8.2.2, is below 600.
const MAX_LINE_BYTES: usize = 4096;

/// Bytes that have not become lines yet.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete line, without its end. Invalid UTF-8 is replaced.
    pub fn next(&mut self) -> Result<Option<String>, WireError> {
        let end = self.pending.iter().position(|byte| *byte == b'\n');
        if end.unwrap_or(self.pending.len()) > MAX_LINE_BYTES {
            self.pending = Vec::new();
            return Err(WireError::Protocol(format!("a line of more than {MAX_LINE_BYTES} bytes")));
        }
        let Some(end) = end else { return Ok(None) };
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        let line = line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]);
        Ok(Some(String::from_utf8_lossy(line).into_owned()))
    }

    /// The beginning of an incomplete line.
    pub fn rest(&self) -> &[u8] {
        &self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let mut lines = Lines::default();
        for byte in b"HELO\r\nOK \xff\nre" {
            lines.push(&[*byte]);
        }
        assert_eq!(lines.next(), Ok(Some("HELO".into())));
        assert_eq!(lines.next(), Ok(Some("OK \u{fffd}".into())));
        assert_eq!(lines.next(), Ok(None));
        assert_eq!(lines.rest(), b"re");
    }

    #[test]
    fn a_line_without_end_is_an_error_and_not_memory() {
        let mut lines = Lines::default();
        lines.push(&[b'x'; MAX_LINE_BYTES]);
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"x");
        assert!(lines.next().is_err());
        assert!(lines.rest().is_empty());
    }
}
