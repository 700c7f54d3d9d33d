//! The thread of one direction: reads one device, holds each packet as long as the shape requires, and writes it to the
//! other device.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use super::counters::Tally;
use super::ecn;
use super::flight::{Flight, Packet};
use super::priority;
use super::shape::{Fate, Shaper};
use super::tun::Tun;
use super::vnet;

/// Packets read before those that became due meanwhile are sent on.
const BATCH_PACKETS: usize = 64;

/// Memory that packets in flight may take in one direction: 2.7 s at 1 Gbit/s.
const FLIGHT_BYTES: usize = 320 << 20;

/// One direction of a relay.
pub(super) struct Pump {
    pub(super) from: Arc<Tun>,
    pub(super) to: Arc<Tun>,
    pub(super) stop: Arc<OwnedFd>,
    pub(super) shaper: Shaper,
    pub(super) tally: Arc<Tally>,
    pub(super) buffer_bytes: usize,
}

impl Pump {
    /// Works until `stop` becomes readable or the device is gone.
    pub(super) fn run(mut self) {
        priority::go_first();
        let most = FLIGHT_BYTES / self.buffer_bytes;
        let mut flight = Flight::new(self.buffer_bytes, most);
        loop {
            let Ok(more) = self.take_in(&mut flight) else { return };
            self.send_on(&mut flight);
            if !more && self.sleep(flight.next_due()) {
                return;
            }
        }
    }

    /// Reads the available packets, up to a batch; true if there may be more. An error means that the device is gone.
    fn take_in(&mut self, flight: &mut Flight) -> io::Result<bool> {
        for _ in 0..BATCH_PACKETS {
            let Some(mut buffer) = flight.buffer() else { return self.discard() };
            let read = self.from.read(&mut buffer);
            let Ok(Some(len)) = read else {
                flight.give_back(buffer);
                return read.map(|_| false);
            };
            self.admit(flight, buffer, len);
        }
        Ok(true)
    }

    /// If every buffer is in flight, the next packet is read and dropped, as a full queue would do.
    fn discard(&self) -> io::Result<bool> {
        let read = self.from.read(&mut [0; vnet::HEADER_BYTES])?;
        if read.is_some() {
            self.tally.queue_dropped();
        }
        Ok(false)
    }

    fn admit(&mut self, flight: &mut Flight, mut buffer: Box<[u8]>, len: usize) {
        let wire_bytes = vnet::wire_bytes(&buffer[..len]);
        let fate = self.shaper.admit(now(), wire_bytes);
        let arrives = !matches!(fate, Fate::QueueFull | Fate::Lost);
        if arrives && self.shaper.marks() && ecn::mark(&mut buffer[vnet::HEADER_BYTES..len]) {
            self.tally.marked();
        }
        match fate {
            Fate::At(due) => flight.send_in_order(Packet { due, len, buffer }),
            Fate::Overtaking(due) => flight.send_ahead(Packet { due, len, buffer }),
            Fate::HeldBack(due) => flight.send_behind(Packet { due, len, buffer }),
            Fate::QueueFull => {
                self.tally.queue_dropped();
                flight.give_back(buffer);
            }
            Fate::Lost => {
                self.tally.lost();
                flight.give_back(buffer);
            }
        }
    }

    fn send_on(&self, flight: &mut Flight) {
        let mut time = now();
        while let Some(packet) = flight.take_due(time) {
            if self.to.write(&packet.buffer[..packet.len]) {
                self.tally.forwarded(time - packet.due);
            } else {
                self.tally.refused();
            }
            flight.give_back(packet.buffer);
            time = now();
        }
    }

    /// Waits for a packet or until `due`; true when it is time to stop.
    fn sleep(&self, due: Option<u64>) -> bool {
        let wait = due.map(|due| nanoseconds(due.saturating_sub(now())));
        let from = self.from.as_fd();
        let mut waited = [
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(from, PollFlags::IN),
        ];
        match poll(&mut waited, wait.as_ref()) {
            Ok(_) => waited[0].revents().contains(PollFlags::IN),
            Err(errno) => errno != rustix::io::Errno::INTR,
        }
    }
}

fn nanoseconds(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
