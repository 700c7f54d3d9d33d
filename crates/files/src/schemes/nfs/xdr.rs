//! XDR (RFC 4506) as far as ONC RPC and NFS need it: words of four bytes, and opaque data padded to them.
//!
//! A length announced by the peer is checked against its limit before it is used.

use crate::error::FileError;

/// Why a value can't be read.
#[derive(Debug)]
pub enum Unread {
    /// More bytes must arrive first.
    Short,
    /// The bytes are not valid here.
    Failed(FileError),
}

impl From<FileError> for Unread {
    fn from(error: FileError) -> Self {
        Self::Failed(error)
    }
}

/// Describes a server's violation of its protocol.
pub fn broken(what: impl Into<String>) -> Unread {
    Unread::Failed(FileError::Protocol(what.into()))
}

/// Reads from the bytes that have arrived.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read.
    pub fn used(&self) -> usize {
        self.at
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Unread> {
        let end = self.at.checked_add(length).ok_or(Unread::Short)?;
        let taken = self.bytes.get(self.at..end).ok_or(Unread::Short)?;
        self.at = end;
        Ok(taken)
    }

    pub fn u32(&mut self) -> Result<u32, Unread> {
        let mut word = [0; 4];
        word.copy_from_slice(self.take(4)?);
        Ok(u32::from_be_bytes(word))
    }

    pub fn u64(&mut self) -> Result<u64, Unread> {
        let (high, low) = (self.u32()?, self.u32()?);
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    /// Zero or one.
    pub fn bool(&mut self) -> Result<bool, Unread> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(broken(format!("the server's answer has {other} for yes or no"))),
        }
    }

    /// Opaque data of at most `most` bytes.
    pub fn opaque(&mut self, most: usize, what: &str) -> Result<&'a [u8], Unread> {
        let length = self.u32()? as usize;
        if length > most {
            let why = format!("the server announces {length} bytes of {what}; {most} are allowed");
            return Err(broken(why));
        }
        let taken = self.take(length)?;
        self.take(padding(length))?;
        Ok(taken)
    }
}

/// Padding after opaque data of `length` bytes, so that the next word begins at a multiple of four.
pub fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// Adds a word.
pub fn put(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_be_bytes());
}

/// Adds two words.
pub fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_be_bytes());
}

/// Adds opaque data, which is shorter than 4 GiB.
pub fn put_opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u32);
    out.extend(bytes);
    out.extend(&[0; 3][..padding(bytes.len())]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let mut out = Vec::new();
        put(&mut out, 7);
        put_u64(&mut out, 1 << 40);
        for text in ["", "a", "abcd", "abcde"] {
            put_opaque(&mut out, text.as_bytes());
        }
        assert_eq!(out.len() % 4, 0);
        let mut reader = Reader::new(&out);
        assert_eq!((reader.u32().unwrap(), reader.u64().unwrap()), (7, 1 << 40));
        for text in ["", "a", "abcd", "abcde"] {
            assert_eq!(reader.opaque(5, "text").unwrap(), text.as_bytes());
        }
        assert_eq!(reader.used(), out.len());
        assert!(matches!(reader.u32(), Err(Unread::Short)));
    }

    #[test]
    fn a_length_that_can_not_be_is_refused_before_it_comes() {
        let huge = u32::MAX.to_be_bytes();
        assert!(matches!(Reader::new(&huge).opaque(64, "x"), Err(Unread::Failed(_))));
        assert!(matches!(Reader::new(&[0, 0, 0, 9]).opaque(64, "x"), Err(Unread::Short)));
    }
}
