//! The looks at one active connection as a measurement that goes on, of which only this end is known: it says what limits the
//! connection.

use std::sync::Arc;

use goodput_diagnose::parts_of;
use goodput_kernel::ForeignSocket;
use goodput_model::{
    AccountPart, BitRate, Clocks, Direction, End, EndName, Evidence, Host, Known, Measured,
    Missing, Plan, Role, SocketOptions, TcpInfo,
};

use crate::verbs::attach::{observation, since};

/// Looks that are kept: the account compares what was seen with what was seen before.
const LOOKS_KEPT: usize = 3;

/// A connection at a time, seconds.
pub type Look = (f64, ForeignSocket);

/// A connection that moves something, or has something waiting.
pub struct Progress {
    role: Role,
    /// Counters at its first look: what happened before was not watched.
    first: TcpInfo,
    /// The plan and this end. Kept, because there are thousands of connections and a look each second.
    evidence: Evidence,
}

impl Progress {
    /// A connection in this role, by two looks.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn between(role: Role, before: &Look, now: &Look) -> Result<Self, Missing> {
        let first = before.1.tcp_info.get()?.clone();
        let mut progress = Self { role, first, evidence: evidence(role, &before.1) };
        progress.enter(before)?;
        progress.enter(now)?;
        Ok(progress)
    }

    /// What this end does.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Adds a look.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn enter(&mut self, (at_s, socket): &Look) -> Result<(), Missing> {
        let tcp = since(socket.tcp_info.get()?, &self.first);
        let sample = observation(self.role, *at_s, vec![(socket, tcp)])?.sample;
        let Known::Value(end) = &mut self.evidence.near else { return Ok(()) };
        // Nobody shares it, so nothing is copied.
        let samples = &mut Arc::make_mut(end).samples;
        if samples.len() == LOOKS_KEPT {
            samples.remove(0);
        }
        samples.push(sample);
        Ok(())
    }

    /// What limited it within this part of its time, in which it moved so much.
    ///
    /// # Errors
    /// If its counters say too little.
    pub fn limits(
        &mut self,
        goodput: BitRate,
        [from_s, to_s]: [f64; 2],
    ) -> Result<Vec<AccountPart>, Missing> {
        let precision_percent = Known::missing(GOES_ON);
        self.evidence.measured = Measured { goodput, from_s, to_s, precision_percent };
        parts_of(&self.evidence)
    }
}

/// Why there is no precision.
const GOES_ON: &str = "the connection goes on";

/// Without samples.
fn evidence(role: Role, socket: &ForeignSocket) -> Evidence {
    Evidence {
        plan: plan(role, socket),
        sender_end: if role == Role::Sender { EndName::Near } else { EndName::Far },
        near: Known::Value(Arc::new(End::unobserved(Host::foreign("not asked")))),
        far: Known::missing("the peer is not asked"),
        reported_loss_share: Known::missing("the peer is not asked"),
        latency: None,
        fetches: None,
        clocks: Clocks::missing("only this end is watched"),
        measured: Measured {
            goodput: BitRate(0.0),
            from_s: 0.0,
            to_s: 0.0,
            precision_percent: Known::missing(GOES_ON),
        },
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
