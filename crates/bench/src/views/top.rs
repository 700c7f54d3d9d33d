//! `goodput top` on a host with thousands of sockets.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::terminal::OnTerminal;
use super::{Figure, Stage};

/// Connections that wait to be accepted at most, which all systems allow.
const BACKLOG: usize = 100;

/// How long the first looks may take, and the names of the programs.
const SETTLE_TIME: Duration = Duration::from_secs(4);

pub fn figures(stage: &Stage<'_>) -> Result<Vec<Figure>> {
    let sockets = Sockets::open(stage.options.sockets as usize)?;
    let top = OnTerminal::start(stage, &["top"])?;
    sleep(SETTLE_TIME);
    let cpu_s = || top.cpu_s(|_| true).context("`goodput top` has ended");
    let (before, began) = (cpu_s()?, Instant::now());
    sleep(Duration::from_secs(stage.options.seconds.into()));
    let percent = (cpu_s()? - before) / began.elapsed().as_secs_f64() * 100.0;
    drop(top);
    drop(sockets);
    let what = format!("`goodput top` of {} sockets, % of a CPU", stage.options.sockets);
    Ok(vec![Figure::at_most(what, percent, 10.0)])
}

/// Connections of this process with itself. Half of their ends send a little each second.
struct Sockets {
    end: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
    _received_by: Vec<TcpStream>,
}

impl Sockets {
    fn open(count: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        while send.len() < count / 2 {
            let some = BACKLOG.min(count / 2 - send.len());
            for _ in 0..some {
                send.push(TcpStream::connect(address).context("open one more connection")?);
            }
            for _ in 0..some {
                receive.push(listener.accept()?.0);
            }
        }
        let end = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&end);
        let sender = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                // Nobody reads: in all, it is less than a socket's buffer.
                send.iter_mut().for_each(|one| drop(one.write(b"goodput")));
                sleep(Duration::from_secs(1));
            }
        });
        Ok(Self { end, sender: Some(sender), _received_by: receive })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // Its panic would be a bug, and has been printed.
        let _ = self.sender.take().map(JoinHandle::join);
    }
}
