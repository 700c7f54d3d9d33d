//! A kind of file server, as data: how its places are written, and what its servers need.

/// A kind of file server. Each place has one.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its id, which is the prefix of its places.
    pub id: &'static str,
    /// One line for a list.
    pub summary: &'static str,
    /// The usual port.
    pub port: u16,
    /// Whether its payload can never be read from a socket unchanged.
    pub decoded: bool,
    /// Whether its servers may require a local port below 1024.
    pub low_port: bool,
    /// Whether its servers may want a user and a password.
    pub password: bool,
    /// Whether its servers receive the user of a URL even without a password.
    pub lone_user: bool,
    /// Whether the query of a URL concerns the server rather than the file.
    pub server_query: bool,
}
