//! A file for captured packets, and the host that captures: `[far:]FILE`.

use std::path::PathBuf;
use std::str::FromStr;

use goodput_model::EndName;

/// `FILE` for this host, `far:FILE` for the far one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureFile {
    /// Where packets are captured.
    pub end: EndName,
    /// The file, at this host.
    pub path: PathBuf,
}

impl FromStr for CaptureFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (end, path) = match text.strip_prefix("far:") {
            Some(path) => (EndName::Far, path),
            None => (EndName::Near, text),
        };
        match path {
            "" => Err(format!("{text:?} names no file; write FILE or far:FILE")),
            path => Ok(Self { end, path: path.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_of_the_far_host() {
        let read = |text: &str| text.parse::<CaptureFile>();
        let file = |end, path: &str| Ok(CaptureFile { end, path: path.into() });
        assert_eq!(read("own.pcapng"), file(EndName::Near, "own.pcapng"));
        assert_eq!(read("far:/tmp/far.pcapng"), file(EndName::Far, "/tmp/far.pcapng"));
        assert_eq!(read("./far:odd"), file(EndName::Near, "./far:odd"));
        assert!(read("").is_err() && read("far:").is_err());
    }
}
