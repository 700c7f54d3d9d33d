//! Connections to a file server, with the plan's socket options.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use goodput_files::{Dial, FileError, Ready, Wait};
use goodput_model::SocketOptions;
use goodput_mover::socket::tcp_connect_waiting;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::control::target::Target;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses of one host. All who share them first try the one that was reached last: an address that drops packets
/// costs its timeout only once.
#[derive(Clone)]
pub struct Addresses(Arc<Mutex<Known>>);

struct Known {
    /// In the order of trial.
    all: Vec<SocketAddr>,
    reached: Option<IpAddr>,
}

impl Addresses {
    pub fn new(all: Vec<SocketAddr>) -> Self {
        Self(Arc::new(Mutex::new(Known { all, reached: None })))
    }

    /// The address that was reached last; `None`: none was, or a proxy was asked for everything.
    pub fn last_reached(&self) -> Option<IpAddr> {
        self.known().reached
    }

    /// This address alone: each address of a name may be another machine. `None` if it is not among them.
    pub fn only(&self, ip: IpAddr) -> Option<Self> {
        let mut all = self.in_order();
        all.retain(|address| address.ip() == ip);
        (!all.is_empty()).then(|| Self::new(all))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_order(&self) -> Vec<SocketAddr> {
        self.known().all.clone()
    }

    fn reached(&self, ip: IpAddr) {
        let mut known = self.known();
        known.all.sort_by_key(|address| address.ip() != ip);
        known.reached = Some(ip);
    }
}

/// Connects to the target, or to where it redirects.
pub struct Dialler {
    host: String,
    /// The addresses of that host, with any port.
    addresses: Addresses,
    /// The address that was reached: what follows goes to the same machine, as FTP's data must.
    reached: Option<SocketAddr>,
    options: SocketOptions,
    /// Whether to try a local port below 1024 first.
    low_port: bool,
}

impl Dialler {
    pub fn new(target: &Target, addresses: &Addresses, options: &SocketOptions) -> Self {
        let low_port = target.file.as_ref().is_some_and(|file| file.place.scheme().low_port);
        Self {
            host: target.host.clone(),
            addresses: addresses.clone(),
            reached: None,
            options: options.clone(),
            low_port,
        }
    }

    /// The addresses of a host. Those of the target are known; another host is the target of a redirect that the user
    /// allowed.
    fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, FileError> {
        if host.eq_ignore_ascii_case(&self.host) {
            let all = self.reached.map_or_else(|| self.addresses.in_order(), |one| vec![one]);
            let with_port = |mut address: SocketAddr| {
                // The zone of a link-local address stays.
                address.set_port(port);
                address
            };
            return Ok(all.into_iter().map(with_port).collect());
        }
        let all = (host, port).to_socket_addrs();
        let operation = format!("resolve {host}");
        all.map(Iterator::collect).map_err(|cause| FileError::Io { operation, cause })
    }
}

/// The first of a random range of ports below 1024 where services are rare: Linux uses those from 665 on for the same
/// purpose (`xprt_min_resvport`, net/sunrpc/xprtsock.c).
fn low_port() -> u16 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_micros());
    665 + (now % 256) as u16
}

impl Dialler {
    /// Connects to one address within [`CONNECT_TIMEOUT`].
    fn reach(
        &self,
        address: SocketAddr,
        options: &SocketOptions,
        wait: &dyn Wait,
    ) -> Result<OwnedFd, FileError> {
        let until = Instant::now() + CONNECT_TIMEOUT;
        let mut waited = None;
        let connected = tcp_connect_waiting(address, options, |socket| {
            waited = None;
            while !is_writable(socket)? {
                if Instant::now() >= until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                wait.wait(socket, Ready::Write, until).map_err(|why| {
                    let error = io::Error::other(why.to_string());
                    waited = Some(why);
                    error
                })?;
            }
            Ok(())
        });
        connected.map_err(|failure| match waited {
            Some(why) => why,
            None if failure.is_not_permitted() => FileError::NotPermitted(failure.to_string()),
            None => FileError::Refused(failure.to_string()),
        })
    }

    /// The same from a port below 1024, if the server may insist on one and this user may use one.
    fn reach_as_asked(&self, address: SocketAddr, wait: &dyn Wait) -> Result<OwnedFd, FileError> {
        if self.low_port && self.options.source_port.is_none() {
            let low = SocketOptions { source_port: Some(low_port()), ..self.options.clone() };
            match self.reach(address, &low, wait) {
                Err(FileError::NotPermitted(_)) => {}
                reached => return reached,
            }
        }
        self.reach(address, &self.options, wait)
    }
}

fn is_writable(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut watched = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
    Ok(poll(&mut watched, Some(&Timespec::default()))? > 0)
}

impl Dial for Dialler {
    fn connect(&mut self, host: &str, port: u16, wait: &dyn Wait) -> Result<OwnedFd, FileError> {
        let mut first = None;
        for address in self.addresses(host, port)? {
            match self.reach_as_asked(address, wait) {
                Ok(socket) if host.eq_ignore_ascii_case(&self.host) => {
                    self.reached = Some(address);
                    self.addresses.reached(address.ip());
                    return Ok(socket);
                }
                Err(why @ (FileError::Stopped | FileError::TimedOut(_))) => return Err(why),
                Ok(socket) => return Ok(socket),
                Err(failure) => _ = first.get_or_insert(failure),
            }
        }
        let none = || FileError::Refused(format!("{host} has no address to connect to"));
        Err(first.unwrap_or_else(none))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_an_address_stays_with_another_port() {
        let target: Target = "nfs://[fe80::1%25lo]/export".parse().unwrap();
        let addresses = Addresses::new(vec!["[fe80::1%7]:2049".parse().unwrap()]);
        let dialler = Dialler::new(&target, &addresses, &SocketOptions::default());
        let with_port = dialler.addresses("fe80::1%lo", 20_048).unwrap();
        assert_eq!(with_port, ["[fe80::1%7]:20048".parse::<SocketAddr>().unwrap()]);
    }

    #[test]
    fn everyone_begins_with_the_address_that_was_reached() {
        let all =
            ["192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80"].map(|text| text.parse().unwrap());
        let addresses = Addresses::new(all.to_vec());
        let other = addresses.clone();
        addresses.reached(all[1].ip());
        assert_eq!(other.in_order(), [all[1], all[0], all[2]]);
        assert_eq!(other.last_reached(), Some(all[1].ip()));
    }

    #[test]
    fn one_address_of_a_name_is_one_machine() {
        let all = ["192.0.2.1:80", "192.0.2.2:80"].map(|text| text.parse().unwrap());
        let addresses = Addresses::new(all.to_vec());
        assert_eq!(addresses.only(all[1].ip()).unwrap().in_order(), [all[1]]);
        assert!(addresses.only("192.0.2.9".parse().unwrap()).is_none());
    }
}
