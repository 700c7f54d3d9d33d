//! Packets in flight: a pool of buffers and the order in which packets are due.

use std::collections::VecDeque;

/// One packet with its due time, nanoseconds.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) due: u64,
    pub(super) len: usize,
    pub(super) buffer: Box<[u8]>,
}

/// Everything between reading and writing in one direction. Each queue is in order of due time
/// by construction, so the next packet is the earliest of the heads.
#[derive(Debug)]
pub(super) struct Flight {
    in_order: VecDeque<Packet>,
    overtaking: VecDeque<Packet>,
    held_back: VecDeque<Packet>,
    spare: Vec<Box<[u8]>>,
    buffer_bytes: usize,
    most_buffers: usize,
    buffers: usize,
}

impl Flight {
    /// Room for at most `most_buffers` packets of at most `buffer_bytes`. Memory is allocated as needed.
    pub(super) fn new(buffer_bytes: usize, most_buffers: usize) -> Self {
        Self {
            in_order: VecDeque::new(),
            overtaking: VecDeque::new(),
            held_back: VecDeque::new(),
            spare: Vec::new(),
            buffer_bytes,
            most_buffers,
            buffers: 0,
        }
    }

    /// An unused buffer, the last used one first, because it is still in the cache; `None` if all are in flight.
    pub(super) fn buffer(&mut self) -> Option<Box<[u8]>> {
        self.spare.pop().or_else(|| {
            (self.buffers < self.most_buffers).then(|| {
                self.buffers += 1;
                vec![0; self.buffer_bytes].into_boxed_slice()
            })
        })
    }

    /// Takes a buffer back.
    pub(super) fn give_back(&mut self, buffer: Box<[u8]>) {
        self.spare.push(buffer);
    }

    pub(super) fn send_in_order(&mut self, packet: Packet) {
        self.in_order.push_back(packet);
    }

    pub(super) fn send_ahead(&mut self, packet: Packet) {
        self.overtaking.push_back(packet);
    }

    pub(super) fn send_behind(&mut self, packet: Packet) {
        self.held_back.push_back(packet);
    }

    /// When the next packet is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        let heads = [self.in_order.front(), self.overtaking.front(), self.held_back.front()];
        heads.into_iter().flatten().map(|packet| packet.due).min()
    }

    /// The next packet, if it is due at `now`.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Packet> {
        let due = self.next_due().filter(|due| *due <= now)?;
        let queues = [&mut self.overtaking, &mut self.in_order, &mut self.held_back];
        let is_due = |queue: &VecDeque<Packet>| queue.front().is_some_and(|head| head.due == due);
        queues.into_iter().find(|queue| is_due(queue))?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(due: u64, mark: usize) -> Packet {
        Packet { due, len: mark, buffer: Box::default() }
    }

    #[test]
    fn packets_leave_when_due_and_overtakers_first() {
        let mut flight = Flight::new(8, 8);
        flight.send_in_order(packet(50, 1));
        flight.send_in_order(packet(60, 2));
        flight.send_ahead(packet(50, 3));
        flight.send_behind(packet(55, 4));
        assert!(flight.take_due(49).is_none());
        let order: Vec<_> = std::iter::from_fn(|| flight.take_due(60)).map(|p| p.len).collect();
        assert_eq!(order, [3, 1, 4, 2]);
    }

    #[test]
    fn buffers_are_reused_and_bounded() {
        let mut flight = Flight::new(8, 2);
        let first = flight.buffer().unwrap();
        let _second = flight.buffer().unwrap();
        assert!(flight.buffer().is_none());
        flight.give_back(first);
        assert!(flight.buffer().is_some());
    }
}
