//! Counts of UDP flows within the window.

use goodput_model::{DatagramCounts, FlowSample, Missing};

use super::{Side, View, positive};
use crate::thresholds::MIN_HEAVY_LOSS_SHARE;

/// Share of lost datagrams above which loss matters if the sender keeps a requested pace: a tenth of
/// the packet loss ratio that a network may have for telephony and video (ITU-T Y.1541 table 1, classes 0 to 4).
const MAX_PACED_LOSS_SHARE: f64 = 0.0001;
/// Fewer lost datagrams show no rate of loss.
const FEW_DATAGRAMS: f64 = 3.0;

impl Side<'_> {
    /// Datagrams lost within the window, judged by the receiver's sequence numbers.
    pub fn datagrams_lost(&self) -> Result<f64, Missing> {
        self.delta_sum("lost datagrams", |f| datagrams(f)?.lost())
    }

    /// Datagrams sent within the window.
    pub fn datagrams_sent(&self) -> Result<f64, Missing> {
        self.delta_sum("sent datagrams", |f| Ok(datagrams(f)?.sent))
    }

    /// Datagrams, of those sent within the window, that a firewall rule of this side's host dropped as they were sent.
    pub fn datagrams_refused(&self) -> Result<f64, Missing> {
        self.delta_sum("refused datagrams", |f| Ok(datagrams(f)?.refused))
    }

    /// Mean number of datagrams per packet that this side's sockets read; 1 if
    /// they read none, or none that were joined.
    pub fn datagrams_in_a_packet(&self) -> f64 {
        let read = self.delta_sum("datagrams read", |f| Ok(datagrams(f)?.received));
        let joined = self.delta_sum("joined datagrams", |f| Ok(datagrams(f)?.joined));
        match (read, joined) {
            (Ok(read), Ok(joined)) if joined > 0.0 && read > joined => read / (read - joined),
            _ => 1.0,
        }
    }

    /// Segments or datagrams that the sockets dropped within the window. A dropped packet with several
    /// datagrams counts as the mean number of datagrams in the packets that arrived.
    pub fn socket_drops(&self) -> Result<f64, Missing> {
        let packets = self.delta_sum("socket drops", |f| Ok(f.memory.get()?.drops))?;
        Ok(packets * self.datagrams_in_a_packet())
    }

    /// Share of the datagrams that never arrived, within the window.
    pub fn lost_share(&self) -> Result<f64, Missing> {
        let lost = self.datagrams_lost()?;
        let received = self.delta_sum("datagrams read", |f| Ok(datagrams(f)?.received))?;
        Ok(lost / positive(lost + received, "the number of datagrams sent")?)
    }
}

impl View<'_> {
    /// Whether more was sent than arrived, so that the sender's pace does not limit the goodput. TCP
    /// never does so for long.
    pub fn sends_too_much(&self) -> bool {
        let lost = || self.receiver.lost_share().or_else(|_| self.reported_loss_share());
        !self.is_tcp() && lost().is_ok_and(|share| share >= self.loss_that_matters())
    }

    /// Share of lost datagrams above which loss matters. If the plan sets the pace, the
    /// path is responsible only for the loss, so a smaller share matters.
    pub fn loss_that_matters(&self) -> f64 {
        let asked = self.plan().rate_bits_per_s.is_some();
        match self.receiver.datagrams_lost() {
            Ok(lost) if asked && lost >= FEW_DATAGRAMS => MAX_PACED_LOSS_SHARE,
            _ => MIN_HEAVY_LOSS_SHARE,
        }
    }

    /// Share of the datagrams that never arrived over the whole run, as reported by a receiver
    /// that does not observe.
    pub fn reported_loss_share(&self) -> Result<f64, Missing> {
        self.evidence.reported_loss_share.get().copied()
    }

    /// Datagrams that the two hosts are known to have dropped.
    pub fn datagrams_dropped_at_hosts(&self) -> f64 {
        self.receiver.socket_drops().unwrap_or(0.0)
            + self.sender.datagrams_refused().unwrap_or(0.0)
            + self.sender.queue_drops().unwrap_or(0.0)
            + self.sender.departure_drops() * self.receiver.datagrams_in_a_packet()
            + self.arrival_drops().unwrap_or(0.0)
    }
}

fn datagrams(flow: &FlowSample) -> Result<DatagramCounts, Missing> {
    flow.datagrams.ok_or_else(|| Missing::because("datagrams were not counted"))
}
