//! # What it means
//! This host is ready for more than arrives. The network or the server is the limit, but this end
//! alone can't see which.
//!
//! # Why it limits
//! Payload arrives no faster than the server sends it and the path carries it.
//!
//! # How it is seen
//! By elimination. The server reports nothing about itself. This host waits for data, its receive
//! window would allow at least a quarter more, and its own link is not full.
//!
//! # What to try
//! Repeat the test with two flows (`--flows 2`). If they are clearly faster together, the limit is
//! one of each connection: the server's program, its send buffer or its congestion window. If not,
//! the path or the whole server is the limit. `goodput serve` on the server would show which.
//!
//! # When it is wrong
//! The server's retransmissions, its congestion window, its send buffer, its CPU and its disk can't be seen from here. A
//! server that sends steadily at a low rate and a path that carries this rate look the same, unless packets are lost or
//! wait in a queue. See path-rate and server-stalls for what this end can see.
//!
//! # Source
//! Siekkinen, Urvoy-Keller, Biersack, Collange 2008 (what the receiving side of a connection shows).

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::arriving_rate::arriving_rate;
use crate::bounds::next_after;
use crate::elimination::{is_local, receiver_is_short};
use crate::finding::{Draft, percent, rate, time};
use crate::parts;
use crate::remedy::Again;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "server-or-path",
    title: "The network or the server: this end can't tell which",
    refines: &[parts::PATH_RATE, parts::SENDING_PROGRAM],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "reader_waiting_percent",
    witness_words: ("time in which the reader was waiting", " %"),
    source: include_str!("server_or_path.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.receiver.elapsed_s()?;
    if !view.is_sender_silent() || is_asking(view) {
        return Ok(None);
    }
    let waits = view.receiver.blocked_share()?;
    if receiver_is_short(view) || is_local(view)? || !view.receiver_has_room()? {
        return Ok(None);
    }
    // A rate that stands while a queue does is the path's.
    if arriving_rate(view).is_ok_and(|rate| rate.is_some()) {
        return Ok(None);
    }
    let (own, side) = (view.receiver.place(), &view.receiver);
    let summary = "the network or the server: this end can't tell which";
    Draft::new(RULE.id, Place::Path, Confidence::Possible, summary)
        .saw(own, RULE.witness_name, waits * 100.0, side.waits_text(waits))
        .saw_if(own, "own_window_bits_per_s", side.own_window_rate(), |allowed| {
            format!("this host's receive window would allow {}", rate(allowed))
        })
        .saw_if(own, "out_of_order_percent", side.out_of_order_share(), |early| match early {
            0.0 => "all payload came in order: no sign of loss on the path".into(),
            early => {
                format!("{} of the segments came out of order: lost or overtaken", percent(early))
            }
        })
        .saw_if(own, "arrival_rtt_us", side.arrival_rtt_s().map(|rtt| rtt * 1e6), |us| {
            let base = side.min_rtt_s().map_or_else(|_| "unknown".into(), time);
            format!("round trips by the arriving data took {}, {base} at best", time(us / 1e6))
        })
        .predicted(next_after(view, &[RULE.id]))
        .again(
            &Again::With("--flows 2"),
            "faster together means a limit of each connection, at the server",
        )
        .advice("goodput serve on the server would show which of the two limits")
        .found()
}

/// Whether the time passes between files.
fn is_asking(view: &View) -> bool {
    let asking = view.fetches().and_then(|fetches| fetches.asking_share.value().copied());
    asking.is_some_and(|share| share >= MIN_STOPPED_TIME_SHARE)
}

/// Share of the time in which the reader waited for data, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.receiver.blocked_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, fires, quiet};

    #[test]
    fn says_that_either_may_be_it_and_what_would_decide() {
        let case = || Case::healthy().without_links().silent_sender(|_, _| ());
        let finding = fires(&RULE, case());
        assert_eq!(finding.confidence, Confidence::Possible);
        assert!(finding.advice.iter().any(|text| text.contains("--flows 2")), "{finding:?}");
        assert_eq!(diagnose(&case().evidence()).verdict.limit, RULE.id);
    }

    #[test]
    fn stays_quiet_if_this_host_is_what_limits() {
        let case = || Case::healthy().without_links().silent_sender(|_, _| ());
        quiet(&RULE, case().reader(0.05, 0.0, 0.9));
        quiet(&RULE, case().arriving(|tcp, _| tcp.rcv_wnd_bytes = Some(4 << 20)));
        quiet(&RULE, case().asking(0.5));
        quiet(&RULE, Case::healthy().goodput(940e6).silent_sender(|_, _| ()));
        quiet(&RULE, Case::healthy());
    }
}
