//! What only the mover `zerocopy` does. A process of its own, and a single test in it, because it changes
//! a limit of the whole process.

mod common;

use std::sync::Arc;

use common::{Pair, patience};
use goodput_model::{Plan, Role, Transport};
use goodput_mover::{Mover, find};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

fn zerocopy() -> &'static dyn Mover {
    find("zerocopy").expect("it is in the list")
}

fn uring_zerocopy() -> &'static dyn Mover {
    find("uring-zerocopy").expect("it is in the list")
}

#[test]
fn copies_are_counted_and_a_limit_on_locked_memory_is_named() {
    every_copy_on_loopback_is_reported(zerocopy());
    if let Err(why) = uring_zerocopy().can_run(&Plan::standard()) {
        goodput_testing::skip(&why.needs);
    } else {
        every_copy_on_loopback_is_reported(uring_zerocopy());
    }
    std::thread::spawn(a_limit_too_low_is_named).join().expect("the test holds");
}

/// The kernel copies what comes back to this host (`skb_orphan_frags_rx`, net/core/dev.c).
fn every_copy_on_loopback_is_reported(mover: &'static dyn Mover) {
    let pair = Pair::start(mover, Transport::Tcp, |_| {});
    pair.gate.open();
    patience(|| pair.receiver.counters().bytes() > 10_000_000);
    pair.finish();
    let (sent, received) = pair.join();
    assert!(sent.result.is_ok() && received.result.is_ok());
    assert_eq!(sent.counters.copied_anyway(), Some(sent.counters.calls()));
    assert_eq!(received.counters.copied_anyway(), None);
}

/// On a thread of its own: privileges are a thread's, and inherited by those it starts.
fn a_limit_too_low_is_named() {
    let mut caps = capabilities(None).expect("own capabilities");
    caps.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, caps).expect("giving up a privilege needs none");
    let page = Some(4096);
    setrlimit(Resource::Memlock, Rlimit { current: page, maximum: page }).expect("lowered");
    let (alone, peer) = Pair::start_alone(zerocopy(), Transport::Tcp, Role::Sender, |_| {});
    alone.gate.open();
    let counters = Arc::clone(alone.flow.counters());
    let words = alone.flow.join().expect_err("no memory to lock").to_string();
    assert!(words.contains("locked memory, 4096 bytes for all flows"), "{words}");
    assert!(words.contains("(ulimit -l)"), "{words}");
    assert_eq!(counters.bytes(), 0);
    drop((alone.stop, peer));
}
