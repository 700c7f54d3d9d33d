//! The largest windows that this host allows, compared with its fastest link.

use goodput_model::{Confidence, Missing};

use super::super::{Answer, Ask, Check, HostView, Scope};
use crate::finding::{bytes, rate};
use crate::names::{LINK_SPEED, TCP_RMEM, TCP_WMEM};
use crate::view::positive;

/// A round trip across a continent, seconds: a host on the Internet should be able to fill it.
const FAR_ROUND_TRIP_S: f64 = 0.05;

/// Speed assumed for a device without its own speed, bits per second: slow for any host today.
const ASSUMED_SPEED_BITS_PER_S: f64 = 1e8;

/// One of the two triples of buffer sizes.
struct Buffer {
    name: &'static str,
    /// Payload that fits into each byte of it: the receiver's bookkeeping takes half.
    payload: f64,
    what: &'static str,
}

pub(super) const RECEIVE_WINDOW: Check = Check {
    id: "receive-window",
    title: "receive buffers too small for this link on a long path",
    scope: Scope::Device,
    ask: &Buffer { name: TCP_RMEM, payload: 0.5, what: "receive" },
};

pub(super) const SEND_BUFFER: Check = Check {
    id: "send-buffer",
    title: "send buffers too small for this link on a long path",
    scope: Scope::Device,
    ask: &Buffer { name: TCP_WMEM, payload: 1.0, what: "send" },
};

impl Ask for Buffer {
    fn ask(&self, check: &Check, host: &HostView) -> Answer {
        let known = host.count(LINK_SPEED).and_then(|speed| positive(speed, "the link's speed"));
        let speed = match known {
            Err(why) if host.is_hardware() => return Err(why),
            known => known.unwrap_or(ASSUMED_SPEED_BITS_PER_S),
        };
        let text = host.text(self.name)?;
        let words: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        let [least, usual, most] = words[..] else {
            let why = format!("{} is {text:?}, not three numbers", self.name);
            return Err(Missing::because(why));
        };
        let allowed = most * self.payload * 8.0 / FAR_ROUND_TRIP_S;
        if allowed >= speed {
            return Ok(None);
        }
        let summary = format!(
            "{} buffers of at most {} carry {} at a round trip of 50 ms; {}",
            self.what,
            bytes(most),
            rate(allowed),
            match host.count(LINK_SPEED) {
                Ok(_) => format!("the link has {}", rate(speed)),
                Err(_) => format!("{} is low for any link", rate(speed)),
            }
        );
        let needed = (speed / 8.0 * FAR_ROUND_TRIP_S / self.payload).min(f64::from(1 << 30)) as u64;
        let to = format!("{least} {usual} {}", needed.next_power_of_two());
        let name = self.name.trim_start_matches("sysctl.");
        let change = host.sysctl(name, text, &to, "one bandwidth-delay product of 50 ms");
        check.draft(Confidence::Possible, self.name, most, &summary).changes([change]).found()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn six_megabytes_are_too_few_for_ten_gigabits() {
        let mut facts = Snapshot::default();
        facts.put(LINK_SPEED, 10_000_000_000u64);
        facts.put(TCP_RMEM, "4096 131072 6291456");
        let found = |facts: &Snapshot| {
            let view = HostView { device: Some("eth0"), now: facts, before: None };
            RECEIVE_WINDOW.check(&view).unwrap()
        };
        let finding = found(&facts).unwrap();
        assert_eq!(finding.changes[0].to, "4096 131072 134217728");
        facts.put(LINK_SPEED, 100_000_000u64);
        assert_eq!(found(&facts), None);
    }

    #[test]
    fn a_device_without_a_speed_is_held_against_a_slow_link() {
        let found = |buffers: &str| {
            let mut facts = Snapshot::default();
            facts.put(crate::names::LINK_KIND, "veth");
            facts.put(TCP_WMEM, buffers);
            let view = HostView { device: Some("eth0"), now: &facts, before: None };
            SEND_BUFFER.check(&view).unwrap()
        };
        assert!(found("4096 16384 100000").unwrap().summary.contains("low for any link"));
        assert_eq!(found("4096 16384 4194304"), None);
    }
}
