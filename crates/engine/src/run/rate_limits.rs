//! Limits on the rates of one end in addition to its plan.

use std::sync::Arc;

use goodput_model::{BitRate, RateLimit, Role};
use goodput_mover::SharedRate;

/// The rates that this end keeps to whatever the plan says; usually none.
#[derive(Clone, Default)]
pub struct RateLimits {
    /// Highest rate of one flow, which makes it even.
    pub rate: Option<BitRate>,
    /// Limits that all sending flows here share. The first is `rate`, if there is one.
    pub sent: Vec<SharedLimit>,
    /// Limits that all receiving flows here share.
    pub received: Vec<SharedLimit>,
}

/// A rate that flows share.
#[derive(Debug, Clone)]
pub struct SharedLimit {
    /// The rate.
    pub rate: Arc<SharedRate>,
    /// Whose rate it is.
    pub limit: RateLimit,
}

impl RateLimits {
    /// The limits shared by the flows in which this end has `role`.
    pub fn shared(&self, role: Role) -> &[SharedLimit] {
        match role {
            Role::Sender => &self.sent,
            Role::Receiver => &self.received,
        }
    }
}
