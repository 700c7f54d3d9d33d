//! One look at the connections of a transfer: a sample of each, like the ones of a test's own sampler.

use std::collections::BTreeMap;

use goodput_kernel::{ForeignSocket, SocketFilter, foreign_sockets};
use goodput_model::{FlowSample, Known, Missing, Role, Sample, TcpInfo};

use super::choose::{Key, TransferConnections};

/// States in which data can still move: established and FIN_WAIT1, in which a program that has closed
/// leaves the rest to the kernel (include/net/tcp_states.h).
const MOVING_STATES: [u64; 2] = [1, 4];

/// Looks at the connections of one transfer.
pub struct Observer {
    chosen: TransferConnections,
    filter: SocketFilter,
    first: BTreeMap<Key, TcpInfo>,
}

/// What one look saw.
pub struct Observation {
    /// The sample.
    pub sample: Sample,
    /// Payload so far as the receiver counts it: acknowledged or read bytes.
    pub received_bytes: u64,
}

impl Observer {
    /// Observes the transfer `chosen`. A single connection is requested by its port, so that the kernel
    /// need not list the others.
    pub fn new(chosen: TransferConnections) -> Self {
        let port = match &chosen.keys[..] {
            [only] => Some(only.local.port()),
            _ => None,
        };
        Self { chosen, filter: SocketFilter { port, inodes: None }, first: BTreeMap::new() }
    }

    /// Looks now; `None` if a connection has ended. `clock` is read as soon as the kernel has answered.
    pub fn look(&mut self, clock: impl FnOnce() -> f64) -> Result<Option<Observation>, Missing> {
        let sockets = foreign_sockets(&self.filter)?;
        let at_s = clock();
        let by_key: BTreeMap<Key, &ForeignSocket> =
            sockets.iter().map(|socket| (Key::of(socket), socket)).collect();
        let mut seen = Vec::new();
        for key in &self.chosen.keys {
            let Some(socket) = by_key.get(key) else { return Ok(None) };
            let tcp = match socket.tcp_info.get() {
                Ok(tcp) => tcp,
                // What is left of it only waits for its last packets (TIME_WAIT), and has no counters.
                Err(_) if self.first.contains_key(key) => return Ok(None),
                Err(why) => return Err(why),
            };
            if tcp.state.is_some_and(|state| !MOVING_STATES.contains(&state)) {
                return Ok(None);
            }
            let first = self.first.entry(*key).or_insert_with(|| tcp.clone());
            seen.push((*socket, since(tcp, first)));
        }
        observation(self.chosen.role, at_s, seen).map(Some)
    }
}

/// What a look at connections on which this end has this role saw. Their counters are those since their first look.
///
/// # Errors
/// If the kernel does not count their payload.
pub fn observation(
    role: Role,
    at_s: f64,
    seen: Vec<(&ForeignSocket, TcpInfo)>,
) -> Result<Observation, Missing> {
    let mut look = Observation {
        sample: Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: Vec::new() },
        received_bytes: 0,
    };
    for (number, (socket, tcp)) in seen.into_iter().enumerate() {
        let (moved, arrived) = match role {
            Role::Sender => {
                let acked = tcp.acked_bytes()?;
                (acked.saturating_add(socket.send_queue_bytes), acked)
            }
            Role::Receiver => (tcp.received_bytes()?, tcp.received_bytes()?),
        };
        look.received_bytes = look.received_bytes.saturating_add(arrived);
        match role {
            Role::Sender => look.sample.sent_bytes += moved,
            Role::Receiver => look.sample.received_bytes += moved,
        }
        look.sample.flows.push(flow(number, role, moved, socket, tcp));
    }
    Ok(look)
}

fn flow(number: usize, role: Role, bytes: u64, socket: &ForeignSocket, tcp: TcpInfo) -> FlowSample {
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    let unseen = "another program's waiting and calls are not counted";
    FlowSample {
        cpu_us: Known::missing("the thread that moves the payload is unknown so far"),
        cpu_wait_us: Known::missing("the thread that moves the payload is unknown so far"),
        tcp: Known::Value(tcp),
        memory: socket.memory.clone(),
        queued_bytes: Known::Value(match role {
            Role::Sender => socket.send_queue_bytes,
            Role::Receiver => socket.receive_queue_bytes,
        }),
        ..FlowSample::unreported(number, role, bytes, unseen)
    }
}

/// Counters since the first look, gauges unchanged: what happened before was not watched.
pub fn since(now: &TcpInfo, first: &TcpInfo) -> TcpInfo {
    let mut tcp = now.clone();
    let counters: [(&mut Option<u64>, Option<u64>); 21] = [
        (&mut tcp.total_retrans_segments, first.total_retrans_segments),
        (&mut tcp.acked_bytes, first.acked_bytes),
        (&mut tcp.received_bytes, first.received_bytes),
        (&mut tcp.segs_out, first.segs_out),
        (&mut tcp.segs_in, first.segs_in),
        (&mut tcp.data_segs_in, first.data_segs_in),
        (&mut tcp.data_segs_out, first.data_segs_out),
        (&mut tcp.busy_us, first.busy_us),
        (&mut tcp.rwnd_limited_us, first.rwnd_limited_us),
        (&mut tcp.sndbuf_limited_us, first.sndbuf_limited_us),
        (&mut tcp.delivered_segments, first.delivered_segments),
        (&mut tcp.delivered_ce_segments, first.delivered_ce_segments),
        (&mut tcp.sent_bytes, first.sent_bytes),
        (&mut tcp.retrans_bytes, first.retrans_bytes),
        (&mut tcp.dsack_dups, first.dsack_dups),
        (&mut tcp.rcv_ooo_segments, first.rcv_ooo_segments),
        (&mut tcp.reord_seen, first.reord_seen),
        (&mut tcp.rehash, first.rehash),
        (&mut tcp.total_rto, first.total_rto),
        (&mut tcp.total_rto_recoveries, first.total_rto_recoveries),
        (&mut tcp.total_rto_time_ms, first.total_rto_time_ms),
    ];
    for (counter, base) in counters {
        *counter = counter.zip(base).and_then(|(now, base)| now.checked_sub(base));
    }
    tcp
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::verbs::attach::choose::{Counts, choose, counts};

    #[test]
    fn a_transfer_is_counted_from_the_first_look_until_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let mut moves = |bytes: usize| {
            writer.write_all(&vec![1; bytes]).unwrap();
            reader.read_exact(&mut vec![0; bytes]).unwrap();
        };
        moves(30_000);
        let filter = SocketFilter { port: Some(port), inodes: None };
        // The acknowledgement of the last segment may be late.
        let acked = |look: &[ForeignSocket]| counts(look).values().any(|c| c.0 >= 30_000);
        let mut sockets = foreign_sockets(&filter).unwrap();
        while !acked(&sockets) {
            sockets = foreign_sockets(&filter).unwrap();
        }
        let chosen = choose(&Counts::new(), &counts(&sockets)).unwrap().unwrap();
        assert_eq!(chosen.role, Role::Sender);
        let mut looker = Observer::new(chosen);
        assert_eq!(looker.look(|| 0.0).unwrap().unwrap().sample.sent_bytes, 0);
        moves(40_000);
        let look = looker.look(|| 1.0).unwrap().unwrap();
        assert_eq!(look.sample.flows[0].bytes, 40_000);
        assert!(look.received_bytes <= 40_000);
        drop((writer, reader));
        while looker.look(|| 2.0).unwrap().is_some() {}
    }
}
