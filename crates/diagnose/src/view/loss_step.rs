//! What was sent and lost in some time.

/// What happened between two detailed samples, all flows of a side together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossStep {
    /// Length, seconds.
    pub seconds: f64,
    /// Packets sent, retransmissions included.
    pub sent: f64,
    /// Lost packets among them: those that TCP sent again, or the gaps in a datagram flow.
    pub lost: f64,
}

impl LossStep {
    /// Lost share of the packets sent; 0 if nothing was sent.
    pub fn share(&self) -> f64 {
        if self.sent > 0.0 { self.lost / self.sent } else { 0.0 }
    }

    /// Packets that passed in each second.
    pub fn passed(&self) -> f64 {
        (self.sent - self.lost) / self.seconds
    }
}
