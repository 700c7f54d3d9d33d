//! A plan of ours, as the header of each flow.

use goodput_model::traffic_class::traffic_class;
use goodput_model::{Bytes, Direction, EndName, FlowPlan, Length, Plan, Transport};

use super::ack::ACK_VERSION;
use super::header::{
    EXTENDED_BYTES, FULL_DUPLEX, Header, NO_UDP_FIN, PayloadDirection, REVERSE, UDP_TESTS,
    VERSION2, WIDE_NUMBERS, write,
};
use crate::direct::out_of_reach;
use crate::ticket::{FlowTicket, Proof};

/// Bytes in front of the header in each datagram: number and time (`UDP_datagram`).
const DATAGRAM_HEADER_BYTES: usize = 16;

/// Smallest size of a flow, bytes: one header.
const MIN_FLOW_BYTES: u64 = EXTENDED_BYTES as u64;

/// The flows of a plan, or the parts of the plan that iperf2 can't do.
pub(super) fn tickets(plan: &Plan) -> Result<Vec<FlowTicket>, String> {
    let lost = out_of_reach(plan);
    if !lost.is_empty() {
        return Err(format!("iperf2's protocol can't express {}", lost.join(", ")));
    }
    if plan.transport == Transport::Udp
        && plan.chunk_bytes.0 < (DATAGRAM_HEADER_BYTES + EXTENDED_BYTES) as u64
    {
        return Err(format!(
            "iperf2's header needs datagrams of {} bytes",
            DATAGRAM_HEADER_BYTES + EXTENDED_BYTES
        ));
    }
    plan.flow_plans().into_iter().map(|flow| ticket(plan, flow)).collect()
}

fn ticket(plan: &Plan, flow: FlowPlan) -> Result<FlowTicket, String> {
    let second = plan.direction == Direction::Both && flow.sender == EndName::Far;
    let header = header(plan, flow)?;
    let (proof, settings) = match plan.transport {
        Transport::Tcp => (write(&header, plan.flows, 0), Vec::new()),
        Transport::Udp => (Vec::new(), write(&header, plan.flows, DATAGRAM_HEADER_BYTES)),
    };
    // The flow on which this end sends has already requested a shared connection.
    let (proof, settings) = if second { Default::default() } else { (proof, settings) };
    Ok(FlowTicket {
        flow,
        proof: Proof(proof),
        framing: goodput_framing::iperf2(settings, plan.direction == Direction::Send, false),
        shares: second.then(|| flow.id - plan.flows),
    })
}

fn header(plan: &Plan, flow: FlowPlan) -> Result<Header, String> {
    let udp = plan.transport == Transport::Udp;
    let mut flags = if udp { WIDE_NUMBERS } else { 0 };
    let upper = match (plan.direction, udp) {
        (Direction::Send, _) => 0,
        (Direction::Reverse, _) => REVERSE,
        (Direction::Both, false) => FULL_DUPLEX,
        (Direction::Both, true) => FULL_DUPLEX | NO_UDP_FIN,
    };
    if plan.direction != Direction::Send {
        flags |= VERSION2 | if udp { UDP_TESTS } else { 0 };
    }
    let rate = plan.rate_per_flow().map_or(0, |rate| rate.0.max(1.0) as u64);
    Ok(Header {
        flags,
        upper,
        direction: PayloadDirection::Normal,
        buffer: u32::try_from(plan.chunk_bytes.0).unwrap_or(0),
        window: 0,
        length: length(plan, flow)?,
        version: Some(ACK_VERSION),
        tos: traffic_class(plan.socket.dscp.unwrap_or(0)),
        rate,
        sent: None,
    })
}

/// The length of a flow. iperf2's byte count has 31 bits. Payload to the server may be longer: there the count is only
/// informative, and is left out.
fn length(plan: &Plan, flow: FlowPlan) -> Result<Option<Length>, String> {
    let Length::Bytes(total) = plan.length else {
        return Ok(crate::check::duration_s(plan).map(Length::Seconds));
    };
    let (flows, place) = (u64::from(plan.flows), u64::from(flow.id % plan.flows));
    let share = total.0 / flows + u64::from(place < total.0 % flows);
    match share {
        // The header is payload, and is always sent whole.
        0..MIN_FLOW_BYTES => Err(format!("{} bytes are too few for iperf2's header", total.0)),
        MIN_FLOW_BYTES..0x8000_0000 => Ok(Some(Length::Bytes(Bytes(share)))),
        _ if plan.direction == Direction::Send => Ok(None),
        _ => Err("iperf2 can't request more than 2147483647 bytes per flow".into()),
    }
}
