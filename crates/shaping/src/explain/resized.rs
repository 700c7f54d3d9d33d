//! Another size of the local shaper's bucket, as a change of its setting.

use goodput_model::{Bytes, Change, SettingRef};

use super::Seen;

/// Settings of buckets (`goodput settings list`).
pub(crate) const BURST: &str = "qdisc.tbf.burst";
pub(crate) const BURSTS: &str = "qdisc.htb.bursts";

/// Whether a setting is that of a bucket.
pub(crate) fn is_bucket(setting: &SettingRef) -> bool {
    [BURST, BURSTS].contains(&setting.name.as_str())
}

/// The setting of the local shaper's bucket, with its value now and another one.
pub(super) fn sized(seen: &Seen, to: Bytes, why: &str) -> Option<Change> {
    let shaper = seen.shaper()?;
    let (name, scope, from) = match &shaper.class {
        None => {
            let Bytes(burst) = shaper.burst_bytes.value()?;
            (BURST, shaper.device.clone(), burst.to_string())
        }
        Some(class) => {
            let scope = format!("{}:{class}", shaper.device);
            (BURSTS, scope, bursts(seen, class)?)
        }
    };
    Some(Change {
        setting: SettingRef { end: shaper.end, name: name.into(), scope: Some(scope) },
        from: Some(from),
        to: to.0.to_string(),
        why: why.into(),
    })
}

/// Both buckets of a class, as the setting takes them.
fn bursts(seen: &Seen, class: &str) -> Option<String> {
    let fact = |what: &str| seen.sender.before.count(&format!("class.{class}.{what}")).ok();
    let (burst, cburst) = (fact("burst_bytes")?, fact("cburst_bytes")?);
    Some(if burst == cburst { burst.to_string() } else { format!("{burst} {cburst}") })
}
