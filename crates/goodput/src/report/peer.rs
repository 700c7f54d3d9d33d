//! Lines about a far end that is not goodput: its program, and its counts if they differ from this end's.

use goodput_model::{BitRate, Bytes, EndName, Known, Record, Role, Seconds, Totals, Transport};

/// Share by which the far end's rate over the whole run may differ from this end's without a line: both start and stop
/// counting a few round trips apart.
const EXPECTED_SHARE: f64 = 0.02;

/// Below this length these round trips are too large a part of the run, seconds.
const LONG_ENOUGH_S: f64 = 1.0;

/// The lines about the far end; none if it is goodput.
pub fn lines(record: &Record) -> Vec<String> {
    let Some(totals) = &record.far_totals else { return Vec::new() };
    let silent = if totals.flows.is_empty() { " because the far end reports nothing" } else { "" };
    let who = format!("{}; only this end is observed{silent}", totals.program);
    let senders = record.result.directions.iter().map(|direction| direction.sender);
    let counts = senders.filter_map(|sender| counts(record, totals, sender));
    std::iter::once(who).chain(counts).collect()
}

/// The source of the goodput of this end's payload.
pub fn counted(record: &Record) -> &'static str {
    match (&record.ends.far, record.plan.transport) {
        // By the receiver's count, or by this end's TCP if the count ends too early.
        (Known::Value(_), _) if record.incomplete.is_some() => "received at least",
        (Known::Value(_), _) => "received",
        (Known::Missing(_), Transport::Tcp) if record.plan.observe => "acknowledged",
        (Known::Missing(_), _) => "received, as the far end reports",
    }
}

/// The far end's own count of what `sender` sent over TCP, if it differs from this end's. Over UDP the difference is
/// the loss, which is reported elsewhere.
fn counts(record: &Record, totals: &Totals, sender: EndName) -> Option<String> {
    // If a warm-up is left out, the far end's counts cover a different time.
    if record.plan.transport != Transport::Tcp || record.plan.omit_s > 0.0 {
        return None;
    }
    let (theirs, ours) = match sender {
        EndName::Near => (Role::Receiver, Role::Sender),
        EndName::Far => (Role::Sender, Role::Receiver),
    };
    let (bytes, duration_s) = reported(totals, theirs)?;
    let last = record.ends.near.value()?.samples.last()?;
    let ours_bytes = if ours == Role::Sender { last.sent_bytes } else { last.received_bytes };
    let (their_rate, our_rate) =
        (BitRate::over(bytes, duration_s)?, BitRate::over(ours_bytes, last.at_s)?);
    if last.at_s.min(duration_s) < LONG_ENOUGH_S {
        return None;
    }
    let differs = (their_rate.0 - our_rate.0).abs() > EXPECTED_SHARE * our_rate.0;
    let (did, we_did) = match sender {
        EndName::Near => ("received", "sent"),
        EndName::Far => ("sent", "received"),
    };
    differs.then(|| {
        format!(
            "the far end reports that it {did} {} in {}, {their_rate}; this end {we_did} {} in {}, {our_rate}",
            Bytes(bytes),
            Seconds(duration_s),
            Bytes(ours_bytes),
            Seconds(last.at_s)
        )
    })
}

/// Bytes and seconds over all flows of a role, if each of them reports both.
fn reported(totals: &Totals, role: Role) -> Option<(u64, f64)> {
    let mut sum: Option<(u64, f64)> = None;
    for flow in totals.flows.iter().filter(|flow| flow.role == role) {
        let (bytes, seconds) = sum.unwrap_or_default();
        let (more, its) = (*flow.bytes.value()?, *flow.duration_s.value()?);
        sum = Some((bytes.checked_add(more)?, seconds.max(its)));
    }
    sum
}
