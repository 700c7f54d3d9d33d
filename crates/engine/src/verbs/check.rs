//! Inspects this host without any traffic: its facts now, and how its counters change meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use goodput_diagnose::check::{HostView, check as ask};
use goodput_kernel::Context;
use goodput_model::record::FORMAT_VERSION;
use goodput_model::{CheckReport, Known, Snapshot};

use crate::error::EngineError;

/// Inspects `devices`, or those worth a look if none is named, and watches their counters for `watch`
/// if it is given. Blocks that long. `started` is RFC 3339, UTC.
pub fn check(
    devices: &[String],
    watch: Option<Duration>,
    started: &str,
) -> Result<CheckReport, EngineError> {
    let devices =
        goodput_kernel::devices(devices).map_err(|why| EngineError::Flow(why.to_string()))?;
    let before: Option<Vec<Snapshot>> = watch.map(|_| snapshots(&devices));
    let began = Instant::now();
    let late = watch.and_then(goodput_kernel::longest_wakeup_delay);
    if let Some(left) = watch.and_then(|time| time.checked_sub(began.elapsed())) {
        thread::sleep(left);
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut now = snapshots(&devices);
    for facts in &mut now {
        match late {
            Some(late) => facts.put("wakeup.longest_us", late.as_secs_f64() * 1e6),
            None => facts.lacks(
                "wakeup",
                "wake-ups are only seen over time: `goodput check --watch 10` looks twice",
            ),
        }
    }
    let views: Vec<_> = now
        .iter()
        .enumerate()
        .map(|(n, facts)| HostView {
            device: devices.get(n).map(String::as_str),
            now: facts,
            before: before.as_ref().and_then(|all| Some((all.get(n)?, seconds))),
        })
        .collect();
    let checked = ask(&views);
    Ok(CheckReport {
        format: FORMAT_VERSION,
        started: started.into(),
        host: goodput_kernel::host(),
        watched_s: match watch {
            Some(_) => Known::Value(seconds),
            None => Known::missing("counters were read once"),
        },
        findings: checked.findings,
        undecided: checked.undecided,
        devices,
    })
}

/// The facts of each device, including the host's; of the host alone if there is no device.
fn snapshots(devices: &[String]) -> Vec<Snapshot> {
    let about = |device: Option<&String>| {
        goodput_kernel::snapshot(&Context { device: device.cloned(), ..Context::default() })
    };
    match devices {
        [] => vec![about(None)],
        some => some.iter().map(|device| about(Some(device))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_lacks_is_said_and_the_host_is_checked_all_the_same() {
        let report = check(&["lo".into()], None, "2026-01-01T00:00:00Z").unwrap();
        let about_it = report.undecided.iter().filter(|u| u.because.starts_with("lo: "));
        assert!(about_it.count() > 3, "{:?}", report.undecided);
        assert!(report.undecided.iter().all(|u| u.rule != "window-scaling-off"));
    }
}
