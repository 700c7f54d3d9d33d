//! The datagrams of a train that arrived, and what their times show.

use std::collections::BTreeSet;

use goodput_model::{Arrival, FlowArrivals, Known, Missing};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of each datagram in its layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Payload of UDP.
    pub payload: u64,
    /// IP packet.
    pub packet: u64,
    /// Ethernet frame without preamble and checksum.
    pub frame: u64,
}

/// Datagrams of one size, sent faster than a path is configured to carry. As JSON, it can be kept and judged again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// The datagrams that arrived, in order of arrival.
    #[serde(serialize_with = "pack", deserialize_with = "unpack")]
    pub arrivals: Vec<Arrival>,
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of these that a firewall rule of the sending host dropped.
    #[serde(default)]
    pub refused: u64,
    /// Size of each.
    pub sizes: Sizes,
    /// Share of the time that the sender had to wait for its own queue, percent.
    pub held_percent: Known<f64>,
    /// Number of waits for the rate in the sender's queueing discipline, for each call that sent datagrams.
    pub rate_waits_per_call: Known<f64>,
    /// Average number of datagrams sent in one call.
    pub batch: f64,
    /// Average number of datagrams that leave in one packet, of senders that join them (segmentation offload).
    #[serde(default)]
    pub joined: Option<f64>,
}

impl Train {
    /// Smallest number of arrivals that shows a rate.
    pub const MIN_ARRIVALS: usize = 16;

    /// Times of the first and of the last arrival, on the receiver's clock, nanoseconds.
    #[must_use]
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let came = || self.arrivals.iter().map(|arrival| arrival.came_ns);
        came().min().zip(came().max())
    }

    /// The same train, if every datagram that came, or that a firewall dropped, is one of those sent: a far end may report any
    /// numbers.
    ///
    /// # Errors
    /// If a datagram is reported that was not sent.
    pub fn checked(self) -> Result<Self, Missing> {
        if self.refused > self.sent {
            return Err(Missing::because(format!(
                "{} datagrams are reported as dropped by the sending host, but only {} were sent",
                self.refused, self.sent
            )));
        }
        match self.arrivals.iter().find(|arrival| arrival.number >= self.sent) {
            None => Ok(self),
            Some(Arrival { number, .. }) => Err(Missing::because(format!(
                "the arrival of datagram {number} is reported (the first is 0), but only {} were sent",
                self.sent
            ))),
        }
    }
}

fn pack<S: Serializer>(arrivals: &[Arrival], to: S) -> Result<S::Ok, S::Error> {
    FlowArrivals { flow: 0, datagrams: arrivals.to_vec() }.serialize(to)
}

fn unpack<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arrival>, D::Error> {
    Ok(FlowArrivals::deserialize(from)?.datagrams)
}

/// A datagram that arrived; times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Came {
    /// Sending time, since the first of the datagrams that arrived was sent.
    pub(crate) sent_s: f64,
    /// Arrival time, since the first arrival.
    pub(crate) came_s: f64,
    /// Extra delay, compared with the quickest datagram.
    pub(crate) wait_s: f64,
    /// Number of datagrams lost right before it.
    pub(crate) lost_before: u64,
}

/// All datagrams that arrived, in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trace {
    pub(crate) came: Vec<Came>,
    /// Size of each frame, bytes.
    pub(crate) frame: f64,
}

impl Trace {
    pub(crate) fn of(train: &Train) -> Result<Self, Missing> {
        let came = came(&without_copies(&train.arrivals));
        let took_s = came.last().map_or(0.0, |last| last.came_s);
        if came.len() < Train::MIN_ARRIVALS || took_s <= 0.0 {
            let count = came.len();
            return Err(Missing::because(format!("{count} datagrams came, which is too few")));
        }
        let trace = Self { came, frame: train.sizes.frame as f64 };
        if trace.sent_for_s() <= 0.0 {
            return Err(Missing::because("all datagrams that came were sent at one time"));
        }
        Ok(trace)
    }

    /// Whether its datagrams were sent, and came, at more than one time.
    pub(crate) fn lasts(&self) -> bool {
        self.came.last().is_some_and(|last| last.came_s > 0.0) && self.sent_for_s() > 0.0
    }

    /// Time from the first to the last sending of the datagrams that arrived, seconds.
    fn sent_for_s(&self) -> f64 {
        self.came.iter().map(|came| came.sent_s).fold(0.0, f64::max)
    }

    /// Sending rate of the datagrams that arrived and of those lost between them, bytes per second.
    pub(crate) fn offered_bytes_per_s(&self) -> f64 {
        let sent: f64 = self.came.iter().map(|came| 1.0 + came.lost_before as f64).sum();
        (sent - 1.0) * self.frame / self.sent_for_s()
    }

    /// Bytes that had arrived up to and including the arrival at this place.
    pub(crate) fn bytes_with(&self, place: usize) -> f64 {
        (place + 1) as f64 * self.frame
    }
}

/// The first copy of each datagram, in order of arrival.
fn without_copies(arrivals: &[Arrival]) -> Vec<Arrival> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_by_key(|arrival| (arrival.came_ns, arrival.number));
    let mut seen = BTreeSet::new();
    sorted.retain(|arrival| seen.insert(arrival.number));
    sorted
}

fn came(arrivals: &[Arrival]) -> Vec<Came> {
    let Some(first) = arrivals.first() else { return Vec::new() };
    let since = |from: u64, at: u64| (i128::from(at) - i128::from(from)) as f64 / 1e9;
    let first_sent = arrivals.iter().map(|arrival| arrival.sent_ns).min().unwrap_or_default();
    let way = |arrival: &Arrival| {
        since(first.came_ns, arrival.came_ns) - since(first_sent, arrival.sent_ns)
    };
    let quickest = arrivals.iter().map(way).fold(f64::INFINITY, f64::min);
    let mut next = first.number;
    let each = arrivals.iter().map(|arrival| {
        let lost_before = arrival.number.saturating_sub(next);
        next = next.max(arrival.number.saturating_add(1));
        Came {
            sent_s: since(first_sent, arrival.sent_ns),
            came_s: since(first.came_ns, arrival.came_ns),
            wait_s: way(arrival) - quickest,
            lost_before,
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_once_and_what_comes_late_is_no_loss_after_it() {
        let arrival = |number, came_ns| Arrival { number, sent_ns: number * 10, came_ns };
        let came = came(&without_copies(&[
            arrival(0, 100),
            arrival(3, 130),
            arrival(1, 135),
            arrival(3, 140),
            arrival(4, 150),
        ]));
        let lost: Vec<_> = came.iter().map(|came| came.lost_before).collect();
        assert_eq!(lost, [0, 2, 0, 0]);
        assert!(came.iter().all(|came| came.wait_s >= 0.0), "{came:?}");
    }

    #[test]
    fn a_kept_train_comes_back() {
        let arrivals = (0..20).map(|n| Arrival { number: n, sent_ns: n, came_ns: n * 3 }).collect();
        let sizes = Sizes { payload: 1472, packet: 1500, frame: 1514 };
        let (held_percent, rate_waits_per_call) = (Known::Value(1.5), Known::missing("none"));
        let train = Train {
            arrivals,
            sent: 20,
            refused: 0,
            sizes,
            held_percent,
            rate_waits_per_call,
            batch: 1.0,
            joined: None,
        };
        let json = serde_json::to_string(&train).unwrap();
        assert_eq!(serde_json::from_str::<Train>(&json).unwrap(), train);
    }

    fn nothing_of(arrivals: Vec<Arrival>) -> String {
        let sent = arrivals.len() as u64;
        let sizes = Sizes { payload: 1472, packet: 1500, frame: 1514 };
        let missing = || Known::missing("not counted");
        let (held_percent, rate_waits_per_call) = (missing(), missing());
        let train = Train {
            arrivals,
            sent,
            refused: 0,
            sizes,
            held_percent,
            rate_waits_per_call,
            batch: 1.0,
            joined: None,
        };
        Trace::of(&train).unwrap_err().to_string()
    }

    #[test]
    fn a_datagram_that_was_not_sent_makes_no_train() {
        let train = |sent| Train {
            arrivals: [0, 7, 5]
                .map(|number| Arrival { number, sent_ns: number, came_ns: number })
                .into(),
            sent,
            sizes: Sizes { payload: 1472, packet: 1500, frame: 1514 },
            held_percent: Known::missing("not counted"),
            rate_waits_per_call: Known::missing("not counted"),
            batch: 1.0,
            joined: None,
            refused: 0,
        };
        assert_eq!(train(8).checked(), Ok(train(8)));
        let why = train(7).checked().unwrap_err().to_string();
        assert!(why.contains("datagram 7") && why.contains("only 7 were sent"), "{why}");
        let refused = |refused| Train { refused, ..train(8) };
        assert_eq!(refused(8).checked(), Ok(refused(8)));
        let why = refused(u64::MAX).checked().unwrap_err().to_string();
        assert!(why.contains("dropped by the sending host, but only 8 were sent"), "{why}");
    }

    #[test]
    fn any_numbers_and_times_have_a_rate_or_none() {
        let ends = [0, 1, u64::MAX - 1, u64::MAX];
        let arrivals = (0..64).map(|n: usize| Arrival {
            number: if n.is_multiple_of(2) { n as u64 } else { u64::MAX - n as u64 + 1 },
            sent_ns: ends[n / 4 % 4],
            came_ns: ends[n / 16],
        });
        let sizes = Sizes { payload: 1472, packet: 1500, frame: 1514 };
        let missing = || Known::missing("not counted");
        let (held_percent, rate_waits_per_call) = (missing(), missing());
        let arrivals = arrivals.collect();
        let train = Train {
            arrivals,
            sent: 9,
            sizes,
            held_percent,
            rate_waits_per_call,
            batch: 1.0,
            joined: None,
            refused: 0,
        };
        let trace = Trace::of(&train).unwrap();
        assert!(trace.offered_bytes_per_s() > 0.0);
        assert!(crate::shaping(&train).is_ok());
        let _ = crate::behind(&train);
    }

    #[test]
    fn too_few_say_nothing() {
        let arrivals = (0..15).map(|n| Arrival { number: n, sent_ns: n, came_ns: n }).collect();
        assert!(nothing_of(arrivals).contains("15 datagrams"));
    }

    #[test]
    fn what_was_sent_at_one_time_has_no_rate() {
        let arrivals = (0..20).map(|n| Arrival { number: n, sent_ns: 7, came_ns: n }).collect();
        assert!(nothing_of(arrivals).contains("sent at one time"));
    }
}
