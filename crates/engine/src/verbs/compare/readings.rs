//! The responses of a run that are not in its trial already.

use std::collections::BTreeMap;

use goodput_model::{Record, Response, StepUnit, Transport};

/// Interrupts, loss and drops, those of them that the record has.
pub fn readings(record: &Record) -> BTreeMap<Response, f64> {
    let all = [
        (Response::Interrupts, interrupts_per_s(record)),
        (Response::Loss, loss_percent(record)),
        (Response::Drops, drops_per_gb(record)),
    ];
    all.into_iter().filter_map(|(response, reading)| Some((response, reading?))).collect()
}

/// Of the ends whose kernels count them for the path's device: a virtual one has none.
fn interrupts_per_s(record: &Record) -> Option<f64> {
    let ends = [&record.ends.near, &record.ends.far].into_iter().filter_map(|end| end.value());
    let rates = ends.filter_map(|end| {
        let seconds = end.samples.last()?.at_s;
        let interrupts = end.before.grown(&end.after, "interrupts.device").ok()?;
        (seconds > 0.0).then(|| interrupts as f64 / seconds)
    });
    rates.reduce(|near, far| near + far)
}

/// Over TCP the bytes sent again, of all sent; over UDP the datagrams that did not come. The worse direction.
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

/// What the steps of the way counted as dropped, of all directions.
fn drops_per_gb(record: &Record) -> Option<f64> {
    let directions = &record.result.directions;
    let received: u64 =
        directions.iter().map(|d| d.received_bytes.value().copied()).sum::<Option<u64>>()?;
    let steps = directions.iter().flat_map(|direction| &direction.way);
    let counted = steps.filter(|step| step.unit != StepUnit::Bytes);
    let drops = counted.filter_map(|step| step.dropped.value().copied()).reduce(|a, b| a + b)?;
    (received > 0).then(|| drops as f64 * 1e9 / received as f64)
}
