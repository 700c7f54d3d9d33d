//! How long it takes to connect to the server's port. A connection is reset as soon as it is
//! established, so it leaves nothing behind at either end.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::{Missing, SocketOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

use super::schedule::{Halt, PhaseProbes, Waiting};

/// Connects repeatedly until the halt. Fails if not even the first attempt can begin.
pub fn probe(to: SocketAddr, options: &SocketOptions, halt: &Halt) -> Result<PhaseProbes, Missing> {
    let mut waiting: Waiting<'_, OwnedFd> = Waiting::new(halt);
    let mut begun = false;
    while waiting.goes_on() {
        if waiting.is_due() {
            let at = Instant::now();
            match goodput_mover::socket::tcp_begin(to, options) {
                Ok(socket) => waiting.sent(socket, at),
                Err(why) if !begun => return Err(Missing::because(why.to_string())),
                Err(_) => waiting.not_sent(),
            }
            begun = true;
        }
        let pause = waiting.pause();
        let ready = ready(&waiting, pause)?;
        let at = Instant::now();
        let mut ready = ready.into_iter();
        waiting.settle(at, |_| ready.next().unwrap_or(false), is_connected);
    }
    Ok(waiting.into_probes())
}

/// Waits until a connection is ready or has failed, or the time is over. Reports each one's readiness.
fn ready(waiting: &Waiting<'_, OwnedFd>, time: Duration) -> Result<Vec<bool>, Missing> {
    let mut polled: Vec<_> =
        waiting.out().map(|socket| PollFd::new(socket, PollFlags::OUT)).collect();
    let time = Timespec::try_from(time).map_err(|_| Missing::because("an odd time to wait"))?;
    match poll(&mut polled, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(cause) => return Err(Missing::because(format!("poll: {cause}"))),
    }
    Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
}

fn is_connected(socket: &OwnedFd) -> bool {
    let socket = SockRef::from(socket);
    let connected = matches!(socket.take_error(), Ok(None));
    // If it can't be reset, it is closed like any other.
    let _ = socket.set_linger(Some(Duration::ZERO));
    connected
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::Arc;

    /// Probes until `is_enough` returns.
    fn probed(to: SocketAddr, is_enough: impl FnOnce()) -> Result<PhaseProbes, Missing> {
        let halt = Arc::new(Halt::default());
        let (of_thread, options) = (Arc::clone(&halt), SocketOptions::default());
        let thread = std::thread::spawn(move || probe(to, &options, &of_thread));
        is_enough();
        halt.finish();
        thread.join().unwrap()
    }

    #[test]
    fn connections_are_timed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let three_came = || (0..3).for_each(|_| drop(listener.accept().unwrap()));
        let there = probed(listener.local_addr().unwrap(), three_came).unwrap();
        assert!(there.us.len() >= 3 && there.lost == 0, "{there:?}");
    }

    #[test]
    fn refusals_are_not_timed() {
        // Bound, so that nobody else gets the port, and refusing, because it does not listen.
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let to = socket.local_addr().unwrap().as_socket().unwrap();
        let refused = probed(to, || std::thread::sleep(Duration::from_millis(50)));
        assert!(refused.is_err() || refused.is_ok_and(|probes| probes.us.is_empty()));
    }
}
