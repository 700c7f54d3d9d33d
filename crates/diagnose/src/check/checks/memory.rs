//! Memory and tables that are nearly full.

use goodput_model::Confidence;

use super::super::{Answer, Ask, Check, HostView, Scope};
use crate::finding::percent;
use crate::view::positive;

/// Share of a table in use at which it is nearly full.
const MIN_TABLE_USE_SHARE: f64 = 0.8;

/// Something with a limit on its use.
struct Room {
    used: &'static str,
    limit: &'static str,
    what: &'static str,
    advice: &'static str,
    permanent: &'static str,
}

pub(super) const TCP_MEMORY: Check = Check {
    id: "tcp-memory",
    title: "TCP memory nearly used up",
    scope: Scope::Host,
    ask: &Room {
        used: "sockstat.tcp_mem_pages",
        limit: "sockstat.tcp_mem_pressure_pages",
        what: "of the memory at which TCP stops growing its buffers is in use",
        advice: "raise net.ipv4.tcp_mem (three numbers, in pages), or find who holds the memory (ss -tm)",
        permanent: "net.ipv4.tcp_mem = LOW PRESSURE MAX",
    },
};

pub(super) const CONNTRACK: Check = Check {
    id: "conntrack",
    title: "the connection tracking table nearly full",
    scope: Scope::Host,
    ask: &Room {
        used: "conntrack.entries",
        limit: "conntrack.max",
        what: "of the connection tracking table is in use; once it is full, new connections are dropped",
        advice: "raise net.netfilter.nf_conntrack_max, or track less (nft … notrack)",
        permanent: "net.netfilter.nf_conntrack_max = 1048576",
    },
};

impl Ask for Room {
    fn ask(&self, check: &Check, host: &HostView) -> Answer {
        let share = host.count(self.used)? / positive(host.count(self.limit)?, self.limit)?;
        if share < MIN_TABLE_USE_SHARE {
            return Ok(None);
        }
        let text = format!("{} {}", percent(share), self.what);
        let confidence = if share >= 1.0 { Confidence::Likely } else { Confidence::Possible };
        check
            .draft(confidence, self.used, share * 100.0, &text)
            .advice(self.advice)
            .permanent("/etc/sysctl.d/90-goodput.conf", self.permanent)
            .found()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn nearly_full_is_possible_and_full_is_likely() {
        let of = |entries: u64| {
            let mut facts = Snapshot::default();
            facts.put("conntrack.entries", entries);
            facts.put("conntrack.max", 100u64);
            let view = HostView { device: None, now: &facts, before: None };
            CONNTRACK.check(&view).unwrap().map(|finding| finding.confidence)
        };
        assert_eq!(of(50), None);
        assert_eq!(of(90), Some(Confidence::Possible));
        assert_eq!(of(100), Some(Confidence::Likely));
    }
}
