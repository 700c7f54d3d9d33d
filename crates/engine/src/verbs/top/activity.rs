//! What one connection did between the last two looks.

use goodput_kernel::ForeignSocket;
use goodput_model::{BitRate, ConnectionActivity, Known, Missing, Program, Role, TcpInfo};

use super::progress::{Look, Progress};

/// What was seen of a connection.
#[derive(Default)]
pub struct Past {
    before: Option<Look>,
    now: Option<Look>,
    /// What moved between the two. `None` if there was only one, or the kernel does not count.
    moved: Option<Moved>,
    /// Its looks since it was idle, or since it took the other role; the reason if the kernel says too little.
    progress: Option<Result<Progress, Missing>>,
}

/// What moved between two looks.
#[derive(Debug, Clone, Copy)]
struct Moved {
    sent: BitRate,
    received: BitRate,
    role: Role,
    /// Nothing moved, and nothing was on its way or waited at either look.
    is_idle: bool,
}

impl Past {
    /// Adds what was seen at `at_s`.
    pub fn enter(&mut self, at_s: f64, socket: ForeignSocket) {
        self.before = self.now.replace((at_s, socket));
        let Some((before, now)) = self.before.as_ref().zip(self.now.as_ref()) else { return };
        self.moved = moved(before, now);
        match (self.moved.filter(|moved| !moved.is_idle), &mut self.progress) {
            (None, _) => self.progress = None,
            (Some(moved), Some(Ok(progress))) if progress.role() == moved.role => {
                if let Err(why) = progress.enter(now) {
                    self.progress = Some(Err(why));
                }
            }
            (Some(moved), _) => self.progress = Some(Progress::between(moved.role, before, now)),
        }
    }

    /// Whether it was still there at this time, seconds.
    pub fn is_seen_at(&self, at_s: f64) -> bool {
        self.now.as_ref().is_some_and(|(seen_s, _)| *seen_s >= at_s)
    }

    /// The inode number of the socket, 0 without one.
    pub fn inode(&self) -> u64 {
        self.now.as_ref().map_or(0, |(_, socket)| socket.inode)
    }

    /// What it did between the last two looks. `None` if there was only one, or the kernel does not count.
    pub fn activity(&mut self, program: Known<Program>) -> Option<ConnectionActivity> {
        let (before, now) = (self.before.as_ref()?, self.now.as_ref()?);
        let moved = self.moved?;
        let tcp = [before.1.tcp_info.value()?, now.1.tcp_info.value()?];
        let goodput = BitRate(moved.sent.0.max(moved.received.0));
        let limits = match &mut self.progress {
            None => Err(Missing::because("it is idle")),
            Some(Ok(progress)) => progress.limits(goodput, [before.0, now.0]),
            Some(Err(why)) => Err(why.clone()),
        };
        Some(ConnectionActivity {
            local: now.1.local,
            peer: now.1.peer,
            program,
            idle: moved.is_idle,
            sent_bits_per_s: moved.sent,
            received_bits_per_s: moved.received,
            role: moved.role,
            rtt_us: tcp[1].rtt_us().into(),
            retransmitted_percent: retransmitted_percent(tcp).into(),
            congestion: now.1.congestion.clone(),
            limits: limits.into(),
        })
    }
}

fn moved(before: &Look, now: &Look) -> Option<Moved> {
    let tcp = [before.1.tcp_info.value()?, now.1.tcp_info.value()?];
    let over = |counter: fn(&TcpInfo) -> Result<u64, Missing>| {
        let [before, now] = tcp.map(|tcp| counter(tcp).ok());
        Some(now?.saturating_sub(before?))
    };
    let (acked, read) = (over(TcpInfo::acked_bytes)?, over(TcpInfo::received_bytes)?);
    let seconds = now.0 - before.0;
    let waits = |socket: &ForeignSocket| [socket.send_queue_bytes, socket.receive_queue_bytes];
    let [to_send, to_read] = waits(&now.1);
    // If nothing moved, the role is that of the side on which something waits.
    let role = if (acked, to_send) < (read, to_read) { Role::Receiver } else { Role::Sender };
    let is_empty = |look: &Look| waits(&look.1) == [0, 0];
    Some(Moved {
        sent: BitRate::over(acked, seconds)?,
        received: BitRate::over(read, seconds)?,
        role,
        is_idle: (acked, read) == (0, 0) && is_empty(before) && is_empty(now),
    })
}

/// Retransmitted share of the segments with payload that were sent between two looks, percent.
fn retransmitted_percent([before, now]: [&TcpInfo; 2]) -> Result<f64, Missing> {
    let since = |count: fn(&TcpInfo) -> Option<u64>| {
        let [before, now] = [before, now].map(count);
        now.zip(before).map(|(now, before)| now.saturating_sub(before) as f64)
    };
    let (again, all) = (since(|tcp| tcp.total_retrans_segments), since(|tcp| tcp.data_segs_out));
    match again.zip(all) {
        Some((again, all)) if all > 0.0 => Ok(again / all * 100.0),
        Some(_) => Err(Missing::because("it sent no payload")),
        None => Err(Missing::because("the kernel does not count segments")),
    }
}
