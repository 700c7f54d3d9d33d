//! The one word that names the far end: `HOST`, `HOST:PORT`, `SCHEME://HOST[:PORT]`, or the path of a file.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_files::{Client, Open, Options, Place, schemes as file_schemes};
use goodput_model::{Direction, Family};
use goodput_wire::session::Protocol;
use goodput_wire::{file_server, mounted_file};

use crate::error::EngineError;

/// Who is at the other end and which protocol it speaks.
#[derive(Clone)]
pub struct Target {
    /// As the user typed it.
    pub text: String,
    /// Host name or address.
    pub host: String,
    /// Port of the control connection.
    pub port: u16,
    /// The protocol.
    pub protocol: &'static Protocol,
    /// The file, if the target is a file on a server that this end talks to.
    pub file: Option<FileTarget>,
    /// The file, if the target is a file on a mount.
    pub mounted: Option<MountedTarget>,
}

/// A file on a mount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountedTarget {
    /// Its path.
    pub path: PathBuf,
    /// Whether to write files beside it, or in it if it is a folder, instead of reading this one.
    pub write: bool,
    /// Directory for notes of what is written; without one, nothing is written.
    pub notes: Option<PathBuf>,
}

/// A file at a server that is not goodput.
#[derive(Debug, Clone)]
pub struct FileTarget {
    /// Where it is.
    pub place: Place,
    /// How a conversation with its server begins.
    pub open: Open,
    /// How to contact its server.
    pub options: Arc<Options>,
    /// Addresses of the host from the user, instead of the resolver's.
    pub resolved: Vec<IpAddr>,
    /// Whether to store a file beside it instead of fetching this one.
    pub write: bool,
    /// Directory for notes of what is stored at servers; without one, nothing is stored.
    pub notes: Option<PathBuf>,
    /// Whether it was fetched before.
    pub fetched: Fetched,
}

/// Whether a file was fetched before, so that it is in its server's cache. All clones of a target share this: in a
/// comparison, only the first run has to fetch the file before it measures.
#[derive(Debug, Clone, Default)]
pub struct Fetched(Arc<AtomicBool>);

impl Fetched {
    /// Notes that the file is fetched.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the file was fetched.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl FileTarget {
    /// Whether only `copy` can receive it.
    pub fn is_decoded(&self) -> bool {
        self.place.scheme().decoded
    }
}

impl FromStr for Target {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        if let Some(path) = path_of(text) {
            return path.map(|path| Self::of_path(text, path));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("goodput", text));
        if let Some(client) = file_schemes::find(scheme) {
            return Self::of_file(text, client);
        }
        if scheme == "ssh" {
            return Err(EngineError::Target(format!(
                "{text}: only test, compare and tune start a server by SSH; start `goodput serve` there, and name its host \
                 without ssh://"
            )));
        }
        let protocol = find_protocol(scheme)?;
        let (host, port) = split_port(rest.trim_end_matches('/')).ok_or_else(|| {
            EngineError::Target(format!(
                "{text:?} is not a host; write HOST, HOST:PORT or [IPV6]:PORT, for another protocol with its scheme in front: {}",
                schemes()
            ))
        })?;
        let port = port.unwrap_or(protocol.port);
        Ok(Self { text: text.into(), host: host.into(), port, protocol, file: None, mounted: None })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Target {
    fn of_file(text: &str, client: &Client) -> Result<Self, EngineError> {
        let place =
            file_schemes::parse(text).map_err(|why| EngineError::Target(why.to_string()))?;
        Ok(Self {
            text: text.into(),
            host: place.address(),
            port: place.port(),
            protocol: &file_server::PROTOCOL,
            file: Some(FileTarget {
                place,
                open: client.open,
                options: Arc::default(),
                resolved: Vec::new(),
                write: false,
                notes: None,
                fetched: Fetched::default(),
            }),
            mounted: None,
        })
    }

    fn of_path(text: &str, path: PathBuf) -> Self {
        Self {
            text: text.into(),
            host: String::new(),
            port: 0,
            protocol: &mounted_file::PROTOCOL,
            file: None,
            mounted: Some(MountedTarget { path, ..MountedTarget::default() }),
        }
    }

    /// The file on a server that it names.
    pub fn file(&self) -> Result<&FileTarget, EngineError> {
        self.file.as_ref().ok_or_else(|| EngineError::Target(format!("{self} names no file")))
    }

    /// Whether it is a file on an NFS server.
    pub fn is_nfs(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.place.scheme().id == "nfs")
    }

    /// Who sends if the user asked for `asked`: files are fetched unless they are to be stored.
    pub fn direction(&self, asked: Direction) -> Direction {
        let is_read = match (&self.file, &self.mounted) {
            (Some(file), _) => !file.write,
            (None, Some(mounted)) => !mounted.write,
            (None, None) => false,
        };
        if is_read && asked == Direction::Send { Direction::Reverse } else { asked }
    }

    /// Every address of the target, in the resolver's order; only those of one family if one was asked for. Blocks
    /// while the resolver answers. None for a file on a mount: who serves it is the mount's business.
    pub fn addresses(&self, family: Option<Family>) -> Result<Vec<SocketAddr>, EngineError> {
        if self.mounted.is_some() {
            return Ok(Vec::new());
        }
        let given = self.file.iter().flat_map(|file| &file.resolved);
        let given: Vec<_> = given.map(|ip| SocketAddr::new(*ip, self.port)).collect();
        let all = if given.is_empty() { self.resolve()? } else { given };
        let wanted: Vec<_> =
            all.into_iter().filter(|address| is_of(address.ip(), family)).collect();
        if wanted.is_empty() {
            return Err(EngineError::Target(format!(
                "{} has no address of the requested IP version",
                self.host
            )));
        }
        Ok(wanted)
    }
}

impl Target {
    fn resolve(&self) -> Result<Vec<SocketAddr>, EngineError> {
        let all = (self.host.as_str(), self.port).to_socket_addrs();
        all.map(Iterator::collect).map_err(|cause| {
            EngineError::Target(format!("can't resolve {}: {cause}; check the name", self.host))
        })
    }
}

/// The path that `text` names, if it names one: absolute, relative (by how it begins), or as a URL.
fn path_of(text: &str) -> Option<Result<PathBuf, EngineError>> {
    if text.starts_with("file:") {
        let path = goodput_files::path_of_url(text);
        return Some(path.map_err(|why| EngineError::Target(format!("{text}: {why}"))));
    }
    let is_path = ["/", "./", "../"].iter().any(|beginning| text.starts_with(beginning));
    is_path.then(|| Ok(PathBuf::from(text)))
}

fn is_of(address: IpAddr, family: Option<Family>) -> bool {
    match family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    }
}

fn find_protocol(scheme: &str) -> Result<&'static Protocol, EngineError> {
    goodput_wire::protocols::ALL.iter().copied().find(|p| p.id == scheme).ok_or_else(|| {
        EngineError::Target(format!("{scheme}:// is not supported; known: {}", schemes()))
    })
}

/// How a target of each protocol begins.
fn schemes() -> String {
    let protocols = goodput_wire::protocols::ALL.iter().map(|protocol| protocol.id);
    let files = file_schemes::ALL.iter().map(|client| client.scheme.id);
    let all = protocols.chain(files).map(|id| format!("{id}://"));
    all.collect::<Vec<_>>().join(", ")
}

/// Host and port of `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare IPv6 address.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        let port = match after {
            "" => None,
            _ => Some(after.strip_prefix(':')?.parse().ok()?),
        };
        return (!host.is_empty()).then_some((host, port));
    }
    let plain = |host: &str| !host.is_empty() && !host.contains(['/', ' ', '@']);
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => plain(text).then_some((text, None)),
        Some((host, port)) => {
            let port = port.parse().ok()?;
            plain(host).then_some((host, Some(port)))
        }
        None => plain(text).then_some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, u16) {
        let target: Target = text.parse().unwrap();
        (target.host, target.port)
    }

    #[test]
    fn hosts_ports_and_schemes_are_distinguished() {
        let port = goodput_wire::protocols::ALL[0].port;
        assert_eq!(parsed("nas"), ("nas".into(), port));
        assert_eq!(parsed("192.0.2.7:99"), ("192.0.2.7".into(), 99));
        assert_eq!(parsed("2001:db8::1"), ("2001:db8::1".into(), port));
        assert_eq!(parsed("[2001:db8::1]:99"), ("2001:db8::1".into(), 99));
        assert_eq!(parsed("goodput://nas/"), ("nas".into(), port));
    }

    #[test]
    fn a_path_is_a_file_on_a_mount() {
        let path = |text: &str| text.parse::<Target>().unwrap().mounted.map(|file| file.path);
        assert_eq!(path("/mnt/nas/a b"), Some("/mnt/nas/a b".into()));
        assert_eq!(path("./file"), Some("./file".into()));
        assert_eq!(path("file:///mnt/a%20b"), Some("/mnt/a b".into()));
        assert_eq!(path("nas"), None);
        assert!("file://nas/export".parse::<Target>().is_err(), "another host's");
    }

    #[test]
    fn what_names_no_host_is_refused_in_words() {
        for text in ["", ":99", "nas:http", "[::1", "[::1]x", "gopher://nas", "a b"] {
            let error = text.parse::<Target>().map(|target| target.host).unwrap_err();
            let schemes = error.to_string().contains("goodput://, ");
            assert!(schemes, "{text:?}: {error}");
        }
    }
}
