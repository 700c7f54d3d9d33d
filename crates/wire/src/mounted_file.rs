//! Files on mounts: the kernel, or the program behind the mount, talks to their server. This module sends nothing; it
//! only reports which parts of a plan make no sense for a file.

use goodput_model::{Direction, Plan, Transport};

use crate::direct::{Connecting, Dialect, out_of_reach};
use crate::file_target::{self, OPENING_TIMEOUT};
use crate::session::Protocol;
use crate::ticket::FlowTicket;

/// The protocol of a target that is a path.
pub const PROTOCOL: Protocol =
    file_target::protocol("mounted-file", "a file on a mount", |now, _| {
        Box::new(Connecting::new(now, &DIALECT))
    });

const DIALECT: Dialect = Dialect {
    program: "mount",
    opening: OPENING_TIMEOUT,
    tickets,
    doubt: |_, _| None,
    unreported: "what the server of a mount saw can't be asked for",
};

/// The flows of a plan, or the parts of the plan that a file can't do.
fn tickets(plan: &Plan) -> Result<Vec<FlowTicket>, String> {
    if plan.transport == Transport::Udp {
        return Err(
            "the file is read through its mount, so --udp has no effect: leave out --udp".into()
        );
    }
    if plan.direction == Direction::Both {
        return Err(
            "a file on a mount is read or written, not both at once: leave out --both".into()
        );
    }
    if !plan.storage.is_memory() {
        return Err("the path names the file: leave out --source, --sink and --size".into());
    }
    // Reading a file doesn't depend on the warm-up that this end leaves out of the rates.
    let mut lost = out_of_reach(&Plan { omit_s: 0.0, ..plan.clone() });
    if plan.socket.rcvbuf_bytes.is_some() && !lost.contains(&"--rcvbuf") {
        lost.push("--rcvbuf");
    }
    if !lost.is_empty() {
        return Err(format!(
            "the kernel opens no socket of ours for a mount: leave out {}",
            lost.join(", ")
        ));
    }
    Ok(FlowTicket::without_proofs(plan, &goodput_framing::ttcp()))
}

#[cfg(test)]
mod tests {
    use goodput_model::Bytes;

    use super::*;

    #[test]
    fn a_file_is_read_or_written_without_a_socket() {
        let plan = Plan { direction: Direction::Reverse, flows: 3, ..Plan::standard() };
        assert_eq!(tickets(&plan).unwrap().len(), 3);
        let why = |change: fn(&mut Plan)| {
            let mut plan = plan.clone();
            change(&mut plan);
            tickets(&plan).unwrap_err()
        };
        assert!(why(|plan| plan.transport = Transport::Udp).contains("--udp"));
        assert!(why(|plan| plan.direction = Direction::Both).contains("--both"));
        assert!(why(|plan| plan.socket.sndbuf_bytes = Some(Bytes(1))).contains("--sndbuf"));
        assert!(why(|plan| plan.socket.rcvbuf_bytes = Some(Bytes(1))).contains("--rcvbuf"));
    }
}
