//! Watches another program's transfer, without traffic of our own, and reports what limits it.
//!
//! Only this end is visible, and only what the kernel shows of it to anyone: counters of the
//! connection, its memory, the host, and the program's CPU time. Connections of other network
//! namespaces and UDP are not visible.

mod choose;
mod find;
mod look;
mod program;
mod wanted;
mod watch;

use goodput_kernel::{Context, ForeignSocket};
use goodput_model::{Direction, EndName, Kind, Known, Length, Plan, Record, Role, SocketOptions};

pub use choose::Key;
pub use look::{observation, since};
pub use wanted::AttachTo;

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::conclude::{Conclusion, conclude};
use find::ActiveTransfer;
use watch::TransferWatch;

/// Which transfer to watch, and for how long.
#[derive(Debug, Clone)]
pub struct AttachRequest {
    /// Whose transfer.
    pub to: AttachTo,
    /// How long; a number of bytes is not possible.
    pub length: Length,
    /// Seconds between the shown intervals.
    pub interval_s: f64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Finds the transfer, watches it and concludes. If the transfer ends or an interrupt comes, ends early
/// with what was seen so far.
pub async fn attach(
    request: &AttachRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Conclusion, EngineError> {
    let found = tokio::select! {
        found = find::find(request.to) => found?,
        () = interrupt.raised() => return Err(EngineError::Interrupted),
    };
    let plan = plan(request, &found);
    let target = target(&found);
    let words = found.words();
    listener(Event::Found { target: target.clone(), plan: plan.clone().into() });
    listener(Event::Note { text: words.clone() });
    let context = Context {
        peer: Some(found.chosen.peer),
        subject: found.program.subject(),
        ..Context::default()
    };
    let mut measurement = TransferWatch::new(plan, found, context).run(interrupt, listener).await?;
    measurement.doubts.insert(0, words);
    let mut conclusion = conclude(measurement, &target, &request.started)?;
    as_attached(&mut conclusion.record);
    Ok(conclusion)
}

/// The watched transfer in the terms of a plan. The far end is the peer, whatever program it runs.
fn plan(request: &AttachRequest, found: &ActiveTransfer) -> Plan {
    Plan {
        direction: match found.chosen.role {
            Role::Sender => Direction::Send,
            Role::Receiver => Direction::Reverse,
        },
        flows: u16::try_from(found.chosen.keys.len()).unwrap_or(u16::MAX),
        length: request.length,
        interval_s: request.interval_s,
        mover: Plan::WATCHING.into(),
        socket: SocketOptions { congestion: congestion(&found.sockets), ..<_>::default() },
        ..Plan::standard()
    }
}

/// The congestion control, if all flows have the same.
fn congestion(sockets: &[ForeignSocket]) -> Option<String> {
    let mut names = sockets.iter().map(|socket| socket.congestion.value());
    let first = names.next()??;
    names.all(|name| name == Some(first)).then(|| first.clone())
}

/// The peer, with its port if all flows have the same.
fn target(found: &ActiveTransfer) -> String {
    let mut ports = found.chosen.keys.iter().map(|key| key.peer.port());
    let first = ports.next();
    match first.filter(|first| ports.all(|port| port == *first)) {
        Some(port) => std::net::SocketAddr::new(found.chosen.peer, port).to_string(),
        None => found.chosen.peer.to_string(),
    }
}

/// Marks the record as attached. Only the program can change what a plan of ours could.
fn as_attached(record: &mut Record) {
    record.kind = Kind::Attach;
    for finding in &mut record.findings {
        for advice in &mut finding.advice {
            // Another program's data can't be probed; the path can.
            *advice = advice.replace("(--probe)", "(goodput test --probe of the same path)");
        }
        let changes = std::mem::take(&mut finding.changes);
        for change in changes {
            let ours = goodput_settings::find_for(&change.setting).is_ok_and(|s| s.is_plan());
            match ours {
                true => finding.advice.insert(0, format!("in the program's own options: {change}")),
                false => finding.changes.push(change),
            }
        }
    }
}

/// The end that sends, seen from here.
fn sender(role: Role) -> EndName {
    match role {
        Role::Sender => EndName::Near,
        Role::Receiver => EndName::Far,
    }
}

/// Why there is no far end.
fn no_far_end<T>() -> Known<T> {
    Known::missing("another program's transfer is watched from this end only")
}
