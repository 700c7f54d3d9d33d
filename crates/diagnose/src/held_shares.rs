//! How much of the time the causes that the rules name held.

use goodput_model::{Account, EndName, Transport, Verdict};

use crate::account::{account, share_of};
use crate::rule::Stage;
use crate::rules;
use crate::thresholds::MIN_HELD_SHARE;
use crate::view::View;

/// What an account says of the rules. A datagram that gets lost takes no time, so of datagrams it says too little.
#[derive(Debug, Clone, Copy)]
pub struct HeldShares<'a> {
    account: Option<&'a Account>,
    sender: EndName,
}

impl<'a> HeldShares<'a> {
    /// By the account of `view`.
    pub fn of(view: &'a View) -> Self {
        let account = account(view).ok().filter(|_| view.is_tcp());
        Self { account, sender: view.sender.name }
    }

    /// By the account in a verdict on a measurement with this transport.
    pub fn in_verdict(verdict: &'a Verdict, transport: Transport) -> Self {
        let account = verdict.account.value().filter(|_| transport == Transport::Tcp);
        Self { account, sender: verdict.sender }
    }

    /// Share of the time that the parts of a rule's cause held, if that is known.
    pub fn share(&self, rule: &str) -> Option<f64> {
        share_of(self.account?, self.sender, rules::find(rule)?.refines).ok()
    }

    /// Whether a rule's cause took no time worth a change. Without an account nobody knows.
    pub fn is_nothing(&self, rule: &str) -> bool {
        self.share(rule).is_some_and(|share| share < MIN_HELD_SHARE)
    }

    /// Whether a rule may name the limit: its cause took time, and it is about this measurement.
    pub fn may_limit(&self, rule: &str) -> bool {
        !is_aside(rule) && !self.is_nothing(rule)
    }
}

/// Whether a rule is worth knowing, but never limits.
pub fn is_aside(rule: &str) -> bool {
    rules::find(rule).is_some_and(|rule| rule.stage == Stage::Aside)
}
