//! What bounds the rates of one end beside its plan.

use std::sync::Arc;

use goodput_model::{BitRate, RateLimit, Role};
use goodput_mover::SharedRate;

/// The rates that this end keeps to whatever the plan says; the usual one has none.
#[derive(Clone, Default)]
pub struct Cap {
    /// What one flow sends at most, which makes it even.
    pub rate: Option<BitRate>,
    /// What all flows share that send here. The first is `rate`, if there is one.
    pub sent: Vec<SharedLimit>,
    /// What all flows share that receive here.
    pub received: Vec<SharedLimit>,
}

/// A rate that flows share.
#[derive(Debug, Clone)]
pub struct SharedLimit {
    /// The rate.
    pub rate: Arc<SharedRate>,
    /// Whose it is.
    pub limit: RateLimit,
}

impl Cap {
    /// What flows share in which this end has `role`.
    pub fn shared(&self, role: Role) -> &[SharedLimit] {
        match role {
            Role::Sender => &self.sent,
            Role::Receiver => &self.received,
        }
    }
}
