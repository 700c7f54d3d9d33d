//! One flow between two processes, without the control connection, to measure a mover alone:
//!
//! ```text
//! flow receive ADDRESS:PORT MOVER
//! flow send ADDRESS:PORT MOVER SECONDS [CHUNK] [RATE]
//! ```
//!
//! Prints what was moved, how fast, and at what cost of CPU.

use std::error::Error;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{BitRate, Bytes, Plan, Role, SocketOptions, Transport};
use goodput_mover::socket::{tcp_connect, tcp_listen, udp_socket};
use goodput_mover::{FlowConfig, Gate, RunningFlow, Stop, find, start};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [role, address, mover, options @ ..] = args.as_slice() else {
        return Err("usage: flow receive|send ADDRESS:PORT MOVER [SECONDS [CHUNK [RATE]]]".into());
    };
    let role = if role == "send" { Role::Sender } else { Role::Receiver };
    let mover = find(mover).ok_or("no such mover")?;
    let transport = mover.transports()[0];
    let seconds: f64 = options.first().map_or(Ok(0.0), |text| text.parse())?;
    let chunk = if transport == Transport::Tcp { 128 << 10 } else { 1400 };
    let chunk = options.get(1).map_or(Ok(Bytes(chunk)), |text| text.parse())?;
    let rate: Option<BitRate> = options.get(2).map(|text| text.parse()).transpose()?;
    let chunk = usize::try_from(chunk.0)?;
    let config = FlowConfig { rate, ..FlowConfig::new(role, transport, chunk) };
    let plan = Plan { transport, chunk_bytes: Bytes(chunk as u64), ..Plan::standard() };
    mover.can_run(&plan)?;
    let socket = connect(role, transport, address.parse()?)?;
    let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new()?));
    let flow = start(mover, config, socket, Arc::clone(&gate), Arc::clone(&stop))?;
    let began = Instant::now();
    gate.open();
    if role == Role::Sender {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.finish(Duration::from_secs(5));
    }
    report(flow, began)
}

fn connect(
    role: Role,
    transport: Transport,
    address: SocketAddr,
) -> Result<OwnedFd, Box<dyn Error>> {
    let options = SocketOptions::default();
    Ok(match (role, transport) {
        (Role::Sender, Transport::Tcp) => tcp_connect(address, &options, Duration::from_secs(5))?,
        (Role::Receiver, Transport::Tcp) => {
            TcpListener::from(tcp_listen(address, &options)?).accept()?.0.into()
        }
        (Role::Sender, Transport::Udp) => udp_socket(None, address, &options, false)?,
        (Role::Receiver, Transport::Udp) => {
            let socket = UdpSocket::bind(address)?;
            let (_, peer) = socket.peek_from(&mut [0; 1])?;
            socket.connect(peer)?;
            socket.into()
        }
    })
}

fn report(flow: RunningFlow, began: Instant) -> Result<(), Box<dyn Error>> {
    while !flow.is_finished() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let seconds = (flow.finished_at().ok_or("the flow broke")? - began).as_secs_f64();
    let counters = Arc::clone(flow.counters());
    let cpu_us = *flow.cpu_us().get().map_err(|missing| missing.to_string())?;
    flow.join()?;
    let rate = BitRate::over(counters.bytes(), seconds).ok_or("no time has passed")?;
    println!(
        "{:.0} bit/s bytes {} calls {} blocked {} us paced {} us cpu {cpu_us} us of {:.0} us, \
         copied anyway {:?} mapped {:?}",
        rate.0,
        counters.bytes(),
        counters.calls(),
        counters.blocked_us(),
        counters.paced_us(),
        seconds * 1e6,
        counters.copied_anyway(),
        counters.mapped_bytes(),
    );
    println!("{:?}", counters.datagrams());
    Ok(())
}
