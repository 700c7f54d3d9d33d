//! Half the window: socket buffers of half their size at both ends. A rate limited by a window or buffer
//! falls to half; one limited by a program stays.

use goodput_model::{Bytes, End, FlowSample, Missing, Record, Role, SocketMemory};

use super::{Pair, Probe, Reading, SetUp};

pub const PROBE: Probe = Probe {
    id: "half-window",
    title: "half the window",
    set_up,
    pairs: &[
        Pair {
            one: "receiver-application",
            other: "receive-window",
            read: Reading::Goodput { one_from: 0.85, other_to: 0.7 },
            why: "rate = window / round-trip time halves with the window; 0.7 allows for the kernel's bookkeeping",
        },
        Pair {
            one: "sender-application",
            other: "send-buffer",
            read: Reading::Goodput { one_from: 0.85, other_to: 0.7 },
            why: "rate = buffer / round-trip time halves with the buffer",
        },
        Pair {
            one: "path-rate",
            other: "receive-window",
            read: Reading::Goodput { one_from: 0.85, other_to: 0.7 },
            why: "a standing queue gets shorter first; the rate stays",
        },
        Pair {
            one: "path-rate",
            other: "send-buffer",
            read: Reading::Goodput { one_from: 0.85, other_to: 0.7 },
            why: "a standing queue gets shorter first; the rate stays",
        },
    ],
};

/// The kernel doubles the requested size (socket(7)): requesting a quarter of the size gives half of it.
const REQUEST_DIVISOR: u64 = 4;

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let ends = [record.ends.near.get(), record.ends.far.get()];
    let largest = |role: Role, size: fn(&SocketMemory) -> u64| {
        let ends = ends.iter().filter_map(|end| end.as_ref().ok());
        ends.filter_map(|end| last_of(end, role)).map(size).max()
    };
    let missing = || Missing::because("the size of the sockets' buffers is unknown");
    let rcvbuf = largest(Role::Receiver, |m| m.rcvbuf_bytes).ok_or_else(missing);
    let sndbuf = largest(Role::Sender, |m| m.sndbuf_bytes).ok_or_else(missing);
    if rcvbuf.is_err() && sndbuf.is_err() {
        return Err(missing());
    }
    Ok(SetUp::plan(record, |plan| {
        // Only the smaller of the two can be the limit; halving both keeps it the smaller one.
        plan.socket.rcvbuf_bytes = rcvbuf.ok().map(|bytes| Bytes(bytes / REQUEST_DIVISOR));
        plan.socket.sndbuf_bytes = sndbuf.ok().map(|bytes| Bytes(bytes / REQUEST_DIVISOR));
    }))
}

fn last_of(end: &End, role: Role) -> Option<&SocketMemory> {
    let mut flows = end.samples.iter().rev().flat_map(|sample| &sample.flows);
    flows.find(|flow: &&FlowSample| flow.role == role)?.memory.value()
}
