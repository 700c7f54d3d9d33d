//! Everything a diagnosis rule may look at: one direction of one measurement, both ends.

use std::sync::Arc;

use crate::clocks::Clocks;
use crate::end::End;
use crate::end_name::EndName;
use crate::fetches::Fetches;
use crate::known::{Known, Missing};
use crate::latency::Latency;
use crate::plan::Plan;
use crate::units::BitRate;

/// One direction of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The plan that both ends agreed on.
    pub plan: Plan,
    /// The end that sent the payload.
    pub sender_end: EndName,
    /// The near end; shared with the evidence of the other direction, because its samples are many.
    pub near: Known<Arc<End>>,
    /// The far end; missing if the peer does not report.
    pub far: Known<Arc<End>>,
    /// Share of the datagrams that did not arrive, 0 to 1, as reported by a far end that is not goodput.
    pub reported_loss_share: Known<f64>,
    /// Round trips before and during the flows, if the plan measures them.
    pub latency: Option<Latency>,
    /// Fetches or uploads, if the target is a file.
    pub fetches: Option<Fetches>,
    /// How the ends' clocks relate.
    pub clocks: Clocks,
    /// The measured goodput.
    pub measured: Measured,
}

/// The goodput of one direction, and the window in which it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Payload that the receiver's application read in the window.
    pub goodput: BitRate,
    /// Start of the window on the receiver's clock, after slow start, seconds.
    pub from_s: f64,
    /// End of the window, seconds.
    pub to_s: f64,
    /// Half-width of the 95 % confidence interval of the mean, percent of the mean.
    pub precision_percent: Known<f64>,
}

impl Measured {
    /// Payload bytes of the window.
    pub fn bytes(&self) -> u64 {
        // A cast from float to integer saturates.
        self.goodput.bytes_in(self.to_s - self.from_s).round() as u64
    }
}

impl Evidence {
    /// What the sending end saw.
    pub fn sender(&self) -> Result<&End, Missing> {
        self.end(self.sender_end)
    }

    /// What the receiving end saw.
    pub fn receiver(&self) -> Result<&End, Missing> {
        self.end(self.sender_end.other())
    }

    /// Seconds to add to a time of the receiver's samples to get the same moment in the sender's samples. Each end
    /// counts from its own start.
    pub fn sender_began_earlier_s(&self) -> Result<f64, Missing> {
        let later_s = self.clocks.far_began_later_s(self.near.get()?, self.far.get()?)?;
        Ok(if self.sender_end == EndName::Near { later_s } else { -later_s })
    }

    /// What `name` saw.
    pub fn end(&self, name: EndName) -> Result<&End, Missing> {
        match name {
            EndName::Near => self.near.get(),
            EndName::Far => self.far.get(),
        }
        .map(Arc::as_ref)
    }
}
