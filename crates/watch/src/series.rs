//! Which tests can be compared: a series is a target, and what of the path a test uses.
//!
//! How large a test is, how it is sent and how it is watched may change within a series. Then the goodput may change as
//! well, and `since` names the option that did.

use goodput_model::{BitRate, Direction, Family, Plan, Storage, Transport};
use serde::Serialize;
use std::net::IpAddr;

/// What all tests of a series have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    transport: Transport,
    direction: Direction,
    flows: u16,
    /// The rate that the user asks for: a slower test shows another limit.
    rate_bits_per_s: Option<BitRate>,
    storage: Storage,
    fetches: Option<u32>,
    /// The far end sends to this address, not back to the near end.
    towards: Option<IpAddr>,
    family: Option<Family>,
    /// The near end's address and device, which choose the route.
    bind: Option<IpAddr>,
    device: Option<String>,
    mptcp: bool,
    /// The class of the packets, which a path may treat differently.
    dscp: Option<u8>,
}

impl From<&Plan> for Series {
    fn from(plan: &Plan) -> Self {
        let socket = &plan.socket;
        Self {
            transport: plan.transport,
            direction: plan.direction,
            flows: plan.flows,
            rate_bits_per_s: plan.rate_bits_per_s,
            storage: plan.storage.clone(),
            fetches: plan.fetches,
            towards: plan.towards,
            family: socket.family,
            bind: socket.bind,
            device: socket.device.clone(),
            mptcp: socket.mptcp,
            dscp: socket.dscp,
        }
    }
}
