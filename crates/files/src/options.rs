//! The user's settings for servers.

use std::path::PathBuf;

use crate::login::Login;
use crate::proxy::Proxy;

/// Most calls in flight to an NFS server.
pub const MOST_SLOTS: u16 = 1024;

/// The user's settings for servers.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The login, if the user gives one.
    pub login: Option<Login>,
    /// File of certificates (PEM) of trusted authorities, instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// The proxy for web servers, if any.
    pub proxy: Option<Proxy>,
    /// Whether redirects may lead to hosts that the user did not name.
    pub follow: bool,
    /// How files of NFS servers are read and written.
    pub nfs: NfsOptions,
}

/// How files of NFS servers are read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NfsOptions {
    /// Bytes of one READ; `None`: 1 MiB, or the server's maximum.
    pub read_bytes: Option<u32>,
    /// Bytes of one WRITE; `None`: 1 MiB, or the server's maximum.
    pub write_bytes: Option<u32>,
    /// Calls in flight, 1 to [`MOST_SLOTS`]; `None`: 16.
    pub slots: Option<u16>,
}
