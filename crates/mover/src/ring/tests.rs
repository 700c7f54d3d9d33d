//! What happens to memory and requests if calls fail.

use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::{opcode, types};
use rustix::pipe::{PipeFlags, pipe_with};

use super::faults::{Fault, deafen, plant, plant_lasting};
use super::*;

/// Memory that records what happened to it.
struct Watched {
    bytes: Box<[u8; 16]>,
    seen: Rc<Seen>,
}

#[derive(Default)]
struct Seen {
    dropped: std::cell::Cell<bool>,
    leaked: std::cell::Cell<bool>,
}

impl Memory for Watched {
    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    fn leak(self) {
        self.seen.leaked.set(true);
        mem::forget(self);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.seen.dropped.set(true);
    }
}

/// A ring, a record of its memory's fate, and an empty pipe, from which a read waits.
fn waiting() -> (Ring<Watched>, Rc<Seen>, OwnedFd, OwnedFd) {
    let seen = Rc::<Seen>::default();
    let memory = Watched { bytes: Box::default(), seen: Rc::clone(&seen) };
    let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (Ring::with(4, memory).unwrap(), seen, out, into)
}

#[expect(unsafe_code, reason = "the kernel is given an address")]
fn note_read(ring: &mut Ring<Watched>, file: &OwnedFd) {
    let read = opcode::Read::new(types::Fd(file.as_raw_fd()), ring.start().unwrap(), 16).build();
    // SAFETY: the ring owns the memory, and the pipe outlives it.
    unsafe { ring.note(&read) }.unwrap();
}

/// What the next reader of a pipe gets.
fn content(pipe: &OwnedFd) -> SysResult<usize> {
    rustix::io::ioctl_fionbio(pipe, true).unwrap();
    rustix::io::read(pipe, &mut [0; 16])
}

#[test]
fn a_read_under_way_is_taken_back_before_its_memory_goes() {
    let (mut ring, seen, out, into) = waiting();
    note_read(&mut ring, &out);
    plant([Fault::NoWait, Fault::Error(Errno::IO)]);
    assert_eq!(ring.carry_out(|_| {}), Err(Errno::IO));
    assert_eq!(ring.under_way, 0, "it was canceled");
    assert!(ring.release().is_some() && seen.dropped.get() && !seen.leaked.get());
    rustix::io::write(&into, b"later").unwrap();
    assert_eq!(content(&out), Ok(5), "nobody reads any more");
}

#[test]
fn a_ring_that_is_dropped_takes_back_what_is_under_way() {
    let (mut ring, seen, out, into) = waiting();
    note_read(&mut ring, &out);
    plant([Fault::NoWait]);
    ring.enter(1).unwrap();
    assert!((ring.under_way, ring.release().is_none()) == (1, true), "the kernel has it");
    drop(ring);
    assert!(seen.dropped.get() && !seen.leaked.get());
    rustix::io::write(&into, b"later").unwrap();
    assert_eq!(content(&out), Ok(5));
}

#[test]
fn memory_that_the_kernel_keeps_is_left_to_it() {
    let (mut ring, seen, out, _into) = waiting();
    note_read(&mut ring, &out);
    plant([Fault::NoWait, Fault::Error(Errno::IO)]);
    deafen();
    assert_eq!(ring.carry_out(|_| {}), Err(Errno::IO));
    assert!(ring.release().is_none());
    drop(ring);
    assert!(seen.leaked.get() && !seen.dropped.get());
}

#[test]
fn what_was_never_handed_over_is_never_done() {
    let (mut ring, seen, out, into) = waiting();
    rustix::io::write(&into, b"there").unwrap();
    note_read(&mut ring, &out);
    plant_lasting(Errno::AGAIN);
    assert_eq!(ring.carry_out(|_| {}), Err(Errno::NOMEM), "no socket is full");
    assert!(ring.start().is_err() && ring.carry_out(|_| {}).is_err(), "and stays so");
    assert!(ring.wait(1).is_err());
    drop(ring.release());
    assert!(seen.dropped.get());
    assert_eq!(content(&out), Ok(5));
}

#[test]
fn what_passes_is_not_noticed() {
    let (mut ring, _seen, out, into) = waiting();
    rustix::io::write(&into, b"there").unwrap();
    note_read(&mut ring, &out);
    let passing = [Errno::INTR, Errno::AGAIN, Errno::INTR];
    plant(passing.map(Fault::Error).into_iter().chain([Fault::NoWait]));
    let mut results = Vec::new();
    ring.carry_out(|entry| results.push(outcome(entry.result()))).unwrap();
    assert_eq!(results, [Ok(5)]);
}

#[test]
fn any_result_has_a_meaning() {
    assert_eq!([0, 7, i32::MAX].map(outcome), [Ok(0), Ok(7), Ok(i32::MAX as usize)]);
    let errors = [-1, -libc::EAGAIN, -4096, i32::MIN].map(outcome);
    assert_eq!(errors, [Errno::PERM, Errno::AGAIN, Errno::IO, Errno::IO].map(Err));
}
