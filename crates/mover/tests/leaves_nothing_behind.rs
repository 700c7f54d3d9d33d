//! No mover leaves a thread or a descriptor behind. A process of its own, and a single test in it,
//! as it counts those of the whole process.

mod common;
mod hosted;

use common::{Pair, patience};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("proc is mounted").count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc is mounted").count()
}

#[test]
fn threads_and_descriptors_are_gone_after_a_flow_however_it_ended() {
    let before = (threads(), descriptors());
    for mover in hosted::movers() {
        for transport in mover.transports() {
            let pair = Pair::start(mover, *transport, |config| config.limit_bytes = Some(100_000));
            pair.gate.open();
            ended_well(pair);

            let pair = Pair::start(mover, *transport, |_| {});
            pair.gate.open();
            patience(|| pair.receiver.counters().bytes() > 0);
            pair.finish();
            ended_well(pair);

            for role in mover.roles() {
                let (alone, peer) = Pair::start_alone(mover, *transport, *role, |_| {});
                alone.gate.open();
                alone.stop.abort();
                assert!(alone.flow.join().is_err());
                drop((alone.gate, alone.stop, peer));
            }
            // A joined thread may still be listed for an instant: the kernel wakes the joiner
            // before it removes the entry.
            patience(|| threads() == before.0);
            assert_eq!(descriptors(), before.1, "descriptors of {} are left", mover.id());
        }
    }
}

fn ended_well(pair: Pair) {
    let (sent, received) = pair.join();
    for end in [sent, received] {
        assert!(end.result.is_ok() && end.counters.bytes() > 0);
    }
}
