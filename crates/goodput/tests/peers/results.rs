//! Whether both sides counted the same, and what the page says of it.

use std::path::PathBuf;

use goodput_model::{Bytes, Transport};
use libtest_mimic::Failed;

use crate::matrix::{Case, Counts, Found};

/// Where each case leaves its line for the page; nowhere if this is not set.
const DIRECTORY: &str = "GOODPUT_PEERS_DIR";

/// Bytes that may be under way on a flow: the largest that the kernel makes the buffers of both ends
/// (tcp(7), `tcp_wmem` and `tcp_rmem`; the third number).
fn under_way_bytes() -> u64 {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    ["tcp_wmem", "tcp_rmem"].into_iter().filter_map(largest).sum()
}

/// Judges what was found, and leaves it for the page.
pub fn keep(case: &Case, version: &str, found: Result<Found, Failed>) -> Result<(), Failed> {
    let judged = found.and_then(|found| judge(case, &found));
    let text = match &judged {
        Ok(text) => text.clone(),
        Err(why) => format!("failed: {}", why.message().unwrap_or("it does not say why")),
    };
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let name = case.name();
        let line = serde_json::json!({ "case": name, "version": version, "ok": judged.is_ok(), "text": text });
        std::fs::write(PathBuf::from(directory).join(name.replace('/', ".")), line.to_string())?;
    }
    judged.map(drop)
}

/// In words, direction by direction.
fn judge(case: &Case, found: &Found) -> Result<String, Failed> {
    if found.counts.is_empty() {
        return Err("nothing was counted".into());
    }
    let each = found.counts.iter().map(|counts| of_direction(case, counts, found.unread));
    Ok(each.collect::<Result<Vec<_>, _>>()?.join("; "))
}

fn of_direction(case: &Case, counts: &Counts, unread: u64) -> Result<String, Failed> {
    let Counts { sent_bytes: sent, received_bytes: received, .. } = *counts;
    if sent == 0 || received == 0 {
        return Err(format!("{sent} bytes sent, {received} received").into());
    }
    match (case.transport, counts.lost) {
        (Transport::Tcp, _) => of_stream(case, counts),
        (Transport::Udp, Some((lost, of))) => of_datagrams(counts, (lost, of), unread),
        (Transport::Udp, None) => Err("the receiver does not report what it missed".into()),
    }
}

fn of_stream(case: &Case, counts: &Counts) -> Result<String, Failed> {
    let Counts { sent_bytes: sent, received_bytes: received, may_stop_early, .. } = *counts;
    if sent == received {
        return Ok("equal".into());
    }
    if received > sent && received - sent <= counts.uncounted_bytes {
        return Ok("equal but for the sender's last block".into());
    }
    let most = under_way_bytes() * u64::from(case.flows);
    if may_stop_early && received < sent && sent - received <= most {
        return Ok("equal but for what was under way at the end".into());
    }
    Err(format!("{sent} bytes sent, {received} received").into())
}

/// What was lost makes up for the difference. A receiver that misses the last ones can't know: those that
/// the kernel kept for it or had to drop, because it got no CPU, are `unread`.
fn of_datagrams(counts: &Counts, (lost, of): (u64, u64), unread: u64) -> Result<String, Failed> {
    let Counts { sent_bytes: sent, received_bytes: received, .. } = *counts;
    if of == 0 || lost >= of || received > sent {
        return Err(format!("{sent} bytes sent, {received} received, {lost} of {of} lost").into());
    }
    let datagram = received as f64 / (of - lost) as f64;
    let missing = (sent - received) as f64 / datagram;
    // Half the traffic of a tenth of a second may be unknown to a receiver that stops first.
    let tail = (of as f64 / 10.0).max(4.0);
    let unknown = tail + unread.saturating_sub(lost) as f64;
    if (-tail..=unknown).contains(&(missing - lost as f64)) {
        let missed = if lost == 0 { "nothing lost".into() } else { format!("{lost} of {of} lost") };
        return Ok(if sent == received { "equal".into() } else { missed });
    }
    let missing = Bytes(sent - received);
    Err(format!("{missing} are missing, {lost} of {of} were lost, {unread} nobody read").into())
}
