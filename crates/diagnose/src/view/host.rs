//! Counts of a host's device, queue and backlog between the two snapshots.

use goodput_model::Missing;

use super::{Side, positive};
use crate::names;

impl<'a> Side<'a> {
    /// Device on the path.
    pub fn device(&self) -> Result<&'a str, Missing> {
        self.text(names::LINK_DEVICE)
    }

    /// Packets that this host's own queue dropped on the way out.
    pub fn queue_drops(&self) -> Result<f64, Missing> {
        Ok(self.grown(names::QDISC_DROPS)? as f64)
    }

    /// Packets that the path's own device dropped on the way out, after that queue; none if it does
    /// not count them.
    pub fn departure_drops(&self) -> f64 {
        self.grown(names::LINK_TX_DROPPED).map_or(0.0, |drops| drops as f64)
    }

    /// Share of the packets handed to this host's own queue that it dropped. A
    /// device without a queue counts neither.
    pub fn queue_drop_share(&self) -> Result<f64, Missing> {
        let (drops, sent) = (self.queue_drops()?, self.grown(names::QDISC_PACKETS)? as f64);
        if drops == 0.0 {
            return Ok(0.0);
        }
        Ok(drops / positive(drops + sent, "the packets handed to the queue")?)
    }

    /// A count per million packets that the path's device received.
    pub fn per_million_arrived(&self, count: f64) -> Result<f64, Missing> {
        per_million(count, self.grown(names::LINK_RX_PACKETS)?, "the packets that came in")
    }

    /// A count per million packets that the path's device sent.
    pub fn per_million_sent(&self, count: f64) -> Result<f64, Missing> {
        per_million(count, self.grown(names::LINK_TX_PACKETS)?, "the packets sent")
    }

    /// A count per million packets that the host's CPUs took from all its devices.
    pub fn per_million_processed(&self, count: f64) -> Result<f64, Missing> {
        per_million(count, self.grown(names::SOFTNET_PROCESSED)?, "the packets processed")
    }

    /// Packets that this host dropped on the way in. Missing counters count as zero as long as one
    /// is there.
    pub fn arrival_drops(&self) -> Result<f64, Missing> {
        let whole_host = self.grown(names::SOFTNET_DROPPED).map(|drops| drops as f64);
        match (self.device_drops(), whole_host) {
            (Ok(device), Ok(host)) => Ok(device + host),
            (one, other) => one.or(other),
        }
    }

    /// Drops of the path's own device. The backlog's count covers the whole host, including drops of
    /// other programs, and on Linux of other network namespaces too.
    pub fn device_drops(&self) -> Result<f64, Missing> {
        let sources = [names::LINK_RX_DROPPED, names::LINK_RX_MISSED];
        let read: Vec<_> = sources.iter().map(|name| self.grown(name)).collect();
        let seen: Vec<f64> = read.iter().filter_map(|r| Some(*r.as_ref().ok()? as f64)).collect();
        match (seen.is_empty(), read.into_iter().find_map(Result::err)) {
            (true, Some(why)) => Err(why),
            _ => Ok(seen.iter().sum()),
        }
    }
}

fn per_million(count: f64, packets: u64, what: &str) -> Result<f64, Missing> {
    Ok(count / positive(packets as f64, what)? * 1e6)
}
