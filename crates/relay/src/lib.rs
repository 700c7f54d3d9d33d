//! An emulated link for kernels without netem: two TUN devices joined by one thread per direction, which delays,
//! limits, loses, marks and reorders packets.
//!
//! With segmentation on, super-packets cross whole. This is fast, but the super-packet is then the unit of queueing,
//! dropping and delivery; the rate still counts every segment with its headers.
//!
//! It is separate from `lab`, because every byte passes through it: only the relay is built for speed.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

mod counters;
mod ecn;
mod error;
mod flight;
mod priority;
mod pump;
mod random;
mod shape;
mod tun;
mod vnet;

pub use counters::{Counters, EXACT_BELOW_NS};
pub use error::RelayError;
pub use shape::Shape;
pub use tun::{CLONE_DEVICE, Tun};

use counters::Tally;
use pump::Pump;
use shape::Shaper;

/// Properties of a relay's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Devices {
    /// MTU of both, bytes.
    pub mtu: u32,
    /// Whether super-packets cross whole.
    pub segmentation: bool,
}

/// A running relay. Dropping it stops both threads and removes the devices.
#[derive(Debug)]
pub struct Relay {
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    tallies: [Arc<Tally>; 2],
}

impl Relay {
    /// Joins two devices: `forward` shapes packets from `near` to `far`, `back` the opposite direction.
    pub fn start(
        near: Tun,
        far: Tun,
        devices: Devices,
        forward: Shape,
        back: Shape,
    ) -> Result<Self, RelayError> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
        let (near, far) = (Arc::new(near), Arc::new(far));
        let mut relay =
            Self { stop: Arc::new(stop), threads: Vec::new(), tallies: Default::default() };
        relay.spawn("lab forward", &near, &far, devices, forward, 0)?;
        relay.spawn("lab back", &far, &near, devices, back, 1)?;
        Ok(relay)
    }

    fn spawn(
        &mut self,
        name: &str,
        from: &Arc<Tun>,
        to: &Arc<Tun>,
        devices: Devices,
        shape: Shape,
        direction: usize,
    ) -> Result<(), RelayError> {
        let pump = Pump {
            from: from.clone(),
            to: to.clone(),
            stop: self.stop.clone(),
            shaper: Shaper::new(shape),
            tally: self.tallies[direction].clone(),
            buffer_bytes: Tun::buffer_bytes(devices.mtu, devices.segmentation),
        };
        let thread = thread::Builder::new().name(name.into()).spawn(move || pump.run());
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }

    /// The counters so far: near to far, and far to near.
    pub fn counters(&self) -> [Counters; 2] {
        [self.tallies[0].read(), self.tallies[1].read()]
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An eventfd at zero accepts a one at once, so this can neither fail nor block.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // A panicked thread has already reported it on stderr.
            let _ = thread.join();
        }
    }
}

fn failed(source: io::Error) -> RelayError {
    RelayError { what: "start", object: "the relay of an emulated link", source }
}
