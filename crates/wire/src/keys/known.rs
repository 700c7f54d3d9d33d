//! The servers that a client knows: a file with a line `HOST:PORT KEY` for each, like ssh's `known_hosts`.

use std::collections::HashMap;

use super::{KeyError, PublicKey, lines};

/// The servers, each with the line that names it.
#[derive(Debug, Clone, Default)]
pub struct KnownServers(HashMap<String, (usize, PublicKey)>);

impl KnownServers {
    /// Reads the text of a file. Of several lines for a server the last one counts.
    ///
    /// # Errors
    /// When any line is wrong: its server's key would be forgotten.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut servers = HashMap::new();
        for (line, words) in lines(text) {
            let wrong = |why: String| KeyError::Line { line, why };
            let &[place, key] = words.as_slice() else {
                return Err(wrong("a line has the form HOST:PORT KEY".into()));
            };
            let key = key.parse().map_err(|why: KeyError| wrong(why.to_string()))?;
            servers.insert(place.to_ascii_lowercase(), (line, key));
        }
        Ok(Self(servers))
    }

    /// The key of a server, and the number of the line that has it.
    pub fn find(&self, host: &str, port: u16) -> Option<(usize, PublicKey)> {
        self.0.get(&place(host, port)).copied()
    }

    /// The line for a server.
    pub fn line(host: &str, port: u16, key: PublicKey) -> String {
        format!("{} {key}\n", place(host, port))
    }
}

/// The name of a server: host names in lower case, IPv6 addresses in brackets (RFC 3986 section 3.2.2).
fn place(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;

    #[test]
    fn a_server_is_found_by_name_and_port() {
        let key = |number| PrivateKey::of([number; 32]).unwrap().public();
        let text = [
            "# mine\n".into(),
            KnownServers::line("Far.example", 7487, key(1)),
            KnownServers::line("fe80::1%eth0", 7487, key(2)),
            KnownServers::line("far.example", 7487, key(3)),
        ]
        .concat();
        let known = KnownServers::parse(&text).unwrap();
        assert_eq!(known.find("FAR.example", 7487), Some((4, key(3))));
        assert_eq!(known.find("fe80::1%eth0", 7487), Some((3, key(2))));
        assert_eq!(known.find("far.example", 7488), None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for text in ["\nfar:7487", "\nfar:7487 x25519:AAAA", "\na b c"] {
            let why = KnownServers::parse(text).unwrap_err().to_string();
            assert!(why.starts_with("line 2: "), "{why}");
        }
    }
}
