//! The newest coordinator that an agent knows of. The copy of the stream that says who coordinates may be behind.

use serde::{Deserialize, Serialize};

/// The newest coordinator that was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Newest {
    /// Its token; 0: there was none.
    pub token: u64,
    /// When it took over, or a later time at which an earlier one did, seconds since 1970: the clocks of servers differ.
    written_s: f64,
}

impl Newest {
    /// Takes what a copy of the stream says: this coordinator took over at `written_s`. What is older than what was seen
    /// before changes nothing. Only the tokens of a stream that was made anew begin again, and they come later.
    pub fn see(&mut self, token: u64, written_s: f64) {
        if token > self.token || written_s > self.written_s {
            *self = Self { token, written_s: self.written_s.max(written_s) };
        }
    }

    /// Whether a task with this token is one of an earlier coordinator.
    pub fn is_after(&self, token: u64) -> bool {
        self.token > token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_behind_brings_no_earlier_coordinator_back() {
        let mut newest = Newest::default();
        assert!(!newest.is_after(5), "nobody was seen");
        newest.see(5, 100.0);
        newest.see(7, 200.0);
        newest.see(5, 100.0);
        assert!(newest.is_after(5) && newest.is_after(6) && !newest.is_after(7));
        assert!(!newest.is_after(8), "a successor that was not seen yet");
    }

    #[test]
    fn a_leader_whose_clock_is_behind_is_no_new_stream() {
        let mut newest = Newest::default();
        newest.see(5, 100.0);
        newest.see(7, 90.0);
        newest.see(5, 100.0);
        assert_eq!(newest.token, 7);
    }

    #[test]
    fn a_stream_that_was_made_anew_begins_again() {
        let mut newest = Newest::default();
        newest.see(57, 100.0);
        newest.see(1, 200.0);
        assert!(!newest.is_after(1) && !newest.is_after(57));
    }
}
