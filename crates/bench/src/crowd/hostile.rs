//! The crowd beside the honest client: idle connections, clients that propose much and send nothing, and datagrams from
//! everywhere. Each has its own address.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, bind, recv, sendto, socket};
use serde_json::json;

/// How often an idle connection shows a sign of life; a silent one is closed after 15 s (docs/protocol.md).
const PING_INTERVAL: Duration = Duration::from_secs(8);
/// How long one of the clients waits for an answer.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause of a hostile client between two proposals.
const PROPOSAL_PAUSE: Duration = Duration::from_millis(100);
/// Number of source addresses of datagrams.
const SOURCE_COUNT: usize = 256;
/// Stack of a client's thread, bytes.
const STACK_BYTES: usize = 128 << 10;

/// The hostile clients' network (RFC 1918), in the syntax of `ip route`.
pub const NETWORK: &str = "10.77.0.0/16";

/// The size of each group.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub idle: usize,
    pub hostile: usize,
    pub datagrams_per_s: u32,
}

/// A crowd; it leaves when it is dropped.
pub struct Crowd {
    gone: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Proposals of hostile clients that were accepted.
    pub accepted: Arc<AtomicUsize>,
    /// Datagrams that were sent.
    pub datagrams: Arc<AtomicUsize>,
}

impl Crowd {
    /// Sends the crowd to `server`. Returns when all idle connections are established.
    pub fn come(server: SocketAddrV4, sizes: Sizes) -> Result<Self> {
        let (gone, mut threads) = (Arc::new(AtomicBool::new(false)), Vec::new());
        let idle = (0..sizes.idle).map(|number| greeted(address(number), server));
        let idle: Vec<_> = idle.collect::<io::Result<_>>().context("open the idle connections")?;
        let (accepted, datagrams) = (Arc::default(), Arc::default());
        let mut spawn = |work: Box<dyn FnOnce(&AtomicBool) + Send>| -> Result<()> {
            let gone = Arc::clone(&gone);
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || work(&gone));
            threads.push(thread.context("start a hostile client")?);
            Ok(())
        };
        spawn(Box::new(move |gone| stay(idle, server, gone)))?;
        for number in 0..sizes.hostile {
            let (from, accepted) = (address(30_000 + number), Arc::clone(&accepted));
            spawn(Box::new(move |gone| propose(from, server, gone, &accepted)))?;
        }
        let sent = Arc::clone(&datagrams);
        spawn(Box::new(move |gone| flood(server, sizes.datagrams_per_s, gone, &sent)))?;
        Ok(Self { gone, threads, accepted, datagrams })
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        // A failed thread is gone as well.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// The address of a hostile client. Only every eighth is in another /24 network.
fn address(number: usize) -> Ipv4Addr {
    let (net, host) = ((number / 8) % (250 * 20), number % 8);
    Ipv4Addr::new(10, 77, (net % 250) as u8, (net / 250 * 8 + host + 1) as u8)
}

fn connect(from: Ipv4Addr, server: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    rustix::net::connect(&socket, &server)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(WAIT_TIMEOUT))?;
    stream.set_write_timeout(Some(WAIT_TIMEOUT))?;
    Ok(stream)
}

fn say(mut stream: &TcpStream, message: &serde_json::Value) -> io::Result<()> {
    let body = message.to_string();
    stream.write_all(&[&(body.len() as u32).to_be_bytes()[..], body.as_bytes()].concat())
}

fn hear(mut stream: &TcpStream) -> io::Result<serde_json::Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length).min(1 << 20) as usize];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// A connection that has identified itself (docs/protocol.md, section 2).
fn greeted(from: Ipv4Addr, server: SocketAddrV4) -> io::Result<TcpStream> {
    let stream = connect(from, server)?;
    (&stream).write_all(b"goodputc")?;
    let host = json!({ "name": "hostile", "kernel": "", "goodput": "", "cpus": 1 });
    say(&stream, &json!({ "hello": { "version": 1, "host": host } }))?;
    Ok(stream)
}

/// Idles on all these connections, and reopens those that the server closes.
fn stay(mut idle: Vec<TcpStream>, server: SocketAddrV4, gone: &AtomicBool) {
    let pause = PING_INTERVAL / idle.len().max(1) as u32;
    let mut next = Instant::now();
    'here: loop {
        for (number, stream) in idle.iter_mut().enumerate() {
            if gone.load(Ordering::Relaxed) {
                break 'here;
            }
            next += pause;
            sleep(next.saturating_duration_since(Instant::now()));
            let mut said = [0; 4096];
            let heard =
                recv(&*stream, &mut said[..], RecvFlags::DONTWAIT).map(|(length, _)| length);
            let is_open =
                !matches!(heard, Ok(0)) && !heard.is_err_and(|cause| cause != Errno::AGAIN);
            if is_open && say(stream, &json!({ "ping": {} })).is_ok() {
                continue;
            }
            if let Ok(another) = greeted(address(number), server) {
                *stream = another;
            }
        }
    }
}

/// Proposes a measurement that would take two gigabytes, sends no flow, and starts again.
fn propose(from: Ipv4Addr, server: SocketAddrV4, gone: &AtomicBool, accepted: &AtomicUsize) {
    while !gone.load(Ordering::Relaxed) {
        let proposed = greeted(from, server).and_then(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(500)))?;
            let mut preamble = [0; 8];
            (&stream).read_exact(&mut preamble)?;
            say(&stream, &json!({ "propose": { "measurement": 1, "plan": plan() } }))?;
            wait_for_its_end(&stream, gone, accepted)
        });
        // Whatever the outcome, it tries again.
        let _ = proposed;
        sleep(PROPOSAL_PAUSE);
    }
}

fn wait_for_its_end(
    stream: &TcpStream,
    gone: &AtomicBool,
    accepted: &AtomicUsize,
) -> io::Result<()> {
    let until = Instant::now() + WAIT_TIMEOUT;
    while !gone.load(Ordering::Relaxed) && Instant::now() < until {
        match hear(stream) {
            Ok(said) if said.get("accept").is_some() => {
                accepted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(said) if said.get("refuse").is_some() || said.get("goodbye").is_some() => break,
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// The standard plan with 128 flows and a chunk of 16 MiB, as a client would write it.
fn plan() -> serde_json::Value {
    json!({
        "transport": "tcp", "direction": "send", "length": { "seconds": 60.0 },
        "flows": 128, "chunk_bytes": 16 << 20, "mover": "copy", "interval_s": 1.0, "observe": true,
        "socket": {},
    })
}

/// Sends first datagrams of iperf 2 and of goodput's own protocol, from many addresses, at most `per_s` per second.
fn flood(server: SocketAddrV4, per_s: u32, gone: &AtomicBool, sent: &AtomicUsize) {
    let open = |number: usize| -> rustix::io::Result<OwnedFd> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        bind(&socket, &SocketAddrV4::new(address(34_000 + number), 0)).map(|()| socket)
    };
    let sockets: Vec<_> = (0..SOURCE_COUNT).filter_map(|number| open(number).ok()).collect();
    let mut iperf = vec![0; 1470];
    iperf[3] = 1;
    let proof = [&b"goodputh"[..], &[7; 16], &[0; 40]].concat();
    let tick = Duration::from_millis(5);
    let each = (u64::from(per_s) * tick.as_millis() as u64 / 1000) as usize;
    let (mut next, mut number) = (Instant::now(), 0);
    while !gone.load(Ordering::Relaxed) && !sockets.is_empty() {
        for _ in 0..each {
            number += 1;
            let datagram = if number % 2 == 0 { &iperf[..] } else { &proof };
            let socket = &sockets[number % sockets.len()];
            // A full queue loses the datagram, as a network would.
            if sendto(socket, datagram, SendFlags::DONTWAIT, &server).is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        next += tick;
        sleep(next.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn clients_have_addresses_of_their_own() {
        let all: HashSet<_> = (0..40_000).map(address).collect();
        assert_eq!(all.len(), 40_000);
        assert!(all.iter().all(|address| address.octets()[..2] == [10, 77]));
        assert!(all.iter().all(|address| (1..=254).contains(&address.octets()[3])));
    }
}
