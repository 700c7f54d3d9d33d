//! Whether the far end still shows a sign of life. A sender of datagrams hears nothing on its own socket, and would
//! continue after its peer has vanished.
//!
//! Both the control connection and the echoes over UDP count: on a path full of datagrams, one of them may be stuck for
//! longer than it is worth waiting for a vanished peer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};

use crate::clock::now_ns;
use crate::socket;

/// How long the far end may show no sign of life, seconds.
pub(crate) const SILENCE_S: u32 = 15;

/// The silence after which the far end is asked for a sign, and then asked again each second: a path full of datagrams
/// loses some of the questions (`TCP_KEEPIDLE`, `TCP_KEEPINTVL`, tcp(7)).
const KEEPALIVE_IDLE_TIME: Duration = Duration::from_secs(3);
const KEEPALIVE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// When the far end was last heard outside the control connection: through an echo that it answered or requested.
/// Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct LastHeard(Arc<AtomicU64>);

impl LastHeard {
    /// Notes that the far end was heard just now.
    pub fn mark(&self) {
        self.0.fetch_max(now_ns(), Ordering::Relaxed);
    }

    /// Milliseconds since then; `None` if the far end was never heard.
    pub fn ago_ms(&self) -> Option<u64> {
        let at_ns = self.0.load(Ordering::Relaxed);
        (at_ns > 0).then(|| now_ns().saturating_sub(at_ns) / 1_000_000)
    }
}

/// The channels on which the far end of a measurement is heard.
#[derive(Debug, Default)]
pub(crate) struct Liveness(Mutex<Option<Watched>>);

#[derive(Debug)]
struct Watched {
    control: OwnedFd,
    heard: LastHeard,
    most_ms: u32,
}

impl Liveness {
    /// Watches a TCP connection and `heard` from now on. Both may be silent for `most_ms` milliseconds.
    pub(crate) fn begin(&self, control: OwnedFd, heard: LastHeard, most_ms: u32) -> io::Result<()> {
        sockopt::set_socket_keepalive(&control, true)?;
        sockopt::set_tcp_keepidle(&control, KEEPALIVE_IDLE_TIME)?;
        sockopt::set_tcp_keepintvl(&control, KEEPALIVE_RETRY_INTERVAL)?;
        let watched = Watched { control, heard, most_ms };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
        Ok(())
    }

    /// Drops the connection.
    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether the far end was silent for too long; never, if nothing is watched.
    fn is_silent(&self) -> bool {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.as_ref().is_some_and(Watched::is_silent)
    }
}

impl Watched {
    fn is_silent(&self) -> bool {
        let most_ms = self.most_ms;
        silence_ms(&self.control).is_some_and(|silence_ms| silence_ms >= most_ms)
            && self.heard.ago_ms().is_none_or(|ago_ms| ago_ms >= most_ms.into())
    }
}

/// Milliseconds since anything came on a TCP connection, data or an acknowledgement. `None` if the kernel does not
/// report it.
fn silence_ms(control: &OwnedFd) -> Option<u32> {
    let control = control.as_fd();
    let ago = [socket::last_data_received_ms(control), socket::last_ack_received_ms(control)];
    ago.into_iter().flatten().min()
}

/// When a sender of datagrams next checks it.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    last_s: i64,
}

impl Looks {
    /// Checks once a second; returns whether the far end was silent for too long.
    pub(crate) fn find_silence(&mut self, liveness: &Liveness) -> bool {
        // Takes a tenth of the time that the precise clock takes.
        let now_s = clock_gettime(ClockId::MonotonicCoarse).tv_sec;
        if now_s == self.last_s {
            return false;
        }
        self.last_s = now_s;
        liveness.is_silent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MoveError;
    use crate::flow::FlowConfig;
    use crate::{Gate, Stop, find, start};
    use goodput_model::{Role, Transport};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::sync::Arc;

    fn control() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near.into(), listener.accept().unwrap().0)
    }

    #[test]
    fn a_silence_lasts_until_something_comes() {
        let (near, mut far) = control();
        // No question is asked so soon.
        while silence_ms(&near).unwrap() < 200 {
            std::thread::yield_now();
        }
        let (liveness, held) = (Liveness::default(), near.try_clone().unwrap());
        liveness.begin(held, LastHeard::default(), 200).unwrap();
        // If this thread was held up for seconds, a question was asked and answered meanwhile.
        while !liveness.is_silent() {
            std::thread::yield_now();
        }
        // Once of many times this thread looks soon enough.
        while liveness.is_silent() {
            far.write_all(b"x").unwrap();
        }
        while silence_ms(&near).unwrap() < 200 {
            std::thread::yield_now();
        }
        liveness.end();
        assert!(!liveness.is_silent(), "there is nothing to hear it on");
    }

    #[test]
    fn who_answers_echoes_is_not_silent_though_the_control_connection_is() {
        let (near, _far) = control();
        while silence_ms(&near).unwrap() < 1 {
            std::thread::yield_now();
        }
        let (liveness, heard) = (Liveness::default(), LastHeard::default());
        liveness.begin(near.try_clone().unwrap(), heard.clone(), 1).unwrap();
        assert_eq!(heard.ago_ms(), None);
        while !liveness.is_silent() {
            std::thread::yield_now();
        }
        // An answer that came a minute later than now stays younger than a millisecond throughout the test.
        heard.0.store(now_ns() + 60_000_000_000, Ordering::Relaxed);
        assert!(!liveness.is_silent());
        // And one that is long ago doesn't count.
        heard.0.store(1, Ordering::Relaxed);
        while !liveness.is_silent() {
            std::thread::yield_now();
        }
        heard.mark();
        assert!(heard.ago_ms().is_some_and(|ago_ms| ago_ms < now_ns() / 1_000_000));
    }

    #[test]
    fn a_sender_of_datagrams_ends_when_the_far_end_is_silent() {
        let (near, _far) = control();
        for mover in ["datagram", "gso", "plain", "txtime"] {
            let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            from.connect(to.local_addr().unwrap()).unwrap();
            let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().unwrap()));
            let heard = LastHeard::default();
            stop.liveness().begin(near.try_clone().unwrap(), heard, 1).unwrap();
            let config = FlowConfig::new(Role::Sender, Transport::Udp, 1400);
            let mover = find(mover).unwrap();
            let flow = start(mover, config, from.into(), Arc::clone(&gate), Arc::clone(&stop));
            gate.open();
            let why = flow.unwrap().join().unwrap_err();
            assert!(matches!(why, MoveError::Silence { flow: 0, seconds: 15 }), "{why}");
        }
    }
}
