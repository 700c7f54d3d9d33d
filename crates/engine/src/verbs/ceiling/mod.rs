//! What this host knows of the inputs of a ceiling: its devices, the route, the time of a round trip.

mod chain;
mod facts;
mod round_trip;

use goodput_model::{CeilingInputs, CeilingUnread, Family};

use crate::control::target::Target;
use crate::error::EngineError;

/// What is asked of this host.
#[derive(Clone, Default)]
pub struct CeilingRequest {
    /// The network device to look at; otherwise that of the route.
    pub device: Option<String>,
    /// The far end of the path, and the port whose handshake is timed.
    pub to: Option<Target>,
    /// The version of IP, if only one may be used.
    pub family: Option<Family>,
    /// Whether TCP's settings are of interest.
    pub tcp: bool,
    /// Whether the round-trip time is wanted, which may take packets to the far end.
    pub rtt: bool,
}

/// What this host reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CeilingFacts {
    /// The inputs that it knows.
    pub inputs: CeilingInputs,
    /// Where each comes from, by the name of the input in JSON.
    pub read: Vec<(&'static str, String)>,
    /// What it did not report, by the name of the input.
    pub unread: Vec<(&'static str, CeilingUnread)>,
}

impl CeilingFacts {
    fn note(&mut self, input: &'static str, what: String) {
        self.read.push((input, what));
    }

    /// The name of a fact in front of its reason says no more than `what`.
    fn lack(&mut self, input: &'static str, what: &str, because: impl ToString) {
        let because = because.to_string();
        let reason = match because.split_once(": ") {
            Some((fact, reason)) if fact.contains('.') && !fact.contains(' ') => reason,
            _ => &because,
        };
        let unread = CeilingUnread { what: what.into(), because: reason.into() };
        self.unread.push((input, unread));
    }
}

/// Reads what this host knows. With a far end whose round-trip time no open connection shows, blocks for three
/// TCP handshakes, 3 s at most.
///
/// # Errors
/// There is no such device or host, or the route leaves by another device.
pub fn ceiling_facts(request: &CeilingRequest) -> Result<CeilingFacts, EngineError> {
    let address = match &request.to {
        Some(target) => target.addresses(request.family)?.first().copied(),
        None => None,
    };
    let chain = chain::of(request.device.as_deref(), address)?;
    let mut found = facts::of(&chain, address.map(|address| address.ip()), request.tcp);
    if let Some(address) = address.filter(|_| request.rtt) {
        round_trip::note(address, &mut found);
    }
    Ok(found)
}
