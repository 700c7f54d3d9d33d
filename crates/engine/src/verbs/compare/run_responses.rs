//! The responses of a run that its trial does not have already.

use std::collections::BTreeMap;

use goodput_model::{BitRate, End, EndName, Known, Record, Response, StepUnit, Transport};

use super::Arm;
use super::watch::Watched;

/// Responses from the record or from the hosts reached by SSH. `changed` are the ends whose hosts the arms change.
pub fn run_responses(
    record: &Record,
    changed: &[EndName],
    watched: &[Watched],
) -> BTreeMap<Response, f64> {
    let host_cpu = host_cpu_percent(record, changed, watched);
    let goodput = record.result.goodput_bits_per_s;
    let all = [
        (Response::Interrupts, interrupts_per_s(record, watched)),
        (Response::Loss, loss_percent(record)),
        (Response::Drops, drops_per_gb(record, watched)),
        (Response::HostCpu, host_cpu),
        (Response::PerCpu, host_cpu.map(|percent| per_cpu(goodput, percent))),
    ];
    all.into_iter().filter_map(|(response, reading)| Some((response, reading?))).collect()
}

/// The ends whose hosts the arms change. A setting of the measurement belongs to both.
pub fn changed_ends(arms: &[Arm]) -> Vec<EndName> {
    let settings = || arms.iter().flat_map(|arm| &arm.0).map(|(setting, _)| setting);
    let is_changed = |end: &EndName| {
        settings().any(|setting| {
            setting.end == *end || goodput_settings::find_for(setting).is_ok_and(|s| s.is_plan())
        })
    };
    [EndName::Near, EndName::Far].into_iter().filter(is_changed).collect()
}

/// The busier of these hosts; a clock that saw no CPU time is too coarse.
fn host_cpu_percent(record: &Record, ends: &[EndName], watched: &[Watched]) -> Option<f64> {
    let of = |end: &EndName| {
        let by_ssh = watched.iter().find(|host| host.end == *end);
        let result = match end {
            EndName::Near => &record.result.near,
            EndName::Far => &record.result.far,
        };
        by_ssh.map_or(&result.host_cpu_percent, |host| &host.counted.cpu_percent).value().copied()
    };
    ends.iter().filter_map(of).reduce(f64::max).filter(|percent| *percent > 0.0)
}

/// Goodput for each 100 % of CPU, bit/s.
fn per_cpu(goodput: BitRate, cpu_percent: f64) -> f64 {
    goodput.0 * 100.0 / cpu_percent
}

/// Interrupts of the ends whose kernels count them for the path's device; a virtual device has none.
fn interrupts_per_s(record: &Record, watched: &[Watched]) -> Option<f64> {
    let rate = |name: EndName, end: &Known<End>| {
        let by_ssh = watched.iter().find(|host| host.end == name);
        if let Some(rate) = by_ssh.and_then(|host| host.counted.interrupts_per_s.value()) {
            return Some(*rate);
        }
        let end = end.value()?;
        let seconds = end.samples.last()?.at_s;
        let interrupts = end.before.grown(&end.after, "interrupts.device").ok()?;
        (seconds > 0.0).then(|| interrupts as f64 / seconds)
    };
    let (near, far) = (&record.ends.near, &record.ends.far);
    let rates = [rate(EndName::Near, near), rate(EndName::Far, far)];
    rates.into_iter().flatten().reduce(|near, far| near + far)
}

/// Over TCP, the share of retransmitted bytes; over UDP, the share of lost datagrams. The worse direction.
fn loss_percent(record: &Record) -> Option<f64> {
    let each = record.result.directions.iter().map(|direction| match record.plan.transport {
        Transport::Udp => direction.lost_percent.value().copied(),
        _ => {
            let again = *direction.retransmitted_bytes.value()? as f64;
            let sent = *direction.sent_bytes.value()? as f64;
            (sent > 0.0).then(|| 100.0 * again / sent)
        }
    });
    each.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// Drops that the steps of the path counted, in all directions, and those of the far host if goodput there did not.
fn drops_per_gb(record: &Record, watched: &[Watched]) -> Option<f64> {
    let directions = &record.result.directions;
    let received: u64 =
        directions.iter().map(|d| d.received_bytes.value().copied()).sum::<Option<u64>>()?;
    let steps = directions.iter().flat_map(|direction| &direction.path_steps);
    let counted = steps.filter(|step| step.unit != StepUnit::Bytes);
    let of_steps = counted.filter_map(|step| step.dropped.value().copied());
    let unseen = |host: &&Watched| host.end == EndName::Far && record.ends.far.value().is_none();
    let of_hosts = watched.iter().filter(unseen);
    let of_hosts = of_hosts.filter_map(|host| host.counted.dropped.value().copied());
    let drops = of_steps.chain(of_hosts).reduce(|a, b| a + b)?;
    (received > 0).then(|| drops as f64 * 1e9 / received as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(settings: &[&str]) -> Vec<EndName> {
        let arm = settings.iter().map(|name| (name.parse().unwrap(), String::new())).collect();
        changed_ends(&[Arm(arm)])
    }

    #[test]
    fn a_host_is_changed_by_its_own_settings_and_by_those_of_the_measurement() {
        assert_eq!(changed(&["far:polling@em0"]), [EndName::Far]);
        assert_eq!(changed(&["offload.tso@eth0"]), [EndName::Near]);
        assert_eq!(changed(&["mover"]), [EndName::Near, EndName::Far]);
    }

    /// The figures of the how-to on FreeBSD's polling: 8.87 Mbit/s at 34 % of the CPU by polling, 6.28 Mbit/s at 73 %
    /// by interrupts. Goodput alone would show a factor of 1.4.
    #[test]
    fn polling_gave_three_times_as_much_for_the_same_cpu() {
        let polling = per_cpu(BitRate(8.87e6), 34.0);
        let interrupts = per_cpu(BitRate(6.28e6), 73.0);
        assert!((polling - 26.09e6).abs() < 0.01e6 && (interrupts - 8.60e6).abs() < 0.01e6);
        assert!((polling / interrupts - 3.03).abs() < 0.01, "{}", polling / interrupts);
    }
}
