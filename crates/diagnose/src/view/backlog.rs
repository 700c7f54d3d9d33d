//! What the receiving host dropped, as far as it is known to be this measurement's.

use goodput_model::Missing;

use super::{Side, View, positive};
use crate::names;

/// Share of the packets handled by a machine's CPUs from which they may all be this measurement's: each passes a device, a
/// bridge and a tunnel, and so is handled three or four times.
const MIN_OWN_SHARE: f64 = 0.25;

impl View<'_> {
    /// Packets that the backlogs of the receiving host's CPUs dropped. The count is that of the whole machine, with all its
    /// network namespaces.
    ///
    /// # Errors
    /// If it is not reported, or if so many of the packets that the CPUs handled were others' that nobody can tell whose
    /// were dropped.
    pub fn backlog_drops(&self) -> Result<f64, Missing> {
        let drops = self.receiver.grown(names::SOFTNET_DROPPED)? as f64;
        match drops > 0.0 && self.own_share_of_handled().is_ok_and(|own| own < MIN_OWN_SHARE) {
            true => Err(Missing::because(format!(
                "the CPUs of the {} end's machine dropped {drops:.0} packets, but most that they handled were others'",
                self.receiver.name
            ))),
            false => Ok(drops),
        }
    }

    /// Share of the packets handled by the receiving host's CPUs that its device, or those of both ends if they share a
    /// machine, received.
    fn own_share_of_handled(&self) -> Result<f64, Missing> {
        let received = |side: &Side| side.grown(names::LINK_RX_PACKETS).map(|count| count as f64);
        let acknowledgements = match self.ends_share_a_machine() {
            true => received(&self.sender).unwrap_or(0.0),
            false => 0.0,
        };
        let handled = self.receiver.grown(names::SOFTNET_PROCESSED)? as f64;
        Ok((received(&self.receiver)? + acknowledgements)
            / positive(handled, "the packets processed")?)
    }

    /// Packets that the receiving host dropped on the way in. Missing counters, and those of which nobody can tell whose
    /// packets they counted, count as zero as long as one is there.
    pub fn arrival_drops(&self) -> Result<f64, Missing> {
        match (self.receiver.device_drops(), self.backlog_drops()) {
            (Ok(device), Ok(backlog)) => Ok(device + backlog),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName::Far;

    /// 1193 drops among 540 000 packets, as measured beside five other tests.
    fn drops(own: u64) -> Result<f64, Missing> {
        let case = Case::path_loss().grows(Far, names::SOFTNET_DROPPED, 1193);
        let case = case.grows(Far, names::SOFTNET_PROCESSED, 540_000);
        View::new(&case.grows(Far, names::LINK_RX_PACKETS, own).evidence()).backlog_drops()
    }

    #[test]
    fn drops_among_others_packets_are_nobodys() {
        assert!(drops(14_000).unwrap_err().to_string().contains("others'"));
        assert_eq!(drops(180_000), Ok(1193.0));
    }
}
