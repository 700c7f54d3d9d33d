//! iperf3: its server and its client, as Debian has them.

mod options;

use goodput_model::{
    Direction, EndName, FlowTotals, Known, Record, Role as FlowRole, Totals, Transport,
};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::matrix::{Case, Counts, EVERY_DIRECTION, Found, Peer, Role};
use crate::space::{Finished, Space};

/// The program.
pub const PEER: Peer = Peer {
    id: "iperf3",
    program: "iperf3",
    version_argument: "--version",
    directions: |_| EVERY_DIRECTION,
    measure,
    more: options::all,
};

const PORT: u16 = 5201;
const TARGET: &str = "iperf3://127.0.0.1";

/// Bytes of a write, if nobody says otherwise.
const BLOCK: u64 = 128 * 1024;

/// Bytes that the program sends over TCP and does not count: from 3.16 on its senders are threads,
/// which it cancels in the midst of a write.
fn uncounted(case: &Case) -> u64 {
    let is_cancelled = PEER.release() >= Some((3, 16)) && case.transport == Transport::Tcp;
    if is_cancelled { BLOCK * u64::from(case.flows) } else { 0 }
}

/// Rate of UDP, each direction over all flows: no host loses any of it.
const UDP_MBIT: u32 = 40;

fn measure(case: &Case) -> Result<Found, Failed> {
    match case.role {
        Role::WeServe => we_serve(case),
        Role::WeConnect => we_connect(case),
    }
}

/// Everything from what the client prints: its own counts, and ours as it received them.
fn we_serve(case: &Case) -> Result<Found, Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    let flows = case.flows.to_string();
    let rate = format!("{}M", UDP_MBIT / u32::from(case.flows));
    let mut arguments = vec!["-t", "1", "-P", &flows];
    if case.transport == Transport::Udp {
        arguments.extend(["-u", "-b", &rate]);
    }
    arguments.extend(match case.direction {
        Direction::Send => None,
        Direction::Reverse => Some("-R"),
        Direction::Both => Some("--bidir"),
    });
    let end = &client(&space, &arguments)?["end"];
    let there = || -> Result<_, Failed> {
        let counted = counts(end, "", case.transport)?;
        Ok(Counts { uncounted_bytes: uncounted(case), ..counted })
    };
    // Real clients count nothing from the moment on at which they end the test. With both directions
    // at once, those back have names of their own.
    let back = |suffix| {
        let counted = counts(end, suffix, case.transport);
        counted.map(|counts| Counts { may_stop_early: true, ..counts })
    };
    let counts = match case.direction {
        Direction::Send => vec![there()?],
        Direction::Reverse => vec![back("")?],
        Direction::Both => vec![there()?, back("_bidir_reverse")?],
    };
    Found::new(&space, counts)
}

/// Sums of a direction in a client's JSON.
fn counts(end: &Value, suffix: &str, transport: Transport) -> Result<Counts, Failed> {
    let of = |name: &str| &end[format!("{name}{suffix}")];
    let (sent, received) = (of("sum_sent"), of("sum_received"));
    Ok(Counts {
        sent_bytes: number(&sent["bytes"])?,
        received_bytes: number(&received["bytes"])?,
        lost: match transport {
            Transport::Tcp => None,
            Transport::Udp => {
                Some((number(&received["lost_packets"])?, number(&received["packets"])?))
            }
        },
        may_stop_early: false,
        uncounted_bytes: 0,
    })
}

fn number(value: &Value) -> Result<u64, Failed> {
    value.as_u64().ok_or_else(|| format!("{value} is no count").into())
}

/// Runs a client until its end.
fn client(space: &Space, arguments: &[&str]) -> Result<Value, Failed> {
    let all = [&["-c", "127.0.0.1", "-J"], arguments].concat();
    let Finished { status, stdout, stderr } = space.start("iperf3", &all)?.finish()?;
    let json: Value = serde_json::from_str(&stdout)?;
    if !status.success() || json.get("error").is_some() {
        return Err(format!("{status}: {} {stderr}", json["error"]).into());
    }
    Ok(json)
}

/// Our own counts, the server's as we received them, and those that it prints.
fn we_connect(case: &Case) -> Result<Found, Failed> {
    let space = Space::new()?;
    let server = space.start("iperf3", &["-s", "-1", "-J"])?;
    space.wait_for_listener(PORT)?;
    let flows = case.flows.to_string();
    let rate = format!("{UDP_MBIT}mbit");
    let mut arguments = vec![TARGET, "-t", "1", "-P", &flows];
    if case.transport == Transport::Udp {
        arguments.extend(["--udp", "--rate", &rate]);
    }
    arguments.extend(match case.direction {
        Direction::Send => None,
        Direction::Reverse => Some("--reverse"),
        Direction::Both => Some("--both"),
    });
    let record = space.test(&arguments)?;
    let printed: Value = serde_json::from_str(&server.finish()?.stdout)?;
    let totals = record.far_totals.as_ref().ok_or("the record has no report of the server")?;
    reports_what_it_prints(totals, &printed["end"], case)?;
    Found::new(&space, directions(case, &record, totals)?)
}

/// The server's report in our record is the one that it prints, but for a last block of a sender.
fn reports_what_it_prints(totals: &Totals, end: &Value, case: &Case) -> Result<(), Failed> {
    let streams = end["streams"].as_array().ok_or("the server prints no streams")?;
    if streams.len() != totals.flows.len() {
        return Err(
            format!("{} streams, and {} reported", streams.len(), totals.flows.len()).into()
        );
    }
    for (flow, stream) in totals.flows.iter().zip(streams) {
        let (count, printed) = match (case.transport, flow.role) {
            (Transport::Tcp, FlowRole::Sender) => (&flow.bytes, &stream["sender"]["bytes"]),
            (Transport::Tcp, FlowRole::Receiver) => (&flow.bytes, &stream["receiver"]["bytes"]),
            (Transport::Udp, FlowRole::Sender) => (&flow.bytes, &stream["udp"]["bytes"]),
            // There 3.12 prints the bytes of a sender that it does not know: 0.
            (Transport::Udp, FlowRole::Receiver) => (&flow.datagrams, &stream["udp"]["packets"]),
        };
        let printed = number(printed)?;
        let last = if flow.role == FlowRole::Sender { uncounted(case).min(BLOCK) } else { 0 };
        let is_same = |reported: &u64| (printed..=printed + last).contains(reported);
        if !count.value().is_some_and(is_same) {
            return Err(format!("flow {}: {printed} printed, {count:?} reported", flow.flow).into());
        }
    }
    Ok(())
}

/// Both sides' counts of each direction.
fn directions(case: &Case, record: &Record, totals: &Totals) -> Result<Vec<Counts>, Failed> {
    let samples = record.ends.near.value().map(|near| &near.samples);
    let last = samples.and_then(|samples| samples.last()).ok_or("this end has no samples")?;
    let far = |role: FlowRole, count: fn(&FlowTotals) -> &Known<u64>| -> Option<u64> {
        totals
            .flows
            .iter()
            .filter(|flow| flow.role == role)
            .map(|flow| count(flow).value().copied())
            .sum()
    };
    let of = |sender: EndName| -> Result<Counts, Failed> {
        let near_role = if sender == EndName::Near { FlowRole::Sender } else { FlowRole::Receiver };
        let far_role = if sender == EndName::Near { FlowRole::Receiver } else { FlowRole::Sender };
        let near: u64 = last.flows.iter().filter(|f| f.role == near_role).map(|f| f.bytes).sum();
        let far_bytes = far(far_role, |flow| &flow.bytes).ok_or("bytes that were not reported")?;
        let ours = last.flows.iter().filter(|f| f.role == near_role).filter_map(|f| f.datagrams);
        let (lost, seen) = ours.fold((0, 0), |(lost, seen), counts| {
            (lost + counts.lost, seen + counts.lost + counts.received)
        });
        let reported_loss =
            || Some((far(far_role, |f| &f.lost)?, far(far_role, |f| &f.datagrams)?));
        Ok(match sender {
            EndName::Near => Counts {
                sent_bytes: near,
                received_bytes: far_bytes,
                lost: reported_loss(),
                may_stop_early: true,
                uncounted_bytes: 0,
            },
            EndName::Far => Counts {
                sent_bytes: far_bytes,
                received_bytes: near,
                lost: Some((lost, seen)),
                // We stop when it has been quiet for a while: a server that got no CPU meanwhile may
                // write another block after that.
                may_stop_early: true,
                uncounted_bytes: uncounted(case),
            },
        })
    };
    let directions = record.result.directions.iter().map(|direction| of(direction.sender));
    directions.collect()
}
