//! The lines about a file on a mount: how it was read, the type of mount, and an NFS mount's calls to its server.

use goodput_model::{
    BitRate, Bytes, EndName, Fetch, Fetches, Known, MountCalls, MountUse, Record, Seconds,
};

use super::fetches::moved_bytes;

/// The lines; none if the target is not a file on a mount.
pub fn lines(record: &Record) -> Vec<(&'static str, String)> {
    let Some(mount) = &record.mount else { return Vec::new() };
    let mut lines = vec![("mount", mounted(mount))];
    if let Some(fetches) = &record.fetches {
        let writes = record.plan.direction.senders().contains(&EndName::Near);
        lines.push((
            if writes { "written" } else { "read" },
            passes(record, fetches, mount, writes),
        ));
        lines.extend(fetches.first.value().map(|first| ("first read", first_read(first))));
    }
    for calls in mount.calls.value().into_iter().flatten() {
        lines.push(("calls", one_kind(calls)));
    }
    lines
}

fn mounted(mount: &MountUse) -> String {
    let option = |name: &str| {
        let options = mount.options.split(',');
        options.filter_map(|option| option.split_once('=')).find(|(found, _)| *found == name)
    };
    let named = |name: &str| option(name).map(|(name, value)| format!("{name}={value}"));
    let size = |name: &str| {
        option(name).map(|(name, value)| match value.parse() {
            Ok(bytes) => format!("{name}={}", binary(bytes)),
            Err(_) => format!("{name}={value}"),
        })
    };
    let options = [named("vers"), named("proto"), size("rsize"), size("wsize"), named("nconnect")];
    let options: Vec<_> = options.into_iter().flatten().collect();
    let own = if mount.private { "   mounted for this test alone" } else { "" };
    let MountUse { source, point, kind, .. } = mount;
    format!("{source} on {point} ({})   {}{own}", kind, options.join(", ")).trim_end().to_string()
}

fn passes(record: &Record, fetches: &Fetches, mount: &MountUse, writes: bool) -> String {
    let chunk = record.plan.chunk_bytes;
    let moved = moved_bytes(record, writes);
    let file = match fetches.file_bytes {
        Known::Value(bytes) => match moved.filter(|all| fetches.answers == 1 && *all < bytes) {
            Some(part) => format!("{} of {}", Bytes(part), Bytes(bytes)),
            None => Bytes(bytes).to_string(),
        },
        Known::Missing(_) => "length unknown".into(),
    };
    let times = if fetches.answers == 1 { "pass" } else { "passes" };
    let how = match (mount.direct, &mount.resident_percent) {
        (true, _) => format!("past the page cache (O_DIRECT), {} at once", binary(chunk.0)),
        (false, _) if writes => "through the page cache".into(),
        (false, Known::Value(percent)) if *percent > 0.0 => {
            format!("dropped from the page cache before each; {percent:.0} % of it stayed")
        }
        (false, _) => "dropped from the page cache before each".into(),
    };
    let ahead = match mount.read_ahead_bytes {
        Known::Value(Bytes(bytes)) if !(mount.direct || writes) => {
            format!(", read ahead {}", binary(bytes))
        }
        _ => String::new(),
    };
    let sync = if writes { ", fsync after each pass" } else { "" };
    format!("{} {times} over {file}   {how}{ahead}{sync}", fetches.answers)
}

/// The pass before the measurement, compared with the others.
fn first_read(first: &Fetch) -> String {
    let rate = BitRate::over(first.bytes, first.took_s);
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
    let part = if first.whole { "" } else { " (given up)" };
    format!("{}{part}{rate}", Seconds(first.took_s))
}

fn one_kind(calls: &MountCalls) -> String {
    let MountCalls { name, transmissions, timeouts, .. } = calls;
    let in_flight = match calls.in_flight {
        Known::Value(in_flight) => format!(", {in_flight:.1} in flight"),
        Known::Missing(_) => String::new(),
    };
    let mut text = format!(
        "{} {name} of {} (mean): {} to the answer{in_flight}, {} queued here before",
        calls.calls,
        Bytes(calls.mean_bytes.round() as u64),
        Seconds::of_us(calls.round_trip_us),
        Seconds::of_us(calls.queue_us),
    );
    if *transmissions > calls.calls || *timeouts > 0 {
        text += &format!(
            ", {} sent again, {timeouts} timed out",
            transmissions - calls.calls.min(*transmissions)
        );
    }
    match calls.errors {
        Known::Value(errors) if errors > 0 => format!("{text}, {errors} failed"),
        _ => text,
    }
}

/// A size in the format of options.
fn binary(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::MountReach;

    fn mount() -> MountUse {
        MountUse {
            point: "/mnt/nas".into(),
            kind: "nfs4".into(),
            source: "nas:/export".into(),
            options: "rw,vers=4.2,rsize=1048576,wsize=65536,hard,proto=tcp,nconnect=4".into(),
            reach: MountReach::Network,
            private: true,
            direct: false,
            resident_percent: Known::Value(3.0),
            read_ahead_bytes: Known::Value(Bytes(128 << 10)),
            connections: Known::Value(4),
            calls: Known::missing("x"),
            other_calls: Known::Value(0),
        }
    }

    #[test]
    fn a_mount_is_shown_by_its_options() {
        assert_eq!(
            mounted(&mount()),
            "nas:/export on /mnt/nas (nfs4)   vers=4.2, proto=tcp, rsize=1M, wsize=64K, nconnect=4   mounted for this test alone"
        );
        let disk = MountUse {
            kind: "ext4".into(),
            source: "/dev/sda1".into(),
            options: "rw".into(),
            private: false,
            ..mount()
        };
        assert_eq!(mounted(&disk), "/dev/sda1 on /mnt/nas (ext4)");
    }

    #[test]
    fn calls_are_reported_with_what_went_wrong() {
        let calls = MountCalls {
            name: "READ".into(),
            calls: 100,
            transmissions: 100,
            timeouts: 0,
            errors: Known::Value(0),
            mean_bytes: 65_700.0,
            queue_us: 500.0,
            round_trip_us: 80_000.0,
            execute_us: 80_600.0,
            in_flight: Known::Value(4.04),
        };
        let text = "100 READ of 65.7 kB (mean): 80 ms to the answer, 4.0 in flight, 500 µs queued here before";
        assert_eq!(one_kind(&calls), text);
        let bad = MountCalls { transmissions: 102, timeouts: 1, errors: Known::Value(3), ..calls };
        assert_eq!(one_kind(&bad), format!("{text}, 2 sent again, 1 timed out, 3 failed"));
    }
}
