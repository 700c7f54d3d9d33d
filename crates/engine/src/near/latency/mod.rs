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
use schedule::{Halt, Probes};

pub use sum::latency;

/// How long probes run before the flows begin.
pub const IDLE_PHASE_TIME: Duration = Duration::from_secs(1);

/// What one way to probe found, or why it could not.
type ProbesResult = Result<Probes, Missing>;

/// What all probes of one phase found.
pub struct Phase {
    /// Connections to the server's port.
    tcp_connect: ProbesResult,
    /// Datagrams that the server sends back.
    udp_echo: ProbesResult,
}

/// Where probes go, and by what they may.
pub struct Prober {
    to: Result<SocketAddr, Missing>,
    echo: Result<Cookie, Missing>,
    options: SocketOptions,
}

impl Prober {
    /// Probes of the far end that `client` has found. Only a goodput server takes them: another one
    /// would take a connection for a client, and has no echo.
    pub fn of(client: &Client, plan: &Plan, echo: Option<Cookie>) -> Self {
        let answers = client.far_end().answers_probes;
        let why = Missing::because(
            "only a goodput server answers probes; another server would treat them as clients",
        );
        let no_echo = || Missing::because("the far end's goodput is older and has no echo");
        let mut to = client.addresses.first().copied();
        if let Some(to) = &mut to {
            to.set_port(client.target.port);
        }
        Self {
            to: to.filter(|_| answers).ok_or_else(|| why.clone()),
            echo: if answers { echo.ok_or_else(no_echo) } else { Err(why) },
            // The ports and the subflows are the flows' own.
            options: SocketOptions { source_port: None, mptcp: false, ..plan.socket.clone() },
        }
    }

    /// How long to probe before the flows begin: not at all if nobody takes probes. Another program
    /// counts its own time from when it is ready, and ends while this end still waits.
    pub fn idles(&self) -> Duration {
        if self.to.is_ok() { IDLE_PHASE_TIME } else { Duration::ZERO }
    }

    /// Begins to probe, until [`Probing::finish`]. Each way to probe has a thread of its own, which
    /// ends 3 s later at the latest, and at once when the [`Probing`] is dropped.
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
    /// No more probes; those that were sent are still waited for.
    pub fn finish(&self) {
        self.halt.finish();
    }

    /// What they found, once all were answered or are given up.
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
