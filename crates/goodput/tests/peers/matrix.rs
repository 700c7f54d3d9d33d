//! What is tried with every program: who serves, over what, which way, with how many flows.

use std::fmt;
use std::process::Command;

use goodput_model::{Direction, Transport};
use libtest_mimic::Failed;

use crate::space::Space;
use crate::{iperf2, iperf3, nuttcp};

/// Every program. The page lists them in this order.
pub const PEERS: &[Peer] = &[iperf3::PEER, iperf2::PEER, nuttcp::PEER];

/// A program that goodput talks with.
pub struct Peer {
    /// Id of its protocol.
    pub id: &'static str,
    /// What is started.
    pub program: &'static str,
    /// What makes it print its version.
    pub version_argument: &'static str,
    /// The directions that it knows over each transport.
    pub directions: fn(Transport) -> &'static [Direction],
    /// Measures one cell.
    pub measure: fn(&Case) -> Result<Found, Failed>,
    /// Tests beside the matrix, each with its name.
    pub more: fn() -> Vec<(&'static str, Test)>,
}

/// A test beside the matrix.
pub type Test = fn() -> Result<(), Failed>;

/// One cell of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Id of the protocol.
    pub peer: &'static str,
    /// Who serves.
    pub role: Role,
    /// Over what.
    pub transport: Transport,
    /// The direction of the payload, seen from the client.
    pub direction: Direction,
    /// Flows of each direction.
    pub flows: u16,
}

/// Who serves and who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `goodput serve`, and the other program's client.
    WeServe,
    /// The other program's server, and `goodput test`.
    WeConnect,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// What both sides counted, over all flows of a direction.
    pub counts: Vec<Counts>,
    /// Datagrams of the namespace that nobody read.
    pub unread: u64,
}

impl Found {
    /// Counts of a measurement that is over, in a space of its own.
    pub fn new(space: &Space, counts: Vec<Counts>) -> Result<Self, Failed> {
        Ok(Self { counts, unread: space.unread_datagrams()? })
    }
}

/// What both sides counted of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Payload bytes that the sender counted.
    pub sent_bytes: u64,
    /// Payload bytes that the receiver counted.
    pub received_bytes: u64,
    /// Datagrams that the receiver missed, and of how many.
    pub lost: Option<(u64, u64)>,
    /// Whether the receiver stops counting before all has come, and so may count less.
    pub may_stop_early: bool,
    /// Payload bytes that the sender may have sent and not counted.
    pub uncounted_bytes: u64,
}

const ROLES: [Role; 2] = [Role::WeServe, Role::WeConnect];
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Udp];
const FLOWS: [u16; 2] = [1, 4];

/// All that a program knows.
pub const EVERY_DIRECTION: &[Direction] = &[Direction::Send, Direction::Reverse, Direction::Both];

impl Peer {
    /// Its cells.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for role in ROLES {
            for transport in TRANSPORTS {
                for &direction in (self.directions)(transport) {
                    let case = |flows| Case { peer: self.id, role, transport, direction, flows };
                    cases.extend(FLOWS.map(case));
                }
            }
        }
        cases
    }

    /// The first line that names its version; `None` if there is no such program.
    pub fn version(&self) -> Option<String> {
        let output = Command::new(self.program).arg(self.version_argument).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
        Some(line.trim().to_owned())
    }

    /// The first two numbers of its version, like (3, 12).
    pub fn release(&self) -> Option<(u32, u32)> {
        let version = self.version()?;
        let number = version.split_whitespace().find(|word| word.contains('.'))?;
        let mut parts = number.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }
}

impl Case {
    /// Its name: of the test, and in the page.
    pub fn name(&self) -> String {
        let Self { peer, role, transport, direction, flows } = self;
        let transport = if *transport == Transport::Tcp { "tcp" } else { "udp" };
        let direction = match direction {
            Direction::Send => "send",
            Direction::Reverse => "reverse",
            Direction::Both => "both",
        };
        format!("{peer}/{role}/{transport}/{direction}/{flows}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WeServe => "serve",
            Self::WeConnect => "connect",
        })
    }
}
