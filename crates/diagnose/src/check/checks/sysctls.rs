//! Kernel settings with one right value for throughput.

use goodput_model::Confidence;

use super::super::{Answer, Ask, Check, HostView, Scope};

/// A setting that is wrong if `is_wrong` says so.
struct Sysctl {
    name: &'static str,
    is_wrong: fn(&str) -> bool,
    right: &'static str,
    effect: &'static str,
}

pub(super) const WINDOW_SCALING: Check = Check {
    id: "window-scaling-off",
    title: "windows above 64 KiB switched off",
    scope: Scope::Host,
    ask: &Sysctl {
        name: "net.ipv4.tcp_window_scaling",
        is_wrong: |value| value == "0",
        right: "1",
        effect: "no window exceeds 64 KiB: 5 Mbit/s at a round trip of 100 ms (RFC 7323)",
    },
};

pub(super) const SACK: Check = Check {
    id: "sack-off",
    title: "selective acknowledgements switched off",
    scope: Scope::Host,
    ask: &Sysctl {
        name: "net.ipv4.tcp_sack",
        is_wrong: |value| value == "0",
        right: "1",
        effect: "several losses in one window take a round trip each to repair (RFC 2018)",
    },
};

pub(super) const AUTOTUNING: Check = Check {
    id: "autotuning-off",
    title: "receive buffers without autotuning",
    scope: Scope::Host,
    ask: &Sysctl {
        name: "net.ipv4.tcp_moderate_rcvbuf",
        is_wrong: |value| value == "0",
        right: "1",
        effect: "receive buffers stay at their default size, whatever the path needs",
    },
};

/// Unsent data below which a writer's late wake-up leaves the socket empty, bytes.
const MIN_UNSENT_BYTES: u64 = 16_384;

pub(super) const NOTSENT_LOWAT: Check = Check {
    id: "notsent-lowat",
    title: "too little unsent data allowed in a socket",
    scope: Scope::Host,
    ask: &Sysctl {
        name: "net.ipv4.tcp_notsent_lowat",
        is_wrong: |value| value.parse::<u64>().is_ok_and(|bytes| bytes < MIN_UNSENT_BYTES),
        right: "4294967295",
        effect: "a writer is woken so late that its socket runs empty",
    },
};

impl Ask for Sysctl {
    fn ask(&self, check: &Check, host: &HostView) -> Answer {
        let fact = format!("sysctl.{}", self.name);
        let value = host.text(&fact)?;
        if !(self.is_wrong)(value) {
            return Ok(None);
        }
        let text = format!("{} = {value}: {}", self.name, self.effect);
        check
            .draft(Confidence::Likely, &fact, value.parse().unwrap_or(f64::NAN), &text)
            .changes([host.sysctl(self.name, value, self.right, check.title)])
            .found()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn only_the_wrong_value_is_found() {
        let of = |value: &str| {
            let mut facts = Snapshot::default();
            facts.put("sysctl.net.ipv4.tcp_sack", value);
            SACK.check(&HostView { device: None, now: &facts, before: None }).unwrap()
        };
        assert_eq!(of("0").unwrap().changes[0].to, "1");
        assert_eq!(of("1"), None);
    }
}
