//! What this host knows about the inputs of a ceiling: its devices, the route, the round-trip time.

mod chain;
mod facts;
mod round_trip;

use goodput_model::{CeilingInputs, CeilingUnread, Family};

use crate::control::target::Target;
use crate::error::EngineError;

/// What to ask this host.
#[derive(Clone, Default)]
pub struct CeilingRequest {
    /// The network device to inspect; `None`: the route's.
    pub device: Option<String>,
    /// The far end of the path, and the port whose handshake is timed.
    pub to: Option<Target>,
    /// The IP version, if only one may be used.
    pub family: Option<Family>,
    /// Whether TCP's settings matter.
    pub tcp: bool,
    /// Whether the round-trip time is wanted, which may take packets to the far end.
    pub rtt: bool,
}

/// What this host reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CeilingFacts {
    /// The known inputs.
    pub inputs: CeilingInputs,
    /// The source of each input, by its name in JSON.
    pub read: Vec<(&'static str, String)>,
    /// The inputs that could not be read, by name.
    pub unread: Vec<(&'static str, CeilingUnread)>,
}

impl CeilingFacts {
    fn note(&mut self, input: &'static str, what: String) {
        self.read.push((input, what));
    }

    /// Notes an input that could not be read. A fact's name before the reason is left out: `what` says the same.
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

/// Reads what this host knows. If no open connection shows the far end's round-trip time, blocks for three TCP
/// handshakes, 3 s at most.
///
/// # Errors
/// If there is no such device or host, or the route leaves by another device.
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
