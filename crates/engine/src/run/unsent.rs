//! Payload that a stopped sender still holds when nobody reads it any more. The kernel would go on sending it for minutes
//! over a slow path, and the report would wait behind it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use goodput_kernel::queued_output;
use goodput_model::Known;
use goodput_mover::{Phase, Stop};
use rustix::net::sockopt::set_socket_linger;

/// How long after the own deadline the receivers have given up too. The end that asks others to finish has the earlier
/// deadline, unless both reached the limit of the plan on their own: then theirs differ by the time that the start took.
const GRACE_TIME: Duration = Duration::from_secs(1);
/// Time between two looks. The thread has nothing else to do.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until everything has been acknowledged on `streams`, which have ended. Resets those that still hold something
/// after the receivers have given up. Goes on when the measurement is dropped: its report may be under way.
pub fn discard(mut streams: Vec<Arc<OwnedFd>>, stop: &Stop) {
    while stop.overdue().is_none_or(|overdue| overdue < GRACE_TIME) {
        let ends_unasked = stop.phase() == Phase::Abort && stop.deadline_ns().is_none();
        streams.retain(|stream| holds_payload(stream));
        if streams.is_empty() || ends_unasked {
            return;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    for stream in streams {
        // Fails only if the connection is gone already.
        let _ = set_socket_linger(&stream, Some(Duration::ZERO));
    }
}

fn holds_payload(stream: &OwnedFd) -> bool {
    !matches!(queued_output(stream.as_fd()), Known::Value(0))
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// A stream that has ended although its receiver has read nothing, and the receiver.
    fn ended() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let receiver = listener.accept().unwrap().0;
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[0; 65_536]).is_ok() {}
        sender.shutdown(Shutdown::Write).unwrap();
        (sender.into(), receiver)
    }

    fn read_to_end(mut receiver: TcpStream) -> std::io::Result<usize> {
        receiver.read_to_end(&mut Vec::new())
    }

    #[test]
    fn what_nobody_reads_any_more_is_discarded() {
        let (sender, receiver) = ended();
        let stop = Stop::new().unwrap();
        stop.finish(Duration::ZERO);
        discard(vec![Arc::new(sender)], &stop);
        let read = read_to_end(receiver);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_receiver_that_still_reads_gets_everything() {
        let (sender, receiver) = ended();
        let stop = Stop::new().unwrap();
        stop.finish(Duration::from_secs(86_400));
        let reading = std::thread::spawn(|| read_to_end(receiver));
        discard(vec![Arc::new(sender)], &stop);
        assert!(reading.join().unwrap().unwrap() > 0);
    }

    #[test]
    fn an_abort_ends_the_wait() {
        let (sender, _receiver) = ended();
        let stop = Stop::new().unwrap();
        stop.abort();
        discard(vec![Arc::new(sender)], &stop);
    }
}
