//! Datagrams that a firewall of this host drops (`EPERM`; `nf_hook_slow`, net/netfilter/core.c).
//!
//! A rule that limits a rate lets some pass: its drops are losses, as if another host had dropped them. A rule that forbids the
//! packets lets none pass.

/// How long a rule may let nothing pass before it forbids the packets, nanoseconds: the packets before may have taken all that a
/// limit lets through at first.
const FORBIDDEN_AFTER_NS: u64 = 1_000_000_000;

/// What a firewall has dropped.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    since_ns: Option<u64>,
}

impl Refusals {
    /// Whether a refusal at this time is a loss, after `passed` datagrams have left.
    pub(super) fn is_loss(&mut self, passed: u64, now_ns: u64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        passed > 0 || now_ns.saturating_sub(since_ns) < FORBIDDEN_AFTER_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_lets_some_pass_limits_and_one_that_lets_none_forbids() {
        let mut refusals = Refusals::default();
        assert!(refusals.is_loss(0, 5) && refusals.is_loss(0, 900_000_005));
        assert!(!refusals.is_loss(0, 1_000_000_005), "nothing has passed for a second");
        assert!(refusals.is_loss(1, 9_000_000_000));
    }
}
