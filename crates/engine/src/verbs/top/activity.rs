//! What one connection did between the last two looks, and what limited it.

use std::collections::VecDeque;
use std::sync::Arc;

use goodput_diagnose::account_of;
use goodput_kernel::ForeignSocket;
use goodput_model::{
    AccountPart, BitRate, Clocks, ConnectionActivity, Direction, End, EndName, Evidence, Host,
    Known, Measured, Missing, Plan, Program, Role, Sample, SocketOptions, TcpInfo,
};

use crate::verbs::attach::{observation, since};

/// Looks that are kept of each connection: the account compares with what was usual before.
const LOOKS_KEPT: usize = 4;

/// What was seen of a connection.
#[derive(Default)]
pub struct Past {
    /// Time of each look, seconds, and the connection then.
    looks: VecDeque<(f64, ForeignSocket)>,
}

impl Past {
    /// Adds what was seen at `at_s`.
    pub fn enter(&mut self, at_s: f64, socket: ForeignSocket) {
        if self.looks.len() == LOOKS_KEPT {
            self.looks.pop_front();
        }
        self.looks.push_back((at_s, socket));
    }

    /// The inode number of the socket, 0 without one.
    pub fn inode(&self) -> u64 {
        self.looks.back().map_or(0, |(_, socket)| socket.inode)
    }

    /// What it did between the last two looks. `None` if there was only one, or the kernel does not count.
    pub fn activity(&self, program: Known<Program>) -> Option<ConnectionActivity> {
        let [before, now] = self.last_two()?;
        let seconds = now.0 - before.0;
        let tcp = [before.1.tcp_info.value()?, now.1.tcp_info.value()?];
        let moved = |counter: fn(&TcpInfo) -> Result<u64, Missing>| {
            let [before, now] = tcp.map(|tcp| counter(tcp).ok());
            BitRate::over(now?.saturating_sub(before?), seconds)
        };
        let (sent, received) = (moved(TcpInfo::acked_bytes)?, moved(TcpInfo::received_bytes)?);
        let waits = [now.1.send_queue_bytes as f64, now.1.receive_queue_bytes as f64];
        // If nothing moved, the role is that of the side on which something waits.
        let role = match [sent.0, waits[0]] < [received.0, waits[1]] {
            true => Role::Receiver,
            false => Role::Sender,
        };
        Some(ConnectionActivity {
            local: now.1.local,
            peer: now.1.peer,
            program,
            idle: self.is_idle(sent, received),
            sent_bits_per_s: sent,
            received_bits_per_s: received,
            role,
            rtt_us: tcp[1].rtt_us().into(),
            retransmitted_percent: retransmitted_percent(tcp).into(),
            congestion: now.1.congestion.clone(),
            limits: match self.is_idle(sent, received) {
                true => Known::missing("it is idle"),
                false => self.limits(role, BitRate(sent.0.max(received.0))).into(),
            },
        })
    }

    /// Whether nothing moved between the last two looks, and nothing was on its way or waited at either.
    fn is_idle(&self, sent: BitRate, received: BitRate) -> bool {
        let is_empty = |socket: &ForeignSocket| {
            socket.send_queue_bytes == 0 && socket.receive_queue_bytes == 0
        };
        let is_still = sent.0 == 0.0 && received.0 == 0.0;
        is_still && self.last_two().is_some_and(|two| two.iter().all(|look| is_empty(&look.1)))
    }

    fn last_two(&self) -> Option<[&(f64, ForeignSocket); 2]> {
        let before = self.looks.len().checked_sub(2)?;
        Some([self.looks.get(before)?, self.looks.back()?])
    }

    /// What limited it between the last two looks.
    fn limits(&self, role: Role, goodput: BitRate) -> Result<Vec<AccountPart>, Missing> {
        Ok(account_of(&self.evidence(role, goodput)?)?.parts)
    }

    /// The looks as the samples of a measurement, of which only this end is known.
    fn evidence(&self, role: Role, goodput: BitRate) -> Result<Evidence, Missing> {
        let first = self.looks.front().ok_or_else(|| Missing::because("it was not seen"))?;
        let first_tcp = first.1.tcp_info.get()?;
        let sample = |(at_s, socket): &(f64, ForeignSocket)| {
            let tcp = since(socket.tcp_info.get()?, first_tcp);
            observation(role, *at_s, vec![(socket, tcp)]).map(|seen| seen.sample)
        };
        let samples: Vec<Sample> = self.looks.iter().map(sample).collect::<Result<_, _>>()?;
        let [from_s, to_s] = self.last_two().map_or([first.0; 2], |two| two.map(|look| look.0));
        let end = End { samples, ..End::unobserved(Host::foreign("not asked")) };
        Ok(Evidence {
            plan: plan(role, &first.1),
            sender_end: if role == Role::Sender { EndName::Near } else { EndName::Far },
            near: Known::Value(Arc::new(end)),
            far: Known::missing("the peer is not asked"),
            reported_loss_share: Known::missing("the peer is not asked"),
            latency: None,
            fetches: None,
            clocks: Clocks::missing("only this end is watched"),
            measured: Measured {
                goodput,
                from_s,
                to_s,
                precision_percent: Known::missing("the connection goes on"),
            },
        })
    }
}

fn plan(role: Role, socket: &ForeignSocket) -> Plan {
    let congestion = socket.congestion.value().cloned();
    Plan {
        direction: if role == Role::Sender { Direction::Send } else { Direction::Reverse },
        mover: Plan::WATCHING.into(),
        socket: SocketOptions { congestion, ..SocketOptions::default() },
        ..Plan::standard()
    }
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
