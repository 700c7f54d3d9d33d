//! nuttcp: its server and its client, as Debian has them.
//!
//! It counts in megabytes with four digits behind the point, so what goodput counts exactly is
//! written the same way before it is compared.

mod options;

use goodput_model::{Direction, EndName, FlowTotals, Known, Record, Transport};
use libtest_mimic::Failed;

use crate::matrix::{Case, Counts, Found, Peer, Role};
use crate::space::{Finished, Space};

/// The program.
pub const PEER: Peer = Peer {
    id: "nuttcp",
    program: "nuttcp",
    version_argument: "-V",
    directions: |_| &[Direction::Send, Direction::Reverse],
    measure,
    more: options::all,
};

const PORT: u16 = 5000;
const TARGET: &str = "nuttcp://127.0.0.1";

/// A client that receives listens on the data port, and 5001, its usual one, is ours on this host.
const DATA_PORT: &str = "-p5101";

/// What nuttcp calls MB, bytes.
const MEGABYTE: f64 = 1_048_576.0;

/// Rate of UDP, over all flows: no host loses any of it.
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
    let (flows, rate) = (format!("-N{}", case.flows), format!("-R{UDP_MBIT}m"));
    let mut arguments = vec!["-T1", DATA_PORT, &flows];
    if case.transport == Transport::Udp {
        arguments.extend(["-u", "-l1400", &rate]);
    }
    arguments.extend((case.direction == Direction::Reverse).then_some("-r"));
    let said = client(&space, &arguments)?;
    let lost = (case.transport == Transport::Udp).then(|| -> Result<_, Failed> {
        Ok((said.number('r', "drop")? as u64, said.number('r', "pkt")? as u64))
    });
    let counts = Counts {
        sent_bytes: said.bytes('t')?,
        received_bytes: said.bytes('r')?,
        lost: lost.transpose()?,
        may_stop_early: false,
        uncounted_bytes: 0,
    };
    Found::new(&space, vec![counts])
}

/// Our own counts, and the server's as we received them.
fn we_connect(case: &Case) -> Result<Found, Failed> {
    let space = Space::new()?;
    let _server = serve(&space, &[])?;
    let (flows, rate) = (case.flows.to_string(), format!("{UDP_MBIT}mbit"));
    let mut arguments = vec![TARGET, "-t", "1", "-P", &flows];
    if case.transport == Transport::Udp {
        arguments.extend(["--udp", "--rate", &rate]);
    }
    arguments.extend((case.direction == Direction::Reverse).then_some("--reverse"));
    let counts = counts(&space.test(&arguments)?)?;
    Found::new(&space, vec![counts])
}

/// Starts nuttcp's server, and waits until it listens.
fn serve(space: &Space, arguments: &[&str]) -> Result<crate::space::Running, Failed> {
    let server = space.start("nuttcp", &[&["-S", "--nofork"], arguments].concat())?;
    space.wait_for_listener(PORT)?;
    Ok(server)
}

/// Both sides' counts of the only direction.
fn counts(record: &Record) -> Result<Counts, Failed> {
    let samples = record.ends.near.value().map(|near| &near.samples);
    let last = samples.and_then(|samples| samples.last()).ok_or("this end has no samples")?;
    let totals = record.far_totals.as_ref().and_then(|totals| totals.flows.first());
    let totals = totals.ok_or("the record has no report of the server")?;
    let [direction] = &record.result.directions[..] else {
        return Err("there are not one but several directions".into());
    };
    let known = |count: &Known<u64>| count.value().copied().ok_or("a count was not reported");
    let FlowTotals { bytes, lost, datagrams, .. } = totals;
    let is_tcp = record.plan.transport == Transport::Tcp;
    let near = |bytes: u64| if is_tcp { as_printed(bytes as f64 / MEGABYTE) } else { bytes };
    Ok(match direction.sender {
        EndName::Near => Counts {
            sent_bytes: last.sent_bytes,
            received_bytes: known(bytes)?,
            lost: (!is_tcp)
                .then(|| Ok::<_, Failed>((known(lost)?, known(datagrams)?)))
                .transpose()?,
            may_stop_early: false,
            uncounted_bytes: 0,
        },
        EndName::Far => {
            let ours = last.flows.iter().filter_map(|flow| flow.datagrams);
            let (lost, received) =
                ours.fold((0, 0), |(lost, all), own| (lost + own.lost, all + own.received));
            Counts {
                sent_bytes: known(bytes)?,
                received_bytes: near(last.received_bytes),
                lost: (!is_tcp).then_some((lost, lost + received)),
                may_stop_early: false,
                uncounted_bytes: 0,
            }
        }
    })
}

/// What a verbose client says, line by line: `nuttcp-t: name=value …`.
struct Said(String);

/// Runs a client until its end.
fn client(space: &Space, arguments: &[&str]) -> Result<Said, Failed> {
    let all = [&["-v", "-fparse"], arguments, &["127.0.0.1"]].concat();
    let Finished { status, stdout, stderr } = space.start("nuttcp", &all)?.finish()?;
    if !status.success() || !stderr.is_empty() {
        return Err(format!("{status}: {stdout} {stderr}").into());
    }
    Ok(Said(stdout))
}

impl Said {
    /// What the sender ('t') or the receiver ('r') counted, bytes.
    fn bytes(&self, role: char) -> Result<u64, Failed> {
        Ok(as_printed(self.number(role, "megabytes")?))
    }

    fn number(&self, role: char, name: &str) -> Result<f64, Failed> {
        let prefix = format!("nuttcp-{role}: ");
        let items = self.0.lines().filter_map(|line| line.strip_prefix(&prefix));
        let items = items.flat_map(str::split_whitespace).filter_map(|item| item.split_once('='));
        let value = items.filter(|(key, _)| *key == name).map(|(_, value)| value).next();
        let value = value.ok_or_else(|| format!("{name} is not in {}", self.0))?;
        Ok(value.parse()?)
    }
}

/// Megabytes with four digits, as bytes again.
fn as_printed(megabytes: f64) -> u64 {
    ((megabytes * 1e4).round() / 1e4 * MEGABYTE).round() as u64
}
