//! Measurements with another server, which a client asks this one to make in its stead. Nobody makes
//! this host connect anywhere but to those that its operator has named.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use goodput_wire::network::Network;
use goodput_wire::protocols::nuttcp::PROTOCOL;
use goodput_wire::session::Errand;
use tokio::sync::mpsc;

use super::client::Caller;
use crate::control::target::split_port;
use crate::interrupt::{Interrupt, Raise, interrupt};
use crate::serve::Shared;
use crate::serve::admit::admission::{Place, Wants};
use crate::serve::admit::gate::Permit;
use crate::threads::can_start_thread;

/// Who runs errands, and to whom.
#[derive(Clone)]
pub struct ThirdParty {
    allowed: Vec<Allowed>,
    run: Arc<Run>,
}

/// Makes the measurement and says its lines, or why it failed, on a thread where it may block. It ends as soon as the
/// interrupt is raised.
type Run = dyn Fn(&Errand, &Interrupt, &mut dyn FnMut(String)) -> Result<(), String> + Send + Sync;

impl ThirdParty {
    /// To those allowed, by `run`.
    pub fn new(
        allowed: Vec<Allowed>,
        run: impl Fn(&Errand, &Interrupt, &mut dyn FnMut(String)) -> Result<(), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { allowed, run: Arc::new(run) }
    }
}

impl fmt::Debug for ThirdParty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThirdParty").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// Whom a client may name: a host by its name or address, or all addresses of a network; at one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    place: Where,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Where {
    /// Exactly this name. It is resolved only when a client has named it.
    Name(String),
    /// These addresses.
    Network(Network),
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither HOST, HOST:PORT nor NETWORK/BITS");
        let usual = PROTOCOL.port;
        if text.contains('/') {
            let place = text.parse().map(Where::Network).map_err(|_| wrong())?;
            return Ok(Self { place, port: usual });
        }
        let (host, port) = split_port(text).ok_or_else(wrong)?;
        let place = host.parse().map_or_else(|_| Where::Name(host.into()), Where::Network);
        Ok(Self { place, port: port.unwrap_or(usual) })
    }
}

impl Allowed {
    fn holds(&self, host: &str, port: u16) -> bool {
        let is_there = match (&self.place, host.parse::<IpAddr>()) {
            (Where::Name(name), Err(_)) => name.eq_ignore_ascii_case(host),
            (Where::Network(network), Ok(address)) => network.holds(address),
            _ => false,
        };
        is_there && port == self.port
    }
}

/// What comes of an errand.
pub enum Said {
    /// Lines for the client.
    Lines(String),
    /// It is over, or why it failed.
    Over(Result<(), String>),
}

/// An errand that is being run; dropping it ends it.
pub struct Running {
    said: mpsc::UnboundedReceiver<Said>,
    stop: Raise,
    _place: Place,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

impl Running {
    /// What comes of it next.
    pub async fn next(&mut self) -> Said {
        let broke_off = || Said::Over(Err("an internal task broke off".into()));
        self.said.recv().await.unwrap_or_else(broke_off)
    }
}

/// Begins an errand, or says why it is not run.
pub async fn begin(
    errand: Errand,
    permit: Permit,
    caller: &Caller,
    shared: &Shared,
) -> Result<Running, String> {
    let ThirdParty { run, .. } = allowed(&errand, shared.config.third_party.as_ref())?;
    let run = Arc::clone(run);
    let wants = Wants::Errand(&errand.plan);
    let place = shared.admission.admit(permit, caller.peer.ip(), wants, false).await?;
    let (stop, interrupt) = interrupt();
    let (to, said) = mpsc::unbounded_channel();
    can_start_thread().map_err(|cause| cause.to_string())?;
    // It ends with the interrupt, which the drop of what is returned raises.
    tokio::task::spawn_blocking(move || {
        let outcome = run(&errand, &interrupt, &mut |text| drop(to.send(Said::Lines(text))));
        // The client may be gone.
        let _ = to.send(Said::Over(outcome));
    });
    Ok(Running { said, stop, _place: place })
}

fn allowed<'a>(
    Errand { host, port, .. }: &Errand,
    third_party: Option<&'a ThirdParty>,
) -> Result<&'a ThirdParty, String> {
    let Some(third_party) = third_party else {
        return Err("doesn't allow 3rd party nuttcp; goodput serve --third-party HOST would".into());
    };
    if !third_party.allowed.iter().any(|allowed| allowed.holds(host, *port)) {
        return Err(format!(
            "doesn't allow 3rd party nuttcp with that host at port {port}; its --third-party names \
             others"
        ));
    }
    Ok(third_party)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(allowed: &str, host: &str, port: u16) -> bool {
        allowed.parse::<Allowed>().unwrap().holds(host, port)
    }

    #[test]
    fn only_what_was_named_is_allowed() {
        assert!(holds("b.example", "B.example", 5000));
        assert!(!holds("b.example", "b.example", 22));
        assert!(!holds("b.example", "evil.b.example", 5000));
        assert!(holds("b.example:5006", "b.example", 5006));
        assert!(holds("192.0.2.0/24", "192.0.2.77", 5000));
        assert!(!holds("192.0.2.0/24", "192.0.3.77", 5000));
        assert!(!holds("192.0.2.0/24", "::", 5000));
        assert!(holds("192.0.2.7", "::ffff:192.0.2.7", 5000));
        assert!(holds("[2001:db8::1]:5006", "2001:db8:0::1", 5006));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::9", 5000));
        assert!(holds("0.0.0.0/0", "198.51.100.1", 5000));
        // What resolves to an address of the network is not one: names are named one by one.
        assert!(!holds("0.0.0.0/0", "localhost", 5000));
    }

    #[test]
    fn what_names_nobody_is_refused() {
        for text in ["", "192.0.2.0/33", "b.example/24", "a b", "host:http", "::/129"] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
    }
}
