//! Every framing, a file each.

mod goodput;
mod iperf2;
mod iperf3;
mod nuttcp;
mod ttcp;

use crate::Framing;

pub use goodput::goodput;
pub use iperf2::iperf2;
pub use iperf3::iperf3;
pub use nuttcp::nuttcp;
pub use ttcp::ttcp;

/// A framing with each of its options.
type Examples = fn() -> Vec<Framing>;

/// Every framing by the name of its file.
const ALL: &[(&str, Examples)] = &[
    ("goodput", || vec![goodput()]),
    ("iperf3", || vec![iperf3(false), iperf3(true)]),
    ("iperf2", || {
        let settings = b"\x48\x01\0\x98".to_vec();
        let answered = [false, true].map(|answered| iperf2(settings.clone(), answered, false));
        let server = [false, true].map(|timed| iperf2(Vec::new(), false, timed));
        answered.into_iter().chain(server).chain([iperf2(Vec::new(), true, false)]).collect()
    }),
    ("nuttcp", || vec![nuttcp(false), nuttcp(true)]),
    ("ttcp", || vec![ttcp()]),
];

/// Each framing with each of its options, for the conformance tests and the fuzz target.
pub fn examples() -> Vec<Framing> {
    ALL.iter().flat_map(|(_, examples)| examples()).collect()
}

#[cfg(test)]
mod tests;
