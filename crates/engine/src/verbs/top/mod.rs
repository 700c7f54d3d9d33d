//! Looks at all TCP connections of this network namespace again and again: who moves how much, and what limits each.
//!
//! Only the kernel's side of the sockets is visible, and only this end of them, as when a single transfer is watched
//! (`attach`).

mod activity;
mod programs;
mod progress;
mod summary;
mod wanted;

use std::collections::HashMap;
use std::time::Instant;

use goodput_kernel::{ForeignSocket, SocketFilter, foreign_sockets};
use goodput_model::{ConnectionActivity, Connections};

pub use summary::Summary;
pub use wanted::WantedConnections;

use crate::error::EngineError;
use crate::verbs::attach::Key;
use activity::Past;
use programs::Programs;

/// Watches the connections.
pub struct ConnectionWatch {
    wanted: WantedConnections,
    programs: Programs,
    pasts: HashMap<Key, Past>,
    began: Instant,
    looked_s: Option<f64>,
}

impl ConnectionWatch {
    /// Watches the connections that are `wanted`.
    pub fn new(wanted: WantedConnections) -> Self {
        let (programs, pasts) = (Programs::default(), HashMap::new());
        Self { wanted, programs, pasts, began: Instant::now(), looked_s: None }
    }

    /// Looks now, and compares with the look before. `now` is the time, RFC 3339, UTC. `None` at the first look.
    ///
    /// # Errors
    /// If the kernel does not list its sockets.
    pub fn look(&mut self, now: &str) -> Result<Option<Connections>, EngineError> {
        let filter = SocketFilter { port: self.wanted.port, inodes: None };
        let sockets = foreign_sockets(&filter).map_err(EngineError::Connections)?;
        let at_s = self.began.elapsed().as_secs_f64();
        let sockets: Vec<ForeignSocket> =
            sockets.into_iter().filter(|socket| self.wanted.takes_socket(socket)).collect();
        self.remember(at_s, sockets);
        let before_s = self.looked_s.replace(at_s);
        Ok(before_s.map(|before_s| Connections {
            at: now.to_owned(),
            seconds: at_s - before_s,
            connections: self.activities(),
        }))
    }

    /// Keeps what was seen. Connections that are gone are forgotten.
    fn remember(&mut self, at_s: f64, sockets: Vec<ForeignSocket>) {
        for socket in sockets {
            let past = self.pasts.entry(Key::of(&socket)).or_default();
            // A new connection may have the addresses of an earlier one.
            if past.inode() != socket.inode {
                *past = Past::default();
            }
            past.enter(at_s, socket);
        }
        self.pasts.retain(|_, past| past.is_seen_at(at_s));
    }

    fn activities(&mut self) -> Vec<ConnectionActivity> {
        let Self { programs, pasts, wanted, .. } = self;
        programs.learn(pasts.values().map(Past::inode));
        let activity = |past: &mut Past| past.activity(programs.of(past.inode()));
        let all = pasts.values_mut().filter_map(activity);
        let mut wanted: Vec<_> = all.filter(|one| wanted.takes(one)).collect();
        wanted.sort_by(|a, b| b.rate().0.total_cmp(&a.rate().0).then(a.local.cmp(&b.local)));
        wanted
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use goodput_model::{Limiter, Place, Role};
    use goodput_testing::wait_for;

    /// A connection within this host, the reader's end last, and its port.
    fn connection() -> (TcpStream, TcpStream, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let writer = TcpStream::connect(address).unwrap();
        (writer, listener.accept().unwrap().0, address.port())
    }

    fn watch(wanted: WantedConnections) -> impl FnMut() -> Vec<ConnectionActivity> {
        let mut watch = ConnectionWatch::new(wanted);
        move || watch.look("now").unwrap().map_or_else(Vec::new, |seen| seen.connections)
    }

    fn of_port(port: u16) -> WantedConnections {
        WantedConnections { port: Some(port), ..WantedConnections::default() }
    }

    #[test]
    fn both_ends_of_a_connection_are_seen_with_their_program_and_rates() {
        let (mut writer, mut reader, port) = connection();
        let mut look = watch(of_port(port));
        assert!(look().is_empty(), "there is nothing to compare with");
        writer.write_all(&[7; 50_000]).unwrap();
        reader.read_exact(&mut [0; 50_000]).unwrap();
        let seen = look();
        assert_eq!(seen.len(), 2, "{seen:?}");
        let received = seen.iter().find(|one| one.local.port() == port).unwrap();
        assert!(received.role == Role::Receiver && received.received_bits_per_s.0 > 0.0);
        for one in &seen {
            assert_eq!(one.program.get().unwrap().pid, std::process::id());
        }
    }

    #[test]
    fn a_full_window_is_the_limit_of_who_writes_into_it() {
        let (mut writer, _reader, port) = connection();
        writer.set_nonblocking(true).unwrap();
        let mut look = watch(of_port(port));
        wait_for("the window of the reader to be the limit", || {
            while writer.write(&[7; 65_536]).is_ok() {}
            let seen = look();
            let sender = seen.iter().find(|one| one.peer.port() == port);
            let limit = sender.and_then(ConnectionActivity::limit);
            limit.is_some_and(|limit| {
                (limit.limiter, limit.end) == (Limiter::ReceiveWindow, Place::Far)
            })
        });
        // The reader's end has what it does not read.
        let seen = look();
        let reader = seen.iter().find(|one| one.local.port() == port).unwrap();
        assert!(reader.role == Role::Receiver && !reader.idle, "{reader:?}");
    }

    #[test]
    fn only_wanted_connections_are_seen_and_silent_ones_are_idle() {
        let (_writer, _reader, port) = connection();
        let process = |process: &str| Some(process.to_owned());
        let own = std::process::id().to_string();
        let mut all = watch(WantedConnections { process: process(&own), ..of_port(port) });
        let mut none = watch(WantedConnections { process: process("no-such"), ..of_port(port) });
        let peer = Some("10.9.8.0/24".parse().unwrap());
        let mut elsewhere = watch(WantedConnections { peer, ..of_port(port) });
        drop((all(), none(), elsewhere()));
        assert!(none().is_empty() && elsewhere().is_empty());
        let seen = all();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|one| one.idle && one.limits.value().is_none()));
    }
}
