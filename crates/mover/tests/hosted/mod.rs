//! The movers that this machine can host tests of.

use goodput_model::{Bytes, Plan, Transport};
use goodput_mover::{ALL, Mover};
use goodput_netlink::namespace;

/// Every mover, except those that need a network namespace or a kernel that can't be had: these are skipped.
pub fn movers() -> Vec<&'static dyn Mover> {
    ALL.iter().copied().filter(|mover| mover.id() != "xdp" || can_send_frames(*mover)).collect()
}

/// Whether frames can be sent between two namespaces here.
pub fn can_send_frames(mover: &dyn Mover) -> bool {
    let plan = Plan { transport: Transport::Udp, chunk_bytes: Bytes(1400), ..Plan::standard() };
    if let Err(why) = mover.can_run(&plan) {
        goodput_testing::skip(&why.needs);
        return false;
    }
    if namespace::create().is_err() {
        goodput_testing::skip("root for a network namespace");
        return false;
    }
    true
}
