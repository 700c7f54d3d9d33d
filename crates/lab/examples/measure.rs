//! Measures what a scenario's path really gives: round-trip time of single datagrams, and TCP
//! throughput by iperf3, if it is installed. `cargo run --example measure -- SCENARIO [IPERF3 ARGS]`

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

use goodput_lab::{Lab, Scenario, privilege};
use goodput_model::Family;

const ROUND_TRIPS: usize = 500;

/// How long a datagram is waited for.
const LOST_AFTER: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    privilege::enter()?;
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("which scenario?")?;
    let began = Instant::now();
    let lab = Lab::up(&Scenario::load(&name)?)?;
    println!("up after {:?}", began.elapsed());
    round_trips(&lab)?;
    throughput(&lab, &args.collect::<Vec<_>>())?;
    println!("relay: {:?}", lab.relay_counters());
    Ok(())
}

fn round_trips(lab: &Lab) -> Result<(), Box<dyn Error>> {
    let address = (lab.far().address(Family::V4), 0);
    let echo = lab.far().within(|| UdpSocket::bind(address))??;
    let target = echo.local_addr()?;
    let socket = lab.near().within(|| UdpSocket::bind("0.0.0.0:0"))??;
    socket.set_read_timeout(Some(LOST_AFTER))?;
    echo.set_read_timeout(Some(LOST_AFTER))?;
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        socket.send_to(b"x", target)?;
        let Ok((_, from)) = echo.recv_from(&mut [0]) else { continue };
        echo.send_to(b"y", from)?;
        if socket.recv_from(&mut [0]).is_ok() {
            times.push(began.elapsed());
        }
    }
    times.sort();
    let last = times.len().checked_sub(1).ok_or("every datagram was lost")?;
    let at = |share: f64| times[(share * last as f64) as usize];
    println!("lost: {} of {ROUND_TRIPS}", ROUND_TRIPS - times.len());
    let shown: [Duration; 4] = [at(0.0), at(0.5), at(0.99), at(1.0)];
    println!("rtt min, median, 99 %, max: {shown:?}");
    Ok(())
}

fn throughput(lab: &Lab, args: &[String]) -> Result<(), Box<dyn Error>> {
    let target = lab.far().address(Family::V4).to_string();
    let mut server = lab.far().command("iperf3")?;
    server.args(["--server", "--forceflush"]).stdout(Stdio::piped());
    let mut server = server.spawn()?;
    let mut said = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let listening = |line: &Result<String, _>| line.as_ref().is_ok_and(|l| l.contains("listening"));
    said.find(listening).ok_or("iperf3 does not listen")??;
    let mut client = lab.near().command("iperf3")?;
    client.args(["--client", &target]).args(args).status()?;
    server.kill()?;
    server.wait()?;
    Ok(())
}
