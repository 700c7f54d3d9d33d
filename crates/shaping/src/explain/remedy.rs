//! What to change at the sending host.

use goodput_model::{Bytes, Change, EndName, EnoughBucket, Known, LocalShaper, SettingRef};

use super::reset::{CEIL, CLASS_RATE};
use super::resized::{BURST, BURSTS};
use super::short::{in_networkd, in_tc};
use super::{Answer, Seen, bucket, downstream, late_timers, queue, reset, resized};

/// Settings that are changed (`goodput settings list`).
pub(crate) const LIMIT: &str = "qdisc.tbf.limit";

/// The rate that was asked about, if the shaper is set to another one. Otherwise a smaller bucket, if what is behind drops bursts;
/// a larger one, if the present one costs rate; and a longer queue, if the present one costs TCP its rate.
pub(super) fn changes(seen: &Seen) -> Vec<Change> {
    let rates = reset::changes(seen);
    if !rates.is_empty() {
        return with_what_a_rate_needs(seen, rates);
    }
    let is_cost = |causes: &[fn(&Seen) -> Answer]| causes.iter().any(|cause| cause(seen).is_some());
    let limit = longer(seen).filter(|_| is_cost(&[queue::too_short]));
    let of_frames = is_cost(&[bucket::below_a_frame, late_timers::of_frames]);
    // A queue that holds no super-packet drops a part of each, whatever the bucket is.
    let of_batches = (limit.is_some() || holds_a_batch(seen))
        && (is_cost(&[late_timers::of_super_packets])
            || (seen.tcp_shortfall_or_lag() && is_cost(&[bucket::cuts_batches])));
    let bucket =
        downstream::smaller(seen).or_else(|| larger(seen).filter(|_| of_frames || of_batches));
    bucket.into_iter().chain(limit).collect()
}

/// Changes to another rate, with a bucket and a queue that are enough for it.
fn with_what_a_rate_needs(seen: &Seen, rates: Vec<Change>) -> Vec<Change> {
    let is_small = |enough: &EnoughBucket| {
        seen.burst_at_most().is_some_and(|most| most < enough.bytes.0 as f64)
    };
    let bucket = seen.enough.filter(|enough| is_small(enough)).and_then(|_| larger(seen));
    rates.into_iter().chain(bucket).chain(longer(seen)).collect()
}

/// Whether the shaper's queue holds a super-packet, as far as its limit is known.
fn holds_a_batch(seen: &Seen) -> bool {
    let Some((shaper, frame)) = seen.shaper().zip(seen.largest_frame()) else { return true };
    let whole = bucket::largest_super_packet(seen.sender, frame);
    shaper.limit_bytes.value().is_none_or(|limit| limit.0 as f64 >= whole)
}

/// The setting of a queue that is too short for TCP, with its value now and a sufficient one.
fn longer(seen: &Seen) -> Option<Change> {
    let shaper = seen.shaper().filter(|shaper| bucket::is_tbf(shaper))?;
    let (limit, enough) = (shaper.limit_bytes.value()?, queue::enough(seen)?);
    (enough > limit.0 as f64).then(|| Change {
        setting: SettingRef {
            end: shaper.end,
            name: LIMIT.into(),
            scope: Some(shaper.device.clone()),
        },
        from: Some(limit.0.to_string()),
        to: format!("{enough:.0}"),
        why: "one round trip of its rate, and 10 ms more or a super-packet; at least two super-packets".into(),
    })
}

/// The setting of a bucket that is too small, with its value now and a sufficient one.
pub(super) fn larger(seen: &Seen) -> Option<Change> {
    resized::sized(seen, seen.enough?.bytes, "enough for late timers and for a super-packet")
}

/// The commands that make changes: tc(8)'s if it states all that is set. tc sets all parameters of a class or a token
/// bucket at once, and whatever it is not given falls back to a default; goodput writes back what it reads. A router
/// needs no goodput, so it gets a command of tc or none.
pub(super) fn commands(seen: &Seen, changes: &[Change]) -> Vec<String> {
    let Some(shaper) = seen.shaper().filter(|_| !changes.is_empty()) else { return Vec::new() };
    let own = |change: &Change| {
        format!("goodput settings set {}={}", near(&change.setting), quoted(&change.to))
    };
    let commands: Vec<String> = match (is_plain(seen, shaper), &shaper.router) {
        (true, _) => tbf_command(seen, changes).into_iter().collect(),
        // The priority of a class is unknown here.
        (false, None) => changes.iter().map(own).collect(),
        (false, Some(_)) => Vec::new(),
    };
    let placed = |command| match &shaper.router {
        Some(router) => format!("{command}   # at the router {router}"),
        None => at(shaper.end, command),
    };
    commands.into_iter().map(placed).collect()
}

/// The same changes as lines of systemd.network(5), with all that is set.
pub(super) fn networkd(seen: &Seen, changes: &[Change]) -> Vec<String> {
    let Some(shaper) = seen.shaper().filter(|_| !changes.is_empty()) else { return Vec::new() };
    let lines = match &shaper.class {
        Some(class) => htb_lines(seen, changes, class),
        None if is_plain(seen, shaper) => tbf_lines(seen, changes),
        None => None,
    };
    lines.unwrap_or_default()
}

fn tbf_lines(seen: &Seen, changes: &[Change]) -> Option<Vec<String>> {
    let (rate, burst, limit) = tbf_values(seen, changes)?;
    let rate = in_networkd(rate);
    Some(vec![
        "[TokenBucketFilter]".into(),
        "Parent=root".into(),
        format!("Rate={rate}"),
        format!("BurstBytes={burst}"),
        format!("LimitBytes={limit}"),
    ])
}

/// Which class goes first is not read, so the lines say that it has to be added. networkd knows no least size and no link layer.
/// No lines if another class has to change too.
fn htb_lines(seen: &Seen, changes: &[Change], class: &str) -> Option<Vec<String>> {
    let facts = seen.sender.before;
    let fact = |what: &str| facts.count(&format!("class.{class}.{what}")).ok();
    let scope = format!("{}:{class}", seen.shaper()?.device);
    let is_its_own = |change: &Change| change.setting.scope.as_deref() == Some(&scope);
    if !counts_bare_frames(seen, &format!("class.{class}")) || !changes.iter().all(is_its_own) {
        return None;
    }
    let changed = |name: &str| changes.iter().find(|change| change.setting.name == name);
    let rate = |name: &str, now: &str| match changed(name) {
        Some(_) => reset::wanted(seen),
        None => fact(now),
    };
    let (rate, ceil) = (rate(CLASS_RATE, "rate_bits_per_s")?, rate(CEIL, "ceil_bits_per_s")?);
    let bursts = match changed(BURSTS) {
        Some(change) => change.to.clone(),
        None => format!("{} {}", fact("burst_bytes")?, fact("cburst_bytes")?),
    };
    let (burst, cburst) = bursts.split_once(' ').unwrap_or((&bursts, &bursts));
    Some(vec![
        "[HierarchyTokenBucketClass]".into(),
        format!("Parent={}", facts.text(&format!("class.{class}.parent")).ok()?),
        format!("ClassId={class}"),
        "# Priority= was not read: add it if the class has one".into(),
        format!("QuantumBytes={}", fact("quantum_bytes")?),
        format!("Rate={}", in_networkd(rate)),
        format!("CeilRate={}", in_networkd(ceil)),
        format!("BufferBytes={burst}"),
        format!("CeilBufferBytes={cburst}"),
    ])
}

/// The command, with the host at which it belongs if that is not this one.
pub(crate) fn at(end: EndName, command: String) -> String {
    match end {
        EndName::Near => command,
        EndName::Far => format!("{command}   # at the far host"),
    }
}

/// The setting as its own host names it.
fn near(setting: &SettingRef) -> SettingRef {
    SettingRef { end: EndName::Near, ..setting.clone() }
}

/// A value of two words as a shell takes it.
fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("'{value}'") } else { value.to_owned() }
}

/// Whether the shaper is a token bucket that has only a rate, a burst and a limit.
fn is_plain(seen: &Seen, shaper: &LocalShaper) -> bool {
    let facts = seen.sender.before;
    // Of one with another queue inside, tc's command would need a limit.
    bucket::is_tbf(shaper)
        && shaper.limit_bytes.value().is_some()
        && facts.number("qdisc.peak_rate_bits_per_s").is_err()
        && counts_bare_frames(seen, "qdisc")
}

/// Whether what these facts are `of` counts a packet as its frame, without overhead, least size, cells or a table of sizes.
fn counts_bare_frames(seen: &Seen, of: &str) -> bool {
    let facts = seen.sender.before;
    let none = |what: &str| facts.number(&format!("{of}.{what}")).is_ok_and(|value| value == 0.0);
    let layer = facts.text(&format!("{of}.link_layer"));
    let has_table = facts.text("qdisc.table.link_layer").is_ok();
    let is_bare = none("overhead_bytes") && none("least_bytes");
    is_bare && !has_table && layer.is_ok_and(|layer| layer == "ethernet")
}

fn tbf_command(seen: &Seen, changes: &[Change]) -> Option<String> {
    let (rate, burst, limit) = tbf_values(seen, changes)?;
    let (device, rate) = (&seen.shaper()?.device, in_tc(rate));
    Some(format!("tc qdisc change dev {device} root tbf rate {rate} burst {burst} limit {limit}"))
}

/// Rate, bits per second, burst and limit of a token bucket after changes.
fn tbf_values(seen: &Seen, changes: &[Change]) -> Option<(u64, String, String)> {
    let shaper = seen.shaper()?;
    let value = |name: &str, now: &Known<Bytes>| {
        let changed = changes.iter().find(|change| change.setting.name == name);
        changed.map(|change| change.to.clone()).or(now.value().map(|now| now.0.to_string()))
    };
    let is_reset = changes.iter().any(|change| change.setting.name == reset::RATE);
    let wanted = reset::wanted(seen).filter(|_| is_reset);
    let rate = wanted.or_else(|| seen.sender.before.count("qdisc.rate_bits_per_s").ok())?;
    Some((rate, value(BURST, &shaper.burst_bytes)?, value(LIMIT, &shaper.limit_bytes)?))
}
