//! What shortens the time that packets wait in the sender's own queue, or in one that the sender fills.

use goodput_model::Change;

use crate::ceiling::link_ceiling;
use crate::change::{of_host, to_bbr};
use crate::names::{
    DEFAULT_QDISC, LINK_MTU, LINK_SPEED, LINK_TX_QUEUE_LEN, QDISC_KIND, QDISC_LIMIT,
};
use crate::shaper::Shaper;
use crate::short_queue::{needed_bytes, needed_bytes_at};
use crate::thresholds::MIN_SHARE_OF_CEILING;
use crate::view::View;

/// Length of a queue over the one that it needs, from which it is worth shortening: a queue that is twice as long doubles
/// the round trip.
const MIN_LONG_QUEUE_RATIO: f64 = 2.0;
/// What fq_codel lets packets wait in a queue that stands, seconds (`target` of tc-fq_codel(8)).
const CODEL_TARGET_S: f64 = 0.005;
/// Queues that hold whatever comes, up to their length.
const PLAIN: [&str; 3] = ["pfifo_fast", "pfifo", "bfifo"];

/// What shortens the time that packets wait: the sender's own queue, as far as it holds them, and a sender that fills none.
pub fn shorter_waits(view: &View) -> Vec<Change> {
    let own = [shorter_bucket_queue(view), managed_queue(view).or_else(|| shorter_fifo(view))];
    let bbr = to_bbr(view, "BBR keeps the queue before the bottleneck short");
    own.into_iter().flatten().chain(bbr).collect()
}

/// How long packets wait now, seconds: in the flows' own round trips, or if these are unknown, in those beside them.
fn waits_s(view: &View) -> Option<f64> {
    let own = || Some(view.sender.rtt_s().ok()? - view.sender.min_rtt_s().ok()?);
    let beside = || view.probed().ok().map(|probed| probed.loaded_s - probed.idle_s);
    own().or_else(beside)
}

/// Whether a queue of this length before this rate, bits per second, would hold less than what waits there now. A longer one
/// shortens no wait.
fn is_shorter_than_what_waits(view: &View, bytes: f64, rate: f64) -> bool {
    waits_s(view).is_some_and(|waits| bytes < waits * rate / 8.0)
}

/// A shorter queue before the sender's token bucket, if it is longer than it has to be, and holds more than it has to.
fn shorter_bucket_queue(view: &View) -> Option<Change> {
    let shaper = Shaper::of(view).ok().flatten().filter(|shaper| shaper.kind == "tbf")?;
    let (limit, needed) = (view.sender.count(QDISC_LIMIT).ok()?, needed_bytes(view, &shaper));
    let values = (Some(format!("{limit:.0}")), format!("{needed:.0}"));
    let why = "one round trip plus 10 ms at its rate, at least two batches of segmentation offload";
    let is_long = limit >= MIN_LONG_QUEUE_RATIO * needed
        && is_shorter_than_what_waits(view, needed, shaper.rate);
    is_long.then(|| of_host(&view.sender, "qdisc.tbf.limit", Some(shaper.device), values, why))
}

/// A managed queue before the sender's full link, in place of a plain one. The kernel has fq_codel for sure if it gives it
/// to new devices.
fn managed_queue(view: &View) -> Option<Change> {
    let kind = plain_queue(view)?;
    let values = (Some(kind.into()), "fq_codel".into());
    let why = "keeps the delay of a full queue at 5 ms (RFC 8290)";
    let device = view.sender.device().ok()?;
    let is_known = view.sender.text(DEFAULT_QDISC) == Ok("fq_codel");
    let helps = waits_s(view).is_some_and(|waits| waits > CODEL_TARGET_S);
    (is_known && helps).then(|| of_host(&view.sender, QDISC_KIND, Some(device), values, why))
}

/// A shorter plain queue before the sender's full link. Only pfifo_fast follows the device's length (tc-pfifo_fast(8)).
fn shorter_fifo(view: &View) -> Option<Change> {
    let side = &view.sender;
    let kind = plain_queue(view)?;
    let (length, frame) = (side.count(LINK_TX_QUEUE_LEN).ok()?, side.count(LINK_MTU).ok()?);
    let speed = side.count(LINK_SPEED).ok()?;
    let needed = (needed_bytes_at(view, speed) / frame).ceil();
    let values = (Some(format!("{length:.0}")), format!("{needed:.0}"));
    let why = "packets of one round trip plus 10 ms at the speed of the link";
    let is_long = kind == "pfifo_fast"
        && length >= MIN_LONG_QUEUE_RATIO * needed
        && is_shorter_than_what_waits(view, needed * frame, speed);
    is_long.then(|| of_host(side, "link.txqueuelen", side.device().ok(), values, why))
}

/// The kind of the sender's queue, if it is a plain one before a link that is full.
fn plain_queue<'a>(view: &View<'a>) -> Option<&'a str> {
    let kind = view.sender.text(QDISC_KIND).ok().filter(|kind| PLAIN.contains(kind))?;
    let ceiling = link_ceiling(view, &view.sender).ok()?;
    (view.goodput().ok()? >= MIN_SHARE_OF_CEILING * ceiling).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName::Near;

    fn bloated() -> Case {
        Case::path_rate().tcp(|tcp, _| tcp.rtt_us = Some(154_000))
    }

    fn proposed(case: Case) -> Vec<String> {
        let evidence = case.evidence();
        shorter_waits(&View::new(&evidence)).iter().map(Change::as_argument).collect()
    }

    #[test]
    fn nothing_is_shortened_that_is_short_enough() {
        let shaped = bloated().tbf(100e6, 125_000).fact(Near, QDISC_LIMIT, 500_000u64);
        assert_eq!(proposed(shaped.congestion("cubic")), ["socket.congestion=cubic,bbr"]);
        assert_eq!(proposed(bloated().congestion("bbr")), [""; 0]);
    }

    #[test]
    fn a_limit_that_is_longer_than_what_waits_is_not_proposed() {
        // 30 ms at 100 Mbit/s are needed. The limit holds 240 ms; 20 ms wait there, or 134 ms.
        let shaped = |case: Case| {
            let case = case.tbf(100e6, 125_000).fact(Near, QDISC_LIMIT, 3_000_000u64);
            proposed(case.congestion("bbr"))
        };
        let waiting = |rtt_us| Case::path_rate().tcp(move |tcp, _| tcp.rtt_us = Some(rtt_us));
        assert_eq!(shaped(waiting(40_000)), [""; 0]);
        assert_eq!(shaped(waiting(154_000)), ["qdisc.tbf.limit@eth0=3000000,375000"]);
    }

    #[test]
    fn a_plain_queue_before_a_full_link_gets_managed_where_the_kernel_can() {
        let full = |speed: u64| {
            let case = bloated().fact(Near, LINK_SPEED, speed).fact(Near, QDISC_KIND, "pfifo_fast");
            case.fact(Near, LINK_TX_QUEUE_LEN, 10_000u64).congestion("bbr")
        };
        let known = full(100_000_000).fact(Near, DEFAULT_QDISC, "fq_codel");
        assert_eq!(proposed(known), ["qdisc.kind@eth0=pfifo_fast,fq_codel"]);
        let unknown = full(100_000_000).fact(Near, DEFAULT_QDISC, "pfifo_fast");
        assert_eq!(proposed(unknown), ["link.txqueuelen@eth0=10000,250"]);
        assert_eq!(proposed(full(1_000_000_000)), [""; 0], "another queue holds the packets");
    }
}
