//! What the mount of a measured file did while payload moved.

use goodput_model::{Bytes, End, Known, Missing, MountCalls, MountReach, MountUse, Snapshot};

/// Calls to show: their name, and the name of their facts.
const CALLS: [(&str, &str); 3] = [("READ", "read"), ("WRITE", "write"), ("COMMIT", "commit")];

/// The mount that `near` observed; `None` if the target is not a file on a mount.
pub fn of(near: &End) -> Option<MountUse> {
    let (before, after) = (&near.before, &near.after);
    let text = |name: &str| before.text(name).map(str::to_string);
    let kind = text("mount.type").ok()?;
    let is = |name: &str| before.count(name).is_ok_and(|is| is > 0);
    Some(MountUse {
        point: text("mount.point").unwrap_or_default(),
        source: text("mount.source").unwrap_or_default(),
        options: text("mount.options").unwrap_or_default(),
        reach: MountReach::of(&kind),
        kind,
        private: is("mount.private"),
        direct: is("mount.direct"),
        resident_percent: before.number("mount.resident_percent").into(),
        read_ahead_bytes: Known::from(before.count("mount.read_ahead_bytes")).map(Bytes),
        connections: after.count("mount.connections").into(),
        calls: calls(before, after, elapsed_s(near)).into(),
        other_calls: before.grown(after, "mount.others.calls").into(),
    })
}

/// The time over which the payload moved, seconds.
fn elapsed_s(near: &End) -> Option<f64> {
    Some(near.samples.last()?.at_s - near.samples.first()?.at_s).filter(|elapsed| *elapsed > 0.0)
}

fn calls(
    before: &Snapshot,
    after: &Snapshot,
    elapsed_s: Option<f64>,
) -> Result<Vec<MountCalls>, Missing> {
    // Without READ, no kind of call is known.
    before.count("mount.read.calls")?;
    let known =
        CALLS.iter().filter_map(|(name, fact)| one(before, after, name, fact, elapsed_s).ok());
    Ok(known.filter(|calls| calls.calls > 0).collect())
}

fn one(
    before: &Snapshot,
    after: &Snapshot,
    name: &str,
    fact: &str,
    elapsed_s: Option<f64>,
) -> Result<MountCalls, Missing> {
    let grown = |what: &str| before.grown(after, &format!("mount.{fact}.{what}"));
    let calls = grown("calls")?;
    let mean_us = |total_ms: u64| total_ms as f64 * 1e3 / (calls as f64).max(1.0);
    let round_trips_ms = grown("round_trip_ms")?;
    Ok(MountCalls {
        name: name.into(),
        calls,
        transmissions: grown("transmissions")?,
        timeouts: grown("timeouts")?,
        errors: grown("errors").into(),
        mean_bytes: (grown("sent_bytes")? + grown("received_bytes")?) as f64
            / (calls as f64).max(1.0),
        queue_us: mean_us(grown("queue_ms")?),
        round_trip_us: mean_us(round_trips_ms),
        execute_us: mean_us(grown("execute_ms")?),
        in_flight: match elapsed_s {
            Some(elapsed_s) => Known::Value(round_trips_ms as f64 / 1e3 / elapsed_s),
            None => Known::missing("the run was too short to know"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Host, Sample};

    fn near() -> End {
        let sample = |at_s| Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: Vec::new() };
        let mut near =
            End { samples: vec![sample(0.0), sample(2.0)], ..End::unobserved(Host::foreign("x")) };
        near.before.put("mount.type", "nfs4");
        near.before.put("mount.direct", 1u64);
        for (name, before, after) in [
            ("calls", 10u64, 110u64),
            ("transmissions", 10, 112),
            ("timeouts", 0, 1),
            ("sent_bytes", 1000, 11_000),
            ("received_bytes", 0, 990_000),
            ("queue_ms", 5, 55),
            ("round_trip_ms", 100, 8100),
            ("execute_ms", 105, 8205),
        ] {
            near.before.put(format!("mount.read.{name}"), before);
            near.after.put(format!("mount.read.{name}"), after);
        }
        near
    }

    #[test]
    fn what_grew_is_what_the_mount_did() {
        let mount = of(&near()).unwrap();
        assert!(mount.direct && !mount.private && mount.reach == MountReach::Network);
        let calls = mount.calls.value().unwrap();
        assert_eq!(calls.len(), 1, "no call was written: {calls:?}");
        let read = &calls[0];
        assert_eq!((read.calls, read.transmissions, read.timeouts), (100, 102, 1));
        assert_eq!((read.mean_bytes, read.queue_us), (10_000.0, 500.0));
        assert_eq!((read.round_trip_us, read.in_flight.value()), (80_000.0, Some(&4.0)));
        assert!(read.errors.value().is_none());
    }

    #[test]
    fn without_counts_there_are_reasons() {
        let mut near = near();
        near.before.facts.remove("mount.read.calls");
        near.before.lacks("mount.read.calls", "not NFS");
        assert_eq!(
            of(&near).unwrap().calls.get().unwrap_err().to_string(),
            "mount.read.calls: not NFS"
        );
        near.before.facts.clear();
        assert_eq!(of(&near), None);
    }
}
