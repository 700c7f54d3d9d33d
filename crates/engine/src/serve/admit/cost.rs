//! The most that a measurement takes of this host, computed from its plan before anything is allocated.

use goodput_model::{
    Arrival, EndName, MAX_ARRIVALS, MAX_HEADS_BYTES, Plan, Role, SocketOptions, Source, Transport,
};
use goodput_mover::{Needs, most_needs};

use super::host::Buffers;
use super::usage::{Amounts, Resource};

/// What a flow takes besides its mover's memory and its socket buffers, bytes: a thread with the touched part of its
/// stack and the kernel's own 16 KiB of it (`THREAD_SIZE`, arch/x86/include/asm), a socket with its file, counters, and
/// the last sample of each.
const FLOW_BYTES: u64 = 64 << 10;
/// What a measurement takes besides its flows, bytes: snapshots of both ends, samples that wait to be sent, and the
/// buffers of its echoes.
const MEASUREMENT_BYTES: u64 = (1 << 20) + ECHO_SOCKETS * 2 * ECHO_BUFFER_BYTES as u64;
/// Descriptors of a measurement besides its flows: its signals, a listener of its own, the files of /proc that are read
/// while it runs, the sockets of its echoes.
const MEASUREMENT_DESCRIPTORS: u64 = 16 + ECHO_SOCKETS;
/// Sockets for a measurement's echoes: the client times the path before payload moves from one port, meanwhile from
/// another, and asks for the clock from a third.
pub const ECHO_SOCKETS: u64 = 3;
/// Receive buffer to request for each of these sockets, bytes: one second of echoes at the highest rate. The kernel
/// charges each with less than a kilobyte, and doubles the buffer (socket(7)).
pub const ECHO_BUFFER_BYTES: usize = 64 << 10;
/// Threads of a measurement besides its flows: one that samples, and one that waits for the disk.
const MEASUREMENT_THREADS: u64 = 2;

/// What a capture takes, bytes: its ring of 8 MiB, the heads, their parts, and the messages that wait to be sent.
const CAPTURE_BYTES: u64 = (8 << 20) + 3 * MAX_HEADS_BYTES as u64;

/// Most that a conversation without flows keeps, bytes: a received message of iperf 2's bounceback and the early part
/// of the next one, the answers that wait to be sent, 1 MiB each, and space for both to grow.
const CONVERSATION_BYTES: u64 = 6 << 20;

/// What a conversation that is itself a measurement takes besides its connection.
pub fn conversation() -> Amounts {
    Amounts::default().with(Resource::Measurements, 1).with(Resource::Memory, CONVERSATION_BYTES)
}

/// What the server's end of `plan` takes. Fails if it names no mover of ours.
pub fn of(plan: &Plan, buffers: &Buffers) -> Result<Amounts, String> {
    let mut total = Needs::default();
    let (mut kernel_bytes, mut flows) = (0_u64, 0);
    for sender in plan.direction.senders() {
        let role = if *sender == EndName::Far { Role::Sender } else { Role::Receiver };
        let each = most_needs(plan, role).map_err(|why| why.to_string())?;
        let count = u64::from(plan.flows);
        flows += count;
        // Kept during the run, handed on and packed into a report.
        let arrivals = match plan.arrivals && role == Role::Receiver {
            true => 4 * (MAX_ARRIVALS * size_of::<Arrival>()) as u64,
            false => 0,
        };
        let touched = each.memory_bytes.saturating_add(arrivals).saturating_add(each.locked_bytes);
        let touched = touched.saturating_add(each.pipe_bytes).saturating_mul(count);
        total.memory_bytes = total.memory_bytes.saturating_add(touched);
        total.descriptors += each.descriptors.saturating_mul(count);
        let buffer = socket_bytes(plan.transport, role, &plan.socket, buffers);
        kernel_bytes = kernel_bytes.saturating_add(buffer.saturating_mul(count));
    }
    // The kernel gives nobody more than this.
    kernel_bytes = kernel_bytes.min(buffers.together(plan.transport));
    let source = match plan.storage.source {
        Some(Source::Memory(bytes)) if plan.direction.senders().contains(&EndName::Far) => bytes.0,
        _ => 0,
    };
    let captures = u64::from(plan.far_capture);
    let own_bytes = flows * FLOW_BYTES + MEASUREMENT_BYTES + captures * CAPTURE_BYTES;
    let memory = [own_bytes, total.memory_bytes, kernel_bytes, source];
    Ok(Amounts::default()
        .with(Resource::Measurements, 1)
        .with(Resource::Descriptors, flows + total.descriptors + MEASUREMENT_DESCRIPTORS + captures)
        .with(Resource::Threads, flows + MEASUREMENT_THREADS + captures)
        .with(Resource::Memory, memory.into_iter().fold(0, u64::saturating_add)))
}

/// What the kernel may keep for one socket. A requested buffer is doubled by the kernel and not taken back (socket(7)).
/// TCP's own buffers count only with their initial size: the kernel bounds their growth for all sockets together and
/// stops it under pressure (`tcp_mem`, tcp(7)). That memory is set aside once for all sockets
/// ([`super::host::Host::lent_bytes`]).
fn socket_bytes(
    transport: Transport,
    role: Role,
    options: &SocketOptions,
    buffers: &Buffers,
) -> u64 {
    let (asked, own) = match (role, transport) {
        (Role::Receiver, Transport::Tcp) => (options.rcvbuf_bytes, buffers.tcp_receive),
        (Role::Sender, Transport::Tcp) => (options.sndbuf_bytes, buffers.tcp_send),
        (Role::Receiver, Transport::Udp) => (options.rcvbuf_bytes, buffers.udp_receive),
        (Role::Sender, Transport::Udp) => (options.sndbuf_bytes, buffers.udp_send),
    };
    asked.map_or(own, |asked| asked.0.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Direction, Sink};

    fn memory(change: impl FnOnce(&mut Plan)) -> u64 {
        let mut plan = Plan::standard();
        change(&mut plan);
        of(&plan, &Buffers::usual(4 << 30)).unwrap().of(Resource::Memory)
    }

    #[test]
    fn a_chunk_that_the_flows_share_is_not_counted_for_each() {
        let flows = |flows| memory(|plan| plan.flows = flows);
        let each = (flows(101) - flows(1)) / 100;
        assert!(each < 256 << 10, "{each}");
        let large = |plan: &mut Plan| (plan.flows, plan.chunk_bytes) = (128, Bytes(16 << 20));
        let shared = memory(large);
        assert!(shared < 128 << 20, "whatever its size: {shared}");
        let stored = memory(|plan| {
            large(plan);
            plan.storage.sink = Some(Sink { name: "x".into(), direct: false, fsync: false });
        });
        assert!(stored > 128 * (16 << 20), "each has one of its own: {stored}");
    }

    #[test]
    fn a_buffer_that_was_asked_for_counts_twice_and_no_more_than_the_kernel_gives() {
        let buffer = |bytes| memory(|plan| plan.socket.rcvbuf_bytes = Some(Bytes(bytes)));
        assert_eq!(buffer(8 << 20) - buffer(4 << 20), 8 << 20);
        assert_eq!(buffer(1 << 40), buffer(1 << 50));
    }

    #[test]
    fn both_directions_count() {
        let takes = |direction| {
            let plan = Plan { direction, flows: 4, ..Plan::standard() };
            of(&plan, &Buffers::usual(4 << 30)).unwrap()
        };
        let (one, both) = (takes(Direction::Send), takes(Direction::Both));
        assert_eq!(one.of(Resource::Threads) + 4, both.of(Resource::Threads));
        assert_eq!(one.of(Resource::Descriptors) + 4, both.of(Resource::Descriptors));
    }

    #[test]
    fn what_no_mover_is_called_is_refused() {
        let plan = Plan { mover: "teleport".into(), ..Plan::standard() };
        assert!(of(&plan, &Buffers::usual(4 << 30)).is_err());
    }
}
