//! Counts of a host's device, queue and backlog between the two snapshots.

use goodput_model::{Missing, TcpInfo};

use super::{Side, positive};
use crate::names;

/// Bytes of the longest name of a device and the NUL behind it (`IFNAMSIZ`, include/uapi/linux/if.h).
const MAX_DEVICE_NAME_BYTES: usize = 16;

impl<'a> Side<'a> {
    /// Device on the path.
    ///
    /// # Errors
    /// If it is unknown, or its name could be more than a word in a command to paste: the kernel allows almost any name
    /// (`dev_valid_name`, net/core/dev.c), and the far host may report anything.
    pub fn device(&self) -> Result<&'a str, Missing> {
        let name = self.text(names::LINK_DEVICE)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() < MAX_DEVICE_NAME_BYTES
            && name.chars().all(is_word);
        is_name.then_some(name).ok_or_else(|| Missing::because("the device has an unusual name"))
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

    /// Packets handed to the queue and the device: those that the queue passed on, and those that either dropped. A
    /// device without a queue counts none there; what TCP sent stands in for them.
    pub fn departures(&self) -> Result<f64, Missing> {
        let queued = self.grown(names::QDISC_PACKETS)? as f64;
        let sent = if queued > 0.0 { queued } else { self.in_all(TcpInfo::data_segs_out)? };
        Ok(sent + self.queue_drops()? + self.departure_drops())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::view::View;
    use goodput_model::EndName::Near;

    #[test]
    fn only_a_plain_name_of_a_device_goes_into_commands() {
        let is_named = |name: &str| {
            let evidence = Case::healthy().fact(Near, names::LINK_DEVICE, name).evidence();
            View::new(&evidence).sender.device().is_ok()
        };
        for name in ["eth0", "eth0.100", "veth-near", "wlp3s0", "br_lan", "veth1@if2"] {
            assert!(is_named(name), "{name}");
        }
        let long = "e".repeat(16);
        for name in ["eth0;reboot", "$(reboot)", "a   # b", "-rf", "", "a/b", "e\"", &long] {
            assert!(!is_named(name), "{name}");
        }
    }
}
