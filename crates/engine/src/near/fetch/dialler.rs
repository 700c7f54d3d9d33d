//! Connections to a server of files, with the plan's socket options.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use goodput_files::{Dial, FileError};
use goodput_model::SocketOptions;
use goodput_mover::socket::tcp_connect;

use crate::control::target::Target;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the target, or to where it leads.
pub struct Dialler {
    host: String,
    /// Addresses of that host, with any port.
    addresses: Vec<SocketAddr>,
    options: SocketOptions,
}

impl Dialler {
    pub fn new(target: &Target, addresses: &[SocketAddr], options: &SocketOptions) -> Self {
        let options = options.clone();
        Self { host: target.host.clone(), addresses: addresses.to_vec(), options }
    }

    /// The addresses of a host. Those of the target are known; another one is where a redirect leads that the user
    /// allowed.
    fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, FileError> {
        if host.eq_ignore_ascii_case(&self.host) {
            let at = |address: &SocketAddr| SocketAddr::new(address.ip(), port);
            return Ok(self.addresses.iter().map(at).collect());
        }
        let all = (host, port).to_socket_addrs();
        let operation = format!("resolve {host}");
        all.map(Iterator::collect).map_err(|cause| FileError::Io { operation, cause })
    }
}

impl Dial for Dialler {
    fn connect(&mut self, host: &str, port: u16) -> Result<OwnedFd, FileError> {
        let mut first = None;
        for address in self.addresses(host, port)? {
            match tcp_connect(address, &self.options, CONNECT_TIMEOUT) {
                // What follows goes to the same machine, as the data of FTP must.
                Ok(socket) if host.eq_ignore_ascii_case(&self.host) => {
                    self.addresses = vec![address];
                    return Ok(socket);
                }
                Ok(socket) => return Ok(socket),
                Err(failure) => _ = first.get_or_insert(failure),
            }
        }
        Err(first.map_or_else(
            || FileError::Refused(format!("{host} has no address to connect to")),
            |failure| match failure.is_not_permitted() {
                true => FileError::NotPermitted(failure.to_string()),
                false => FileError::Refused(failure.to_string()),
            },
        ))
    }
}
