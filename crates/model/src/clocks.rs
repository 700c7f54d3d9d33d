//! How the clocks of the two ends relate.
//!
//! Each end counts its samples by its own monotonic clock, from its own start. Schedulers delay both starts, so
//! times of the two ends can be compared only through this relation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end::End;
use crate::known::{Known, Missing};

/// One request of the near end and its response, nanoseconds of each end's `CLOCK_MONOTONIC`. `sent_ns` and
/// `back_ns` are times of the near end's clock, the two others of the far end's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
#[schemars(with = "[u64; 4]")]
pub struct Exchange {
    /// When the near end sent the request.
    pub sent_ns: u64,
    /// When the far end received the request.
    pub received_ns: u64,
    /// When the far end sent the response.
    pub answered_ns: u64,
    /// When the near end received the response.
    pub back_ns: u64,
}

impl From<[u64; 4]> for Exchange {
    fn from([sent_ns, received_ns, answered_ns, back_ns]: [u64; 4]) -> Self {
        Self { sent_ns, received_ns, answered_ns, back_ns }
    }
}

impl From<Exchange> for [u64; 4] {
    fn from(of: Exchange) -> Self {
        [of.sent_ns, of.received_ns, of.answered_ns, of.back_ns]
    }
}

/// The far end's clock as a linear function of the near end's clock, with an error bound. It holds from
/// `from_ns` to `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockRelation {
    /// Start of the relation's validity, nanoseconds of the near end's clock.
    pub from_ns: u64,
    /// End of the relation's validity, nanoseconds of the near end's clock.
    pub to_ns: u64,
    /// How far the far end's clock was ahead at `from_ns`, nanoseconds.
    pub ahead_ns: i64,
    /// Drift of the far end's clock against the near end's, parts per million.
    pub drift_ppm: f64,
    /// Largest possible error at any time, nanoseconds: a bound, not a standard deviation. Zero if both ends
    /// share one clock.
    pub error_ns: f64,
}

impl ClockRelation {
    /// The relation of two ends that share one clock.
    pub fn one_clock(from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns, to_ns, ahead_ns: 0, drift_ppm: 0.0, error_ns: 0.0 }
    }

    /// Seconds from the beginning of the near end's samples to the beginning of the far end's samples. The error is
    /// at most [`Self::error_ns`].
    pub fn far_began_later_s(&self, near_began_ns: u64, far_began_ns: u64) -> f64 {
        let elapsed = near_began_ns.wrapping_sub(self.from_ns) as i64 as f64;
        let apart = far_began_ns.wrapping_sub(near_began_ns) as i64;
        (apart.wrapping_sub(self.ahead_ns) as f64 - elapsed * self.drift_ppm * 1e-6) / 1e9
    }
}

/// Relation of both ends' clocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// The relation, or why it is unknown.
    pub relation: Known<ClockRelation>,
    /// The exchanges that the relation is computed from, in order of the responses: before, during and after
    /// the payload. They also give the one-way times under load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

impl Clocks {
    /// Seconds from the beginning of the near end's samples to the beginning of the far end's samples.
    pub fn far_began_later_s(&self, near: &End, far: &End) -> Result<f64, Missing> {
        let relation = self.relation.get()?;
        let began = |end: &End| end.clock.as_ref().map(|clock| clock.began_ns);
        let (Some(near), Some(far)) = (began(near), began(far)) else {
            return Err(Missing::because("an end does not report when its samples began"));
        };
        Ok(relation.far_began_later_s(near, far))
    }

    /// Clocks whose relation is unknown, because of `why`.
    pub fn missing(why: &'static str) -> Self {
        Self { relation: Known::missing(why), exchanges: Vec::new() }
    }

    /// The value in records that were made before goodput compared clocks.
    pub fn not_compared() -> Self {
        Self::missing("an older goodput made this record and did not compare the ends' clocks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_four_numbers_in_json() {
        let exchange = Exchange::from([1, 2, 3, 4]);
        assert_eq!(serde_json::to_string(&exchange).unwrap(), "[1,2,3,4]");
        assert_eq!(serde_json::from_str::<Exchange>("[1,2,3,4]").unwrap(), exchange);
    }

    #[test]
    fn starts_compare_whatever_the_clocks_read() {
        let relation = ClockRelation {
            from_ns: 1_000_000_000,
            to_ns: 9_000_000_000,
            ahead_ns: -700_000_000,
            drift_ppm: 100.0,
            error_ns: 5.0,
        };
        // 2 s later the far clock is 699.8 ms behind.
        let later = relation.far_began_later_s(3_000_000_000, 2_400_200_000);
        assert!((later - 0.1).abs() < 1e-9, "{later}");
    }
}
