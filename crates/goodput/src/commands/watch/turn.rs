//! One test at a time on this host: watches take turns, whoever their users are.
//!
//! The right to test is a name among the abstract Unix sockets of the network namespace (unix(7)), which one process at a time
//! can have. It needs no file that users would have to share, and is free as soon as its process has ended, however it ended.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use goodput_engine::Interrupt;
use tokio::time::sleep;

/// The name that a testing watch has.
const NAME: &str = "goodput-watch";
/// Longest time between two looks at the name; each time is random, so that two that wait don't wait for each other.
const LOOK: Duration = Duration::from_secs(2);

/// The right to test, which one watch at a time has.
pub struct HostTurn {
    name: String,
    address: SocketAddr,
}

/// Has the right until it is dropped.
pub struct Held {
    _socket: UnixDatagram,
}

impl HostTurn {
    /// The right to test over the line of this name, or over those without a name.
    pub fn over(line: Option<&str>) -> Result<Self> {
        let name = format!("{NAME}/{}", line.unwrap_or_default());
        let address = SocketAddr::from_abstract_name(&name);
        let address = address.with_context(|| format!("--line: no socket can be named {name}"))?;
        Ok(Self { name, address })
    }

    /// Why there was no right to test. Any process can have the name, so it says how to find out.
    pub fn taken(&self) -> String {
        format!(
            "another process had the turn to test all the time: a watch that tests too often, or what `ss -xap` shows at @{}",
            self.name
        )
    }

    /// Waits for the right, at most as long as `patience`; `None` without it.
    pub async fn take(&self, patience: Duration, interrupt: &Interrupt) -> Result<Option<Held>> {
        let began = Instant::now();
        loop {
            match UnixDatagram::bind_addr(&self.address) {
                Ok(socket) => return Ok(Some(Held { _socket: socket })),
                Err(why) if why.kind() != ErrorKind::AddrInUse => {
                    return Err(why)
                        .context("can't take the turn to test (an abstract Unix socket)");
                }
                Err(_) if began.elapsed() >= patience => return Ok(None),
                Err(_) => {}
            }
            tokio::select! {
                () = sleep(LOOK.mul_f64(rand::random())) => {}
                () = interrupt.raised() => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(host: &HostTurn) -> Option<Held> {
        let (_raise, interrupt) = goodput_engine::interrupt();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(host.take(Duration::ZERO, &interrupt)).unwrap()
    }

    #[test]
    fn two_watches_never_test_over_one_line_at_once() {
        let line = format!("test-{}", std::process::id());
        let [one, other] = [(); 2].map(|()| HostTurn::over(Some(&line)).unwrap());
        let held = take(&one);
        assert!(held.is_some());
        assert!(take(&other).is_none());
        let apart = HostTurn::over(Some(&format!("{line}-apart"))).unwrap();
        assert!(take(&apart).is_some(), "it shares nothing with the line that is in use");
        drop(held);
        assert!(take(&other).is_some());
    }

    #[test]
    fn a_name_that_no_socket_can_have_is_refused() {
        assert!(HostTurn::over(Some(&"x".repeat(200))).is_err());
    }
}
