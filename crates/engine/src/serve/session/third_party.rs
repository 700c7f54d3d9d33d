//! Measurements with a third party, another server, made on behalf of a client. This host connects only to
//! servers that its operator has named. The measurement is the client's: it uses the client's share and rates.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use goodput_wire::network::Network;
use goodput_wire::session::{Protocol, ThirdPartyTest};
use tokio::sync::mpsc;

use super::client::ClientInfo;
use super::shown::turned;
use crate::control::target::split_port;
use crate::interrupt::{Interrupt, Raise, interrupt};
use crate::run::rate_limits::RateLimits;
use crate::serve::admit::admission::{Admission, Wants};
use crate::serve::admit::gate::Permit;
use crate::threads::can_start_thread;

/// Who makes such measurements, and which servers are allowed.
#[derive(Clone)]
pub struct ThirdParty {
    allowed: Vec<Allowed>,
    run: Arc<Run>,
}

/// Makes the measurement within these rates and reports its lines, or why it failed, on a thread that may block. Ends
/// as soon as the interrupt is raised.
type Run = dyn Fn(&ThirdPartyTest, RateLimits, &Interrupt, &mut dyn FnMut(String)) -> Result<(), String>
    + Send
    + Sync;

impl ThirdParty {
    /// Measurements with the allowed servers, by `run`.
    pub fn new(
        allowed: Vec<Allowed>,
        run: impl Fn(
            &ThirdPartyTest,
            RateLimits,
            &Interrupt,
            &mut dyn FnMut(String),
        ) -> Result<(), String>
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

/// What a client may name: a host by its name or address, or all addresses of a network; at one port, or at the usual
/// port of the client's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    place: Where,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Where {
    /// Exactly this name. It is resolved only when a client names it.
    Name(String),
    /// These addresses.
    Network(Network),
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a host or network; write HOST, HOST:PORT or NETWORK/BITS");
        if text.contains('/') {
            let place = text.parse().map(Where::Network).map_err(|_| wrong())?;
            return Ok(Self { place, port: None });
        }
        let (host, port) = split_port(text).ok_or_else(wrong)?;
        let place = host.parse().map_or_else(|_| Where::Name(host.into()), Where::Network);
        Ok(Self { place, port })
    }
}

impl Allowed {
    /// Whether a client of a protocol with this `usual` port may name this host and port.
    fn holds(&self, host: &str, port: u16, usual: u16) -> bool {
        let is_there = match (&self.place, host.parse::<IpAddr>()) {
            (Where::Name(name), Err(_)) => name.eq_ignore_ascii_case(host),
            (Where::Network(network), Ok(address)) => network.holds(address),
            _ => false,
        };
        is_there && port == self.port.unwrap_or(usual)
    }
}

/// The output of such a measurement.
pub enum Said {
    /// Lines for the client.
    Lines(String),
    /// It is over, or why it failed.
    Over(Result<(), String>),
}

/// A measurement that is being made for a client; dropping it ends it.
pub struct ThirdPartyRun {
    said: mpsc::UnboundedReceiver<Said>,
    stop: Raise,
}

impl Drop for ThirdPartyRun {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

impl ThirdPartyRun {
    /// The next output.
    pub async fn next(&mut self) -> Said {
        let broke_off = || Said::Over(Err("an internal task failed".into()));
        self.said.recv().await.unwrap_or_else(broke_off)
    }
}

/// Begins a measurement for a client, or says why it is not made.
pub async fn begin(
    test: ThirdPartyTest,
    permit: Permit,
    client: ClientInfo,
    third_party: Option<&ThirdParty>,
    admission: &Admission,
) -> Result<ThirdPartyRun, String> {
    let ThirdParty { run, .. } = allowed(&test, client.protocol, third_party)?;
    let run = Arc::clone(run);
    let seen_here = turned(&test.plan);
    let (from, wants) = (client.peer.ip(), Wants::ThirdParty(&seen_here));
    let place = admission.admit(permit, from, wants, false).await?;
    let rate_limits = place.rate_limits();
    let (stop, interrupt) = interrupt();
    let (to, said) = mpsc::unbounded_channel();
    can_start_thread().map_err(|cause| cause.to_string())?;
    // The task ends at the interrupt, which dropping the returned value raises. It keeps its place until then.
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let outcome =
            run(&test, rate_limits, &interrupt, &mut |text| drop(to.send(Said::Lines(text))));
        // The client may be gone.
        let _ = to.send(Said::Over(outcome));
    });
    Ok(ThirdPartyRun { said, stop })
}

fn allowed<'a>(
    ThirdPartyTest { host, port, .. }: &ThirdPartyTest,
    Protocol { id, port: usual, .. }: &Protocol,
    third_party: Option<&'a ThirdParty>,
) -> Result<&'a ThirdParty, String> {
    let Some(third_party) = third_party else {
        return Err(format!(
            "doesn't allow 3rd party {id}; goodput serve --third-party HOST would"
        ));
    };
    if !third_party.allowed.iter().any(|allowed| allowed.holds(host, *port, *usual)) {
        return Err(format!(
            "doesn't allow 3rd party {id} with that host at port {port}; its --third-party names \
             others"
        ));
    }
    Ok(third_party)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::rate_limits::SharedLimit;
    use crate::serve::admit::admission::tests::a_small_host_at;
    use goodput_model::{BitRate, Plan};
    use goodput_wire::protocols::nuttcp::PROTOCOL;
    use goodput_wire::session::Words;

    fn test() -> ThirdPartyTest {
        let words = Words { verbose: false, intervals: false, key_values: false };
        ThirdPartyTest { host: "::1".into(), port: PROTOCOL.port, plan: Plan::standard(), words }
    }

    #[tokio::test]
    async fn what_is_measured_for_a_client_takes_its_share_and_keeps_to_its_rates() {
        let admission = a_small_host_at(BitRate(5e6));
        let [peer, local] = ["192.0.2.1:40000", "192.0.2.2:5000"].map(|a| a.parse().unwrap());
        let client = ClientInfo { protocol: &PROTOCOL, peer, local };
        let held = admission.admit(Permit::any(), client.peer.ip(), Wants::Conversation, false);
        let held = held.await.unwrap();
        let own = held.rate_limits();
        let (done, lingers) = std::sync::mpsc::channel::<()>();
        let lingers = std::sync::Mutex::new(lingers);
        let run = move |_: &ThirdPartyTest,
                        rate_limits: RateLimits,
                        _: &Interrupt,
                        say: &mut dyn FnMut(String)| {
            let same = |a: &[SharedLimit], b: &[SharedLimit]| {
                !a.is_empty() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(&a.rate, &b.rate))
            };
            let shared =
                same(&own.sent, &rate_limits.sent) && same(&own.received, &rate_limits.received);
            say(format!("{shared} {:?}", rate_limits.rate));
            // The measurement ignores the interrupt and ends only with this test.
            let _ = lingers.lock().unwrap().recv();
            Ok(())
        };
        let third_party = ThirdParty::new(vec!["::1".parse().unwrap()], run);
        let third_party = Some(&third_party);
        let begun = begin(test(), Permit::any(), client, third_party, &admission).await;
        let mut running = begun.ok().unwrap();
        let Said::Lines(said) = running.next().await else { panic!("it says nothing") };
        assert_eq!(said, format!("true {:?}", Some(BitRate(5e6))));
        drop(running);
        let more = begin(test(), Permit::any(), client, third_party, &admission).await;
        let why = more.err().unwrap();
        assert!(why.contains("1 measurement"), "its place is taken until it has ended: {why}");
        drop(done);
    }

    fn holds(allowed: &str, host: &str, port: u16) -> bool {
        allowed.parse::<Allowed>().unwrap().holds(host, port, PROTOCOL.port)
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
        // A name that resolves to an address of the network is not allowed: names are listed one by one.
        assert!(!holds("0.0.0.0/0", "localhost", 5000));
    }

    #[test]
    fn what_names_nobody_is_refused() {
        for text in ["", "192.0.2.0/33", "b.example/24", "a b", "host:http", "::/129"] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
    }
}
