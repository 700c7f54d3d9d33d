//! Payload that was copied although it should have moved without a copy.

use goodput_model::{EndName, FlowSample, Role};

use crate::result::measurement::Measurement;

/// Share of a flow's sends or bytes that may be copied without a doubt, percent: the ends of a stream
/// seldom fill a page.
const USUAL_COPIED_PERCENT: f64 = 1.0;

/// What `end` copied.
pub fn made(measurement: &Measurement, end: EndName) -> Vec<String> {
    let samples = measurement.end(end).map_or(&[][..], |end| &end.samples);
    let last = samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let flows = last.map_or(&[][..], |sample| &sample.flows);
    [sent(flows, end), received(flows, end)].into_iter().flatten().collect()
}

fn sent(flows: &[FlowSample], end: EndName) -> Option<String> {
    let of_senders = flows.iter().filter(|flow| flow.role == Role::Sender);
    let counts = of_senders.filter_map(|f| Some((f.copied_sends?, *f.calls.value()?)));
    let percent = share_percent(counts).filter(|percent| *percent > USUAL_COPIED_PERCENT)?;
    Some(format!(
        "the {end} end's kernel copied {percent:.0} % of the zero-copy sends, as it does if the path stays on one host or the device can't gather; the mover copy would have cost less"
    ))
}

fn received(flows: &[FlowSample], end: EndName) -> Option<String> {
    let of_receivers = flows.iter().filter(|flow| flow.role == Role::Receiver);
    let counts =
        of_receivers.filter_map(|f| Some((f.bytes.checked_sub(f.mapped_bytes?)?, f.bytes)));
    let percent = share_percent(counts).filter(|percent| *percent > USUAL_COPIED_PERCENT)?;
    Some(format!(
        "the {end} end mapped {:.0} % of the received data and copied the rest: only whole pages can be mapped, which \
         needs a card that splits headers from payload, and segments of a multiple of 4096 bytes (--mss 4108 if the MTU \
         allows it)",
        100.0 - percent
    ))
}

/// The sum of the first numbers, as a percentage of the sum of the second.
fn share_percent(counts: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (part, all) = counts.fold((0, 0), |(part, all), (p, a)| (part + p, all + a));
    (all > 0).then(|| part as f64 / all as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::flow;
    use super::*;
    use goodput_model::Known;

    fn sender(calls: u64, copied_sends: Option<u64>) -> FlowSample {
        FlowSample { calls: Known::Value(calls), copied_sends, ..flow(0) }
    }

    fn receiver(bytes: u64, mapped_bytes: Option<u64>) -> FlowSample {
        FlowSample { role: Role::Receiver, bytes, mapped_bytes, ..flow(0) }
    }

    #[test]
    fn what_the_kernel_copied_anyway_is_reported_with_its_share() {
        let words = sent(&[sender(100, Some(100)), sender(100, Some(20))], EndName::Near).unwrap();
        assert!(
            words.contains("the near end's kernel copied 60 % of the zero-copy sends"),
            "{words}"
        );
        assert_eq!(sent(&[sender(1000, Some(1)), sender(9, None)], EndName::Near), None);
    }

    #[test]
    fn what_could_not_be_mapped_is_reported_with_what_it_takes() {
        let words = received(&[receiver(8192, Some(4096))], EndName::Far).unwrap();
        assert!(words.starts_with("the far end mapped 50 % of the received data"), "{words}");
        let quiet = [receiver(4096, Some(4096)), receiver(9, None), sender(1, None)];
        assert_eq!(received(&quiet, EndName::Far), None);
        assert_eq!(received(&[receiver(0, Some(0))], EndName::Far), None);
    }
}
