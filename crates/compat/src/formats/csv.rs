//! Columns of iperf 2's comma-separated values (`-y C`).

use std::net::SocketAddr;

use goodput_model::{Connection, EndName};
use jiff::Zoned;

/// Source and destination of a row's payload.
#[derive(Debug, Clone, Copy)]
pub struct Addresses(Option<(SocketAddr, SocketAddr)>);

impl Addresses {
    /// The addresses of a flow, the sender first, as in iperf 2.1. Unknown ones are `0.0.0.0,0`, which
    /// iperf prints for a socket that was never connected.
    pub fn of(connection: Option<&Connection>, sender: EndName) -> Self {
        Self(connection.map(|c| match sender {
            EndName::Near => (c.local, c.remote),
            EndName::Far => (c.remote, c.local),
        }))
    }

    fn columns(self, sum: bool) -> String {
        let Some((from, to)) = self.0 else { return "0.0.0.0,0,0.0.0.0,0".into() };
        // A sum has no source port (2.0.13, 2.2).
        let port = if sum { 0 } else { from.port() };
        format!("{},{port},{},{}", from.ip(), to.ip(), to.port())
    }
}

/// One row without the UDP columns and without its line end. `id` counts from 1; -1 is a sum.
pub fn row(addresses: Addresses, id: i32, from_s: f64, to_s: f64, bytes: u64) -> String {
    let seconds = to_s - from_s;
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let columns = addresses.columns(id < 0);
    format!("{},{columns},{id},{from_s:.1}-{to_s:.1},{bytes},{}", now(), rate as u64)
}

/// Local time, as in 2.0.13 and 2.2. iperf 2.1.8 itself prints the year 1970 in its last row.
fn now() -> String {
    Zoned::now().strftime("%Y%m%d%H%M%S").to_string()
}
