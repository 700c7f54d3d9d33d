//! Local ports of data connections, as typed.

use std::fmt;
use std::str::FromStr;

use super::unfit;

/// `PORT`, `spread` or `spread:PORT`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourcePorts {
    /// The first port, if one was named.
    pub first: Option<u16>,
    /// Whether they are chosen so that flows fall on different receive queues.
    pub spread: bool,
}

impl FromStr for SourcePorts {
    type Err = String;

    fn from_str(whole: &str) -> Result<Self, String> {
        let port = |text: &str| match text.parse() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(unfit(whole, "a port", "1 to 65535, spread or spread:PORT")),
        };
        match whole.strip_prefix("spread") {
            Some("") => Ok(Self { first: None, spread: true }),
            Some(rest) => {
                // Without a colon it is no port either.
                let first = port(rest.strip_prefix(':').unwrap_or_default())?;
                Ok(Self { first, spread: true })
            }
            None => Ok(Self { first: port(whole)?, spread: false }),
        }
    }
}

impl fmt::Display for SourcePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.spread, self.first) {
            (true, Some(port)) => write!(f, "spread:{port}"),
            (true, None) => f.write_str("spread"),
            (false, Some(port)) => write!(f, "{port}"),
            (false, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_after_the_other_or_spread() {
        let read = |text: &str| text.parse::<SourcePorts>().map(|it| (it.first, it.spread));
        assert_eq!(read("4000"), Ok((Some(4000), false)));
        assert_eq!(read("spread"), Ok((None, true)));
        assert_eq!(read("spread:4000"), Ok((Some(4000), true)));
        for wrong in ["0", "65536", "spread:", "spread4000", "spread:0", "x"] {
            assert!(read(wrong).unwrap_err().contains("1 to 65535"), "{wrong}");
        }
    }
}
