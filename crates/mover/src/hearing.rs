//! Whether the far end still shows a sign of life. A sender of datagrams hears nothing on its own socket,
//! and would continue after its peer has vanished.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};

use crate::error::MoveError;
use crate::flow::Flow;
use crate::socket;

/// How long the far end may show no sign of life, seconds.
pub(crate) const SILENCE_S: u32 = 15;

/// After which silence the far end is asked for a sign, and then each second: what is full of datagrams
/// loses some of the questions (`TCP_KEEPIDLE`, `TCP_KEEPINTVL`, tcp(7)).
const ASKED_AFTER: Duration = Duration::from_secs(3);
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// The control connection of a measurement, on which the far end is heard.
#[derive(Debug, Default)]
pub(crate) struct Hearing(Mutex<Option<(OwnedFd, u32)>>);

impl Hearing {
    /// Listens to a TCP connection from now on, whose silence may last `most_ms` milliseconds.
    pub(crate) fn begin(&self, control: OwnedFd, most_ms: u32) -> io::Result<()> {
        sockopt::set_socket_keepalive(&control, true)?;
        sockopt::set_tcp_keepidle(&control, ASKED_AFTER)?;
        sockopt::set_tcp_keepintvl(&control, ASKED_AGAIN)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((control, most_ms));
        Ok(())
    }

    /// Lets go of the connection.
    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether the far end was silent for too long; never, if there is nothing to hear it on.
    fn is_silent(&self) -> bool {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silence = heard.as_ref().map(|(control, most)| (silence_ms(control), *most));
        silence.is_some_and(|(silence, most)| silence.is_some_and(|silence| silence >= most))
    }
}

/// Since when nothing came on a TCP connection, milliseconds: neither data nor an acknowledgement. `None` if
/// the kernel does not report.
fn silence_ms(control: &OwnedFd) -> Option<u32> {
    let control = control.as_fd();
    let ago = [socket::last_data_received_ms(control), socket::last_ack_received_ms(control)];
    ago.into_iter().flatten().min()
}

/// When a sender of datagrams looks at it.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    last_s: i64,
}

impl Looks {
    /// Looks once a second; fails if the far end was silent for too long.
    pub(crate) fn look(&mut self, flow: &Flow) -> Result<(), MoveError> {
        // Takes a tenth of the time that the precise clock takes.
        let now_s = clock_gettime(ClockId::MonotonicCoarse).tv_sec;
        if now_s == self.last_s {
            return Ok(());
        }
        self.last_s = now_s;
        if !flow.stop.hearing().is_silent() {
            return Ok(());
        }
        Err(MoveError::Silence { flow: flow.config.id, seconds: SILENCE_S })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let (hearing, held) = (Hearing::default(), near.try_clone().unwrap());
        hearing.begin(held, 200).unwrap();
        // If this thread was held up for seconds, a question was asked and answered meanwhile.
        while !hearing.is_silent() {
            std::thread::yield_now();
        }
        // Once of many times this thread looks soon enough.
        while hearing.is_silent() {
            far.write_all(b"x").unwrap();
        }
        while silence_ms(&near).unwrap() < 200 {
            std::thread::yield_now();
        }
        hearing.end();
        assert!(!hearing.is_silent(), "there is nothing to hear it on");
    }

    #[test]
    fn a_sender_of_datagrams_ends_when_the_far_end_is_silent() {
        let (near, _far) = control();
        for mover in ["datagram", "gso", "plain", "txtime"] {
            let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            from.connect(to.local_addr().unwrap()).unwrap();
            let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().unwrap()));
            stop.hearing().begin(near.try_clone().unwrap(), 1).unwrap();
            let config = FlowConfig::new(Role::Sender, Transport::Udp, 1400);
            let mover = find(mover).unwrap();
            let flow = start(mover, config, from.into(), Arc::clone(&gate), Arc::clone(&stop));
            gate.open();
            let why = flow.unwrap().join().unwrap_err();
            assert!(matches!(why, MoveError::Silence { flow: 0, seconds: 15 }), "{why}");
        }
    }
}
