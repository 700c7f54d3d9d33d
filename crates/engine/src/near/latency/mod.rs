//! Round trips next to the flows: probes before the flows begin and while they run, and TCP's own
//! estimates.

mod connect;
mod echo;
mod schedule;
mod sum;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Missing, Plan, SocketOptions};
use goodput_wire::session::Cookie;
use tokio::task::JoinHandle;

use crate::error::EngineError;
use crate::near::client::Client;
use crate::threads::blocking;
use schedule::{Halt, PhaseProbes};

pub use sum::latency;

/// How long probes run before the flows begin.
pub const IDLE_PHASE_TIME: Duration = Duration::from_secs(1);

/// The result of one way to probe, or why it has none.
type ProbesResult = Result<PhaseProbes, Missing>;

/// The results of all probes of one phase.
pub struct Phase {
    /// Connections to the server's port.
    tcp_connect: ProbesResult,
    /// Datagrams that the server sends back.
    udp_echo: ProbesResult,
}

/// Where probes go, and which ways are possible.
pub struct Prober {
    to: Result<SocketAddr, Missing>,
    echo: Result<Cookie, Missing>,
    options: SocketOptions,
}

impl Prober {
    /// Probes of the far end that `client` has found. Only a goodput server accepts them: another
    /// server would take a connection for a client, and has no echo.
    pub fn of(client: &Client, plan: &Plan, echo: Option<Cookie>) -> Self {
        let answers = client.far_end().answers_probes;
        let why = Missing::because(
            "only a goodput server answers these requests; another server would treat them as clients",
        );
        let no_echo = || Missing::because("the far end's goodput is older and has no echo");
        let mut to = client.addresses.first().copied();
        if let Some(to) = &mut to {
            to.set_port(client.target.port);
        }
        Self {
            to: to.filter(|_| answers).ok_or_else(|| why.clone()),
            echo: if answers { echo.ok_or_else(no_echo) } else { Err(why) },
            // Source ports and subflows belong to the flows.
            options: SocketOptions { source_port: None, mptcp: false, ..plan.socket.clone() },
        }
    }

    /// How long to probe before the flows begin: not at all if nobody answers probes. Another program
    /// counts its own time from when it is ready, and ends while this end still waits.
    pub fn idles(&self) -> Duration {
        if self.to.is_ok() { IDLE_PHASE_TIME } else { Duration::ZERO }
    }

    /// Probes until [`Probing::finish`]. Each way to probe has its own thread, which ends at most 3 s
    /// later, and at once when the [`Probing`] is dropped.
    pub fn start(&self) -> Probing {
        let halt = Arc::new(Halt::default());
        let (to, echo, options) = (self.to.clone(), self.echo.clone(), self.options.clone());
        let (connect_to, connect_options) = (to.clone(), options.clone());
        let (echo_halt, connect_halt) = (Arc::clone(&halt), Arc::clone(&halt));
        Probing {
            tcp_connect: tokio::spawn(blocking(move || {
                connect::probe(connect_to?, &connect_options, &connect_halt)
            })),
            udp_echo: tokio::spawn(blocking(move || echo::probe(to?, echo?, &options, &echo_halt))),
            halt,
        }
    }
}

/// Probes under way.
pub struct Probing {
    tcp_connect: JoinHandle<Result<ProbesResult, EngineError>>,
    udp_echo: JoinHandle<Result<ProbesResult, EngineError>>,
    halt: Arc<Halt>,
}

impl Probing {
    /// Sends no more probes; those already sent are still awaited.
    pub fn finish(&self) {
        self.halt.finish();
    }

    /// The results, once all probes were answered or given up.
    pub async fn collect(mut self) -> Result<Phase, EngineError> {
        let broken = |cause| EngineError::Flow(format!("an internal task failed: {cause}"));
        let tcp_connect = (&mut self.tcp_connect).await.map_err(broken)??;
        let udp_echo = (&mut self.udp_echo).await.map_err(broken)??;
        Ok(Phase { tcp_connect, udp_echo })
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.halt.abandon();
    }
}
