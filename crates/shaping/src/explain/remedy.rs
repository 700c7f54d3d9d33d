//! What to change at the sending host.

use goodput_model::{Bytes, Change, EndName, SettingRef};

use super::{Seen, bucket, late_timers};

/// A larger bucket, if the present one costs rate or CPU time.
pub(super) fn changes(seen: &Seen) -> Vec<Change> {
    let costs = [
        bucket::below_a_frame,
        late_timers::of_frames,
        late_timers::of_super_packets,
        bucket::cuts_batches,
    ];
    let is_cost = costs.iter().any(|cause| cause(seen).is_some());
    let change = (is_cost && holds_a_batch(seen)).then(|| larger(seen)).flatten();
    change.into_iter().collect()
}

/// Whether the shaper's queue holds a super-packet, as far as its limit is known. A shorter one drops a part of each, whatever
/// the bucket is.
fn holds_a_batch(seen: &Seen) -> bool {
    let Some(shaper) = seen.shaper() else { return true };
    let whole = bucket::largest_super_packet(seen.sender, shaper.counted_frame_bytes.0 as f64);
    shaper.limit_bytes.value().is_none_or(|limit| limit.0 as f64 >= whole)
}

/// The setting of a bucket that is too small, with its value now and a sufficient one.
pub(super) fn larger(seen: &Seen) -> Option<Change> {
    let (shaper, enough) = (seen.shaper()?, seen.enough?);
    let (name, scope, from) = match &shaper.class {
        None => {
            let Bytes(burst) = shaper.burst_bytes.value()?;
            ("qdisc.tbf.burst", shaper.device.clone(), burst.to_string())
        }
        Some(class) => {
            let scope = format!("{}:{class}", shaper.device);
            ("qdisc.htb.bursts", scope, bursts(seen, class)?)
        }
    };
    Some(Change {
        setting: SettingRef { end: shaper.end, name: name.into(), scope: Some(scope) },
        from: Some(from),
        to: enough.bytes.0.to_string(),
        why: "enough for late timers and for a super-packet".into(),
    })
}

/// Both buckets of a class, as the setting takes them.
fn bursts(seen: &Seen, class: &str) -> Option<String> {
    let fact = |what: &str| seen.sender.before.count(&format!("class.{class}.{what}")).ok();
    let (burst, cburst) = (fact("burst_bytes")?, fact("cburst_bytes")?);
    Some(if burst == cburst { burst.to_string() } else { format!("{burst} {cburst}") })
}

/// A rate as tc(8) takes it, exact, in the largest unit in which it is whole.
fn short(bits: u64) -> String {
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| bits.is_multiple_of(*size)).unwrap_or((1, "bit"));
    format!("{}{unit}", bits / size)
}

/// The command that makes a change: tc(8)'s if it states all that is set. tc sets all parameters of a class or a token
/// bucket at once, and whatever it is not given falls back to a default; goodput writes back what it reads. A router
/// needs no goodput, so it gets a command of tc or none.
pub(super) fn command(seen: &Seen, change: &Change) -> Option<String> {
    let shaper = seen.shaper()?;
    let command = match (shaper.class.is_none() && is_plain(seen), &shaper.router) {
        (true, _) => tbf_command(seen, change)?,
        // The priority of a class is unknown here.
        (_, None) => {
            format!("goodput settings set {}={}", near(&change.setting), quoted(&change.to))
        }
        (_, Some(_)) => return None,
    };
    Some(match &shaper.router {
        Some(router) => format!("{command}   # at the router {router}"),
        None => at(shaper.end, command),
    })
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

/// Whether a token bucket has only a rate, a burst and a limit.
fn is_plain(seen: &Seen) -> bool {
    let facts = seen.sender.before;
    let none = |what: &str| facts.number(&format!("qdisc.{what}")).is_ok_and(|value| value == 0.0);
    let ethernet = facts.text("qdisc.link_layer").is_ok_and(|layer| layer == "ethernet");
    facts.number("qdisc.peak_rate_bits_per_s").is_err()
        && none("overhead_bytes")
        && none("least_bytes")
        && ethernet
}

fn tbf_command(seen: &Seen, change: &Change) -> Option<String> {
    let shaper = seen.shaper()?;
    let (device, limit) = (&shaper.device, shaper.limit_bytes.value()?.0);
    let rate = seen.sender.before.count("qdisc.rate_bits_per_s").ok()?;
    Some(format!(
        "tc qdisc change dev {device} root tbf rate {} burst {} limit {limit}",
        short(rate),
        change.to
    ))
}
