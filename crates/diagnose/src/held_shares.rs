//! How much of the time the causes that the rules name held.

use goodput_model::{Account, EndName, Transport, Verdict};

use crate::account::{HeldShare, account, share_of};
use crate::rule::Depth;
use crate::rules;
use crate::view::View;

/// The rule of the limits that a plan keeps.
pub(crate) const KEPT_LIMIT: &str = "server-limit";

/// What an account says of the rules. A datagram that gets lost takes no time, so of datagrams it says too little.
#[derive(Debug, Clone, Copy)]
pub struct HeldShares<'a> {
    account: Option<&'a Account>,
    sender: EndName,
    /// An operator's limit was reached, to which the plan keeps: it held the rate, whatever the account has.
    keeps_limit: bool,
}

impl<'a> HeldShares<'a> {
    /// By the account of `view`.
    pub fn of(view: &'a View) -> Self {
        let account = account(view).ok().filter(|_| view.is_tcp());
        let keeps_limit = view.kept_limit().is_some();
        Self { account, sender: view.sender.name, keeps_limit }
    }

    /// By the account in a verdict on a measurement with this transport.
    pub fn in_verdict(verdict: &'a Verdict, transport: Transport) -> Self {
        let account = verdict.account.value().filter(|_| transport == Transport::Tcp);
        Self { account, sender: verdict.sender, keeps_limit: false }
    }

    /// Share of the time that the parts of a rule's cause held, 0 to 1, if that is known.
    pub fn share(&self, rule: &str) -> Option<f64> {
        self.held(rule).map(|held| held.share())
    }

    /// Whether a rule's cause took no time, or none worth a change. Without an account nobody knows.
    pub fn is_nothing(&self, rule: &str) -> bool {
        let is_limit = self.keeps_limit && rule == KEPT_LIMIT;
        !is_limit && self.held(rule).is_some_and(|held| held.is_nothing())
    }

    fn held(&self, rule: &str) -> Option<HeldShare> {
        share_of(self.account?, self.sender, rules::find(rule)?.refines).ok()
    }

    /// Whether a rule may name the limit: its cause took time, and it is about this measurement.
    pub fn may_limit(&self, rule: &str) -> bool {
        !is_aside(rule) && !self.is_nothing(rule)
    }
}

/// Whether a rule is worth knowing, but never limits.
pub fn is_aside(rule: &str) -> bool {
    rules::find(rule).is_some_and(|rule| rule.depth == Depth::Aside)
}
