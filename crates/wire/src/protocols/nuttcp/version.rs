//! Versions of nuttcp: their features and their format.

use std::fmt;

/// The beginning of both ends' first line (`HELO_FMT`, line 868).
pub const HELO: &[u8] = b"HELO nuttcp v";

/// A version, such as 6.1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u16,
    minor: u16,
    delta: u16,
}

impl Version {
    /// The version `major.minor.delta`.
    pub const fn new(major: u16, minor: u16, delta: u16) -> Self {
        Self { major, minor, delta }
    }

    /// Reads `6.1.2`; text after the third number is ignored.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (major, minor, delta) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = delta.find(|c: char| !c.is_ascii_digit()).unwrap_or(delta.len());
        Some(Self::new(major.parse().ok()?, minor.parse().ok()?, delta[..digits].parse().ok()?))
    }

    /// Reads the line `HELO nuttcp v6.1.2`.
    pub fn of_helo(line: &str) -> Option<Self> {
        Self::read(line.strip_prefix(std::str::from_utf8(HELO).ok()?)?)
    }

    /// The line `HELO nuttcp v6.1.2`.
    pub fn helo(self) -> String {
        format!("{}{self}\n", String::from_utf8_lossy(HELO))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_as_it_is_written() {
        let version = Version::new(6, 1, 2);
        assert_eq!(version.helo(), "HELO nuttcp v6.1.2\n");
        assert_eq!(Version::of_helo("HELO nuttcp v6.1.2"), Some(version));
        assert_eq!(Version::of_helo("HELO nuttcp v8.2.2-rc1"), Some(Version::new(8, 2, 2)));
        for other in ["HELO nuttcp v6.1", "HELO nuttcp v6..2", "HELO nuttcp v99999.1.1", "KO"] {
            assert_eq!(Version::of_helo(other), None, "{other}");
        }
    }

    #[test]
    fn versions_are_ordered_number_by_number() {
        assert!(Version::new(6, 1, 2) < Version::new(6, 2, 0));
        assert!(Version::new(7, 0, 1) < Version::new(7, 1, 0));
    }
}
