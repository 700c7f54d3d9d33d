//! Comparisons of both clocks over the control connection, for paths that block UDP. One at a time, and only while no
//! payload moves: on a full path they would measure its queue and wait behind it.

use goodput_model::Exchange;

/// How often clocks are compared this way before the payload, and again after it: the fastest of this many hardly met a
/// queue. On a long path fewer fit into the time that payload waits.
pub const CLOCK_PINGS: usize = 8;

/// Comparisons in progress.
#[derive(Debug, Default)]
pub struct Pings {
    left: usize,
    exchanges: Vec<Exchange>,
}

impl Pings {
    /// Requests this many comparisons from now on.
    pub fn want(&mut self, count: usize) {
        self.left = count;
    }

    /// Whether another comparison is wanted.
    pub fn is_wanting(&self) -> bool {
        self.left > 0
    }

    /// An answer has come. One from before the last [`Pings::want`] counts too: it is true.
    pub fn heard(&mut self, exchange: Exchange) {
        self.left = self.left.saturating_sub(1);
        self.exchanges.push(exchange);
    }

    /// All answers since the last call.
    pub fn take(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges)
    }
}
