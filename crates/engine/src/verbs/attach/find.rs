//! Finds the transfer: lists the connections of the process or the port, and waits until one moves.

use std::time::Duration;

use goodput_kernel::{
    ForeignSocket, Owner, SocketFilter, foreign_sockets, shares_network_namespace, socket_inodes_of,
};
use goodput_model::Role;
use tokio::time::{Instant, sleep};

use super::AttachTo;
use super::choose::{Key, TransferConnections, choose, counts};
use super::program::Program;
use super::wanted::{ResolvedTarget, resolve};
use crate::error::EngineError;
use crate::threads::blocking;

/// How long connections are watched to see which of them move: the longest pause of a working path, one
/// retransmission time-out (RTO_MIN, include/net/tcp.h) and a round trip.
const LOOK_TIME: Duration = Duration::from_millis(400);
/// How long to wait for anything to move.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// A transfer that moves.
pub struct ActiveTransfer {
    /// Its connections.
    pub chosen: TransferConnections,
    /// The same connections as the kernel shows them.
    pub sockets: Vec<ForeignSocket>,
    /// The program at this end.
    pub program: Program,
}

impl ActiveTransfer {
    /// The watched transfer, for people.
    pub fn words(&self) -> String {
        let way = if self.chosen.role == Role::Sender { "→" } else { "←" };
        let which = match &self.chosen.keys[..] {
            [only] => format!("{} {way} {}", only.local, only.peer),
            several => format!("{} connections {way} {}", several.len(), self.chosen.peer),
        };
        format!("watches {which} of {}", self.program.words())
    }
}

/// Finds what `to` names.
pub async fn find(to: AttachTo) -> Result<ActiveTransfer, EngineError> {
    let wanted = resolve(to)?;
    let before = blocking(move || list(wanted)).await??;
    let before = counts(&before);
    let began = Instant::now();
    loop {
        sleep(LOOK_TIME).await;
        let sockets = blocking(move || list(wanted)).await??;
        if let Some(chosen) = choose(&before, &counts(&sockets))? {
            return blocking(move || found(wanted, chosen, sockets)).await;
        }
        if began.elapsed() >= MAX_WAIT {
            return Err(idle(wanted, sockets.len()));
        }
    }
}

fn found(
    wanted: ResolvedTarget,
    chosen: TransferConnections,
    mut sockets: Vec<ForeignSocket>,
) -> ActiveTransfer {
    sockets.retain(|socket| chosen.keys.contains(&Key::of(socket)));
    let pid = match wanted {
        ResolvedTarget::Process(pid) => Some(pid),
        ResolvedTarget::Port(_) => None,
    };
    let program = Program::find(pid, &sockets.iter().collect::<Vec<_>>());
    ActiveTransfer { chosen, sockets, program }
}

fn list(wanted: ResolvedTarget) -> Result<Vec<ForeignSocket>, EngineError> {
    let filter = match wanted {
        ResolvedTarget::Process(pid) => process(pid)?,
        ResolvedTarget::Port(port) => SocketFilter { port: Some(port), inodes: None },
    };
    let sockets = foreign_sockets(&filter).map_err(|why| EngineError::attach(why.to_string()))?;
    if sockets.is_empty() {
        return Err(nothing(wanted));
    }
    Ok(sockets)
}

fn process(pid: u32) -> Result<SocketFilter, EngineError> {
    let inodes = socket_inodes_of(pid).map_err(|why| EngineError::Attach {
        not_permitted: Owner::of(pid).is_some(),
        why: why.to_string(),
    })?;
    if shares_network_namespace(pid) == Ok(false) {
        return Err(EngineError::attach(format!(
            "process {pid} is in another network namespace, so its connections can't be seen from here; run there: nsenter --target {pid} --net goodput test --attach {pid}"
        )));
    }
    Ok(SocketFilter { port: None, inodes: Some(inodes) })
}

fn nothing(wanted: ResolvedTarget) -> EngineError {
    let advice = match wanted {
        ResolvedTarget::Process(_) => {
            "; UDP can't be watched, and a child process may hold the connections"
        }
        ResolvedTarget::Port(_) => "; UDP and other network namespaces can't be seen from here",
    };
    EngineError::attach(format!("{wanted} has no TCP connection{advice}"))
}

fn idle(wanted: ResolvedTarget, count: usize) -> EngineError {
    let connections = if count == 1 { "its connection" } else { "none of its connections" };
    let moved = if count == 1 { "moved no data" } else { "moved data" };
    EngineError::attach(format!(
        "{wanted} is idle: {connections} {moved} within {} s; start the transfer first",
        MAX_WAIT.as_secs()
    ))
}
