//! What to change at the sending host.

use goodput_model::{Bytes, Change, SettingRef};

use super::{Seen, bucket};

/// A larger bucket, if the present one costs rate or CPU time.
pub(super) fn changes(seen: &Seen) -> Vec<Change> {
    let costs = [bucket::below_a_frame, bucket::late_timers, bucket::cuts_batches];
    let change = costs.iter().any(|cause| cause(seen).is_some()).then(|| larger(seen)).flatten();
    change.into_iter().collect()
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

/// The command of tc(8) that makes a change. tc sets all parameters of a class or a token bucket at once.
pub(super) fn command(seen: &Seen, change: &Change) -> Option<String> {
    let (shaper, to) = (seen.shaper()?, &change.to);
    let (device, fact) = (&shaper.device, |name: String| seen.sender.before.count(&name).ok());
    match &shaper.class {
        None => {
            let (rate, limit) =
                (fact("qdisc.rate_bits_per_s".into())?, shaper.limit_bytes.value()?.0);
            Some(format!(
                "tc qdisc change dev {device} root tbf rate {} burst {to} limit {limit}",
                short(rate)
            ))
        }
        Some(class) => {
            let of = |what: &str| fact(format!("class.{class}.{what}"));
            let (rate, ceil) = (of("rate_bits_per_s")?, of("ceil_bits_per_s")?);
            let parent = seen.sender.before.text(&format!("class.{class}.parent")).ok()?;
            let below = match parent {
                "root" => class.split_once(':').map(|(major, _)| format!("{major}:"))?,
                parent => parent.to_owned(),
            };
            Some(format!(
                "tc class change dev {device} parent {below} classid {class} htb rate {} ceil {} burst {to} \
                 cburst {to}",
                short(rate),
                short(ceil)
            ))
        }
    }
}
