//! File servers: they have protocols of their own, which the flows speak. This end of the conversation only reports
//! what such a server can't do.

use goodput_model::{Direction, Plan, Transport};

use crate::check::PLAIN_MOVER;
use crate::direct::{Connecting, Dialect, out_of_reach};
use crate::file_target::{self, OPENING_TIMEOUT};
use crate::session::Protocol;
use crate::ticket::FlowTicket;

/// The protocol of a target whose URL names a file.
pub const PROTOCOL: Protocol =
    file_target::protocol("file-server", "a server of files", |now, _| {
        Box::new(Connecting::new(now, &DIALECT))
    });

const DIALECT: Dialect = Dialect {
    program: "file server",
    opening: OPENING_TIMEOUT,
    tickets,
    doubt: |_, _| None,
    unreported: "a server of files does not report what it saw",
};

/// The flows of a plan, or the parts of the plan that a file server can't do.
fn tickets(plan: &Plan) -> Result<Vec<FlowTicket>, String> {
    if plan.transport == Transport::Udp {
        return Err("files move over TCP only: leave out --udp".into());
    }
    match plan.direction {
        Direction::Reverse if plan.storage.source.is_some() => {
            return Err(
                "the URL names the file: leave out --source and --size, or add --write".into()
            );
        }
        Direction::Reverse if plan.rate_bits_per_s.is_some() || plan.burst_bytes.is_some() => {
            return Err(
                "a file server takes no rate: leave out --rate and --burst, or add --write".into(),
            );
        }
        Direction::Send if plan.storage.sink.is_some() => {
            return Err("the URL says where uploads go: leave out --sink".into());
        }
        Direction::Send if plan.storage.header_bytes > 0 => {
            return Err("an upload is the file alone: leave out --header".into());
        }
        Direction::Reverse | Direction::Send => {}
        Direction::Both => {
            return Err("files are either fetched or stored: leave out --both".into());
        }
    }
    // The server need not know the warm-up that this end leaves out of the rates, and the mover is this end's.
    let own = Plan { omit_s: 0.0, mover: PLAIN_MOVER.into(), ..plan.clone() };
    let lost = out_of_reach(&own);
    if !lost.is_empty() {
        return Err(format!("a server of files can't be asked for {}", lost.join(", ")));
    }
    Ok(FlowTicket::without_proofs(plan, &goodput_framing::ttcp()))
}

#[cfg(test)]
mod tests {
    use goodput_model::Bytes;

    use super::*;

    #[test]
    fn a_server_of_files_is_asked_for_what_it_can_do() {
        let plan =
            Plan { direction: Direction::Reverse, flows: 3, omit_s: 1.0, ..Plan::standard() };
        assert_eq!(tickets(&plan).unwrap().len(), 3);
        let why = |change: fn(&mut Plan)| {
            let mut plan = plan.clone();
            change(&mut plan);
            tickets(&plan).unwrap_err()
        };
        assert!(why(|plan| plan.transport = Transport::Udp).contains("--udp"));
        assert!(why(|plan| plan.direction = Direction::Both).contains("--both"));
        let rate = why(|plan| plan.rate_bits_per_s = Some(goodput_model::BitRate(1e6)));
        assert!(rate.contains("--rate"), "{rate}");
        assert!(why(|plan| plan.socket.sndbuf_bytes = Some(Bytes(1))).contains("--sndbuf"));
    }
}
