//! Whether a shaper gives the rate that it is configured for.

use goodput_model::{
    BitRate, Confirmation, CountedLayer, Difference, Estimate, Known, Missing, Seconds, Shaping,
    ShapingKind, ShapingTest,
};

use crate::brief::Brief;
use crate::burst::burst;
use crate::configured::Configured;
use crate::counted::{Counts, TcpRate};
use crate::explain::TcpLimit;
use crate::kind::{MAX_CHANCE_LOSS_SHARE, waited_for_rate};
use crate::others::{OtherTraffic, Others};

/// Smallest share of the time that a sender waits for a queue that holds it, percent. Measured: 59 to 97, and 0 for a
/// queue that does not.
const MIN_HELD_PERCENT: f64 = 10.0;

/// Compares what was seen of TCP alone, because the far end can't report on datagrams; `why` is that reason. TCP that is
/// slower for another `limit` does not show what the shaper gives.
pub fn judge_tcp(
    configured: Configured,
    why: &Missing,
    tcp: Result<TcpRate, Missing>,
    others: &OtherTraffic,
    limit: Option<&TcpLimit>,
) -> ShapingTest {
    let counts = match (configured.counts, &tcp) {
        (Some(layer), _) => Ok(layer),
        (None, Ok(tcp)) => Ok(counted_by_tcp(configured, tcp).into()),
        (None, Err(why)) => Err(why.clone()),
    };
    let tcp = tcp.and_then(|tcp| counts.clone().map(|counts| tcp.counted(counts, configured.rate)));
    let unknown = || Err(why.clone());
    let of_tcp = within(&configured, "TCP gets", &tcp, others.tcp.as_ref(), None);
    let found = [
        Some(limited(&configured, of_tcp, &tcp, limit)),
        configured.max_burst.map(|most| burst(most, configured.rate, &unknown())),
    ];
    let mut test = answered(configured, found.into_iter().flatten().collect());
    test.reasons.push(format!("judged by TCP alone: {why}"));
    ShapingTest {
        counts: counts.and_then(Counts::layer).into(),
        datagrams_bits_per_s: Known::Missing(why.clone()),
        tcp_bits_per_s: tcp.into(),
        train: Known::Missing(why.clone()),
        ..test
    }
}

/// What TCP alone shows, if the limit in one of the hosts holds it below the rate: not what a shaper gives.
fn limited(
    configured: &Configured,
    (confirmation, words): (Confirmation, String),
    tcp: &Result<Estimate, Missing>,
    limit: Option<&TcpLimit>,
) -> (Confirmation, String) {
    let is_short = tcp.as_ref().is_ok_and(|tcp| tcp.value < configured.rate.0);
    let limit = limit.filter(|limit| limit.is_of_host);
    match limit.filter(|_| is_short && confirmation == Confirmation::Missed) {
        Some(TcpLimit { words: by, .. }) => {
            let words = format!("{words}, limited by {by}: the shaper may give more");
            (Confirmation::Inconclusive, words)
        }
        None => (confirmation, words),
    }
}

/// Compares what was seen with what it is configured for. Others may have had a part of the rate meanwhile.
pub fn judge(
    configured: Configured,
    train: Result<Shaping, Missing>,
    tcp: Result<TcpRate, Missing>,
    others: &OtherTraffic,
) -> ShapingTest {
    let train = train.map(|train| without_senders_own(configured, train));
    let counts = match configured.counts {
        Some(layer) => Ok(layer),
        None => counts(configured, &train, &tcp).map(Counts::from),
    };
    let brief = tcp.as_ref().ok().map(|tcp| Brief::of(&configured, tcp, train.as_ref().ok()));
    let tcp = tcp.map(|tcp| tcp.beyond_bucket(train.as_ref().ok()));
    let tcp = match (&tcp, &counts) {
        (Ok(tcp), Ok(counts)) => Ok(tcp.counted(*counts, configured.rate)),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    };
    let datagrams = match (&train, &counts) {
        (Ok(train), Ok(layer)) => datagrams_in(configured, train, *layer, tcp.as_ref().ok()),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    };
    let found = [
        train.as_ref().ok().and_then(|train| unlimited(&configured, train, tcp.as_ref().ok())),
        train.as_ref().ok().and_then(|train| broken(&configured, train)),
        train.as_ref().ok().and_then(|train| stalled(&configured, train)),
        Some(within(&configured, "datagrams get", &datagrams, others.train.as_ref(), None)),
        Some(within(&configured, "TCP gets", &tcp, others.tcp.as_ref(), brief)),
        configured.max_burst.map(|most| burst(most, configured.rate, &train)),
    ];
    ShapingTest {
        counts: counts.and_then(Counts::layer).into(),
        datagrams_bits_per_s: datagrams.into(),
        tcp_bits_per_s: tcp.into(),
        train: train.into(),
        ..answered(configured, found.into_iter().flatten().collect())
    }
}

/// The answer that follows from what was found of each rate, with the reasons for it.
fn answered(configured: Configured, found: Vec<(Confirmation, String)>) -> ShapingTest {
    let any = |wanted| found.iter().any(|(confirmation, _)| *confirmation == wanted);
    let confirmation = match (any(Confirmation::Missed), any(Confirmation::Inconclusive)) {
        (true, _) => Confirmation::Missed,
        (false, true) => Confirmation::Inconclusive,
        (false, false) => Confirmation::Confirmed,
    };
    let reasons = found.into_iter().filter(|(own, _)| *own == confirmation);
    ShapingTest {
        tolerance_percent: configured.tolerance_percent,
        max_burst_bytes: configured.max_burst,
        reasons: reasons.map(|(_, why)| why).collect(),
        confirmation,
        ..ShapingTest::of(configured.rate)
    }
}

/// What it seems to count: the layer in which datagrams get most nearly the configured rate. If they get that in none, a shaper
/// that gives another rate counts frames, as most do. If their rate is unknown, TCP decides.
pub(crate) fn counts(
    configured: Configured,
    train: &Result<Shaping, Missing>,
    tcp: &Result<TcpRate, Missing>,
) -> Result<CountedLayer, Missing> {
    let of_train = |layer| {
        train.as_ref().map_err(Clone::clone).and_then(|t| datagrams_in(configured, t, layer, None))
    };
    match (of_train(CountedLayer::Frame), tcp) {
        (Ok(_), _) => nearest(configured, of_train),
        (Err(_), Ok(tcp)) => Ok(counted_by_tcp(configured, tcp)),
        (Err(why), Err(_)) => Err(why),
    }
}

/// The same by TCP, whose rate is not known well enough to tell layers apart that differ by one percent: frames, as most
/// shapers count, if it gets the rate in these.
fn counted_by_tcp(configured: Configured, tcp: &TcpRate) -> CountedLayer {
    let frames = tcp_in(tcp, CountedLayer::Frame);
    let off = (frames.value / configured.rate.0 - 1.0).abs() * 100.0;
    let nearest = nearest(configured, |layer| Ok(tcp_in(tcp, layer)));
    nearest.ok().filter(|_| off > configured.tolerance_percent).unwrap_or(CountedLayer::Frame)
}

/// The layer in which `rate` is nearest to the configured rate, if it is that in any; frames otherwise.
fn nearest(
    configured: Configured,
    rate: impl Fn(CountedLayer) -> Result<Estimate, Missing>,
) -> Result<CountedLayer, Missing> {
    let mut nearest = (configured.tolerance_percent / 100.0, CountedLayer::Frame);
    for layer in CountedLayer::ALL {
        let off = (rate(layer)?.value / configured.rate.0 - 1.0).abs();
        if off < nearest.0 {
            nearest = (off, layer);
        }
    }
    Ok(nearest.1)
}

/// The rate that datagrams get. If nothing held them, that at which they came, unless a bucket may have let them through.
fn datagrams_in(
    configured: Configured,
    train: &Shaping,
    counts: impl Into<Counts>,
    tcp: Option<&Estimate>,
) -> Result<Estimate, Missing> {
    let counts: Counts = counts.into();
    let too_slow = || too_slow(train.offered_bits_per_s);
    match (train.rate_bits_per_s.get(), train.kind) {
        (Ok(rate), _) => Ok(counts.counted(rate, train, configured.rate)),
        (Err(_), ShapingKind::None) => {
            if !train.exceeds(configured.rate, configured.tolerance_percent) {
                return Err(if train.lost == 0 { too_slow() } else { lost_too_few(train) });
            }
            if !train.is_unheld(configured.rate, configured.tolerance_percent, tcp) {
                return Err(maybe_saved_up(configured, train));
            }
            let value = train.came_bits_per_s().0;
            let came = Estimate { value, low: value, high: value };
            Ok(counts.counted(&came, train, configured.rate))
        }
        (Err(why), _) => Err(why),
    }
}

/// Why datagrams show nothing.
pub(crate) fn too_slow(offered: BitRate) -> Missing {
    Missing::because(format!("the sender reached only {offered}, and that came through"))
}

/// Why a train of which a few datagrams were lost shows nothing.
fn lost_too_few(train: &Shaping) -> Missing {
    let (offered, came) = (train.offered_bits_per_s, train.came_bits_per_s());
    Missing::because(format!(
        "the sender reached only {offered}, of which {came} came: too little above the rate to tell a policer from other losses"
    ))
}

/// Why a train shows nothing of which more came than the rate.
fn maybe_saved_up(configured: Configured, train: &Shaping) -> Missing {
    let (came, depth) = (train.came_bits_per_s(), train.excess_bytes(configured.rate));
    Missing::because(format!(
        "datagrams came at {came}; a bucket deeper than {depth} would let them through at first"
    ))
}

/// The train, without what busy hosts did to it, if its rate is the sender's own: it met no limit.
fn without_senders_own(configured: Configured, train: Shaping) -> Shaping {
    if train.rate_bits_per_s.value().is_none() || !is_senders_own(configured, &train) {
        return train;
    }
    let why = too_slow(train.offered_bits_per_s);
    Shaping {
        kind: ShapingKind::None,
        rate_bits_per_s: Known::Missing(why.clone()),
        bucket_bytes: Known::Missing(why.clone()),
        queue: Known::Missing(why),
        ..train
    }
}

fn is_senders_own(configured: Configured, train: &Shaping) -> bool {
    let offered = train.offered_bits_per_s;
    let lost_share = train.lost as f64 / (train.sent as f64).max(1.0);
    let Shaping { held_percent, rate_waits_per_call, .. } = train;
    is_own_rate(configured.rate, offered, lost_share, held_percent, rate_waits_per_call)
}

/// Whether a rate is the sender's own: it sent more slowly than the shaper's configured rate, nothing was lost, and neither it nor
/// its queueing discipline had to wait. What waited then waited in busy hosts. A shaper whose timers take the sender's CPU
/// leaves it no time to wait, but counts its own waits.
pub(crate) fn is_own_rate(
    configured: BitRate,
    offered: BitRate,
    lost_share: f64,
    held_percent: &Known<f64>,
    rate_waits_per_call: &Known<f64>,
) -> bool {
    let free = held_percent.value().is_some_and(|held| *held < MIN_HELD_PERCENT);
    let shaped = waited_for_rate(rate_waits_per_call);
    offered.0 < configured.0 && free && !shaped && lost_share <= MAX_CHANCE_LOSS_SHARE
}

pub(crate) fn tcp_in(tcp: &TcpRate, layer: CountedLayer) -> Estimate {
    tcp.goodput.scaled((tcp.packet + layer.extra_bytes()) / tcp.payload)
}

fn unlimited(
    configured: &Configured,
    train: &Shaping,
    tcp: Option<&Estimate>,
) -> Option<(Confirmation, String)> {
    train.is_unheld(configured.rate, configured.tolerance_percent, tcp).then(|| {
        let (came, depth) = (train.came_bits_per_s(), train.excess_bytes(configured.rate));
        let words = format!(
            "nothing holds the rate, unless its bucket is deeper than {depth}: datagrams came at {came}"
        );
        (Confirmation::Missed, words)
    })
}

/// A path that lost everything for a larger part of the time than the rate may be off. One outage says nothing about the
/// shaper; a path that breaks again and again does not give its rate.
fn broken(configured: &Configured, train: &Shaping) -> Option<(Confirmation, String)> {
    let outage_s = train.outage_s?;
    let took_s = took_s(train);
    (outage_s > took_s * configured.tolerance_percent / 100.0).then(|| {
        let (outage, took) = (Seconds(outage_s), Seconds(took_s));
        let (confirmation, when) = match train.outages {
            0 | 1 => (Confirmation::Inconclusive, "the path was broken".to_owned()),
            n => (Confirmation::Missed, format!("the path broke {n} times")),
        };
        let why = format!(
            "{when}: for {outage} of {took} all datagrams were lost, longer than a bucket takes to fill"
        );
        (confirmation, why)
    })
}

/// A path that stood still for a larger part of the time than the rate may be off: what came later says nothing of that time.
fn stalled(configured: &Configured, train: &Shaping) -> Option<(Confirmation, String)> {
    let stalled_s = train.stalled_s?;
    (stalled_s > took_s(train) * configured.tolerance_percent / 100.0).then(|| {
        let why = format!(
            "the path stood still: for {} nothing came, although datagrams were sent, and what had been sent came later",
            Seconds(stalled_s)
        );
        (Confirmation::Inconclusive, why)
    })
}

/// How long a train was sent, seconds.
fn took_s(train: &Shaping) -> f64 {
    train.sent as f64 * train.frame_bytes.0 as f64 * 8.0 / train.offered_bits_per_s.0
}

/// What a rate says of the shaper. If it is `brief`, the time in which it was measured may explain a difference: then it says nothing
/// against the shaper, and the other rates decide.
fn within(
    configured: &Configured,
    who: &str,
    rate: &Result<Estimate, Missing>,
    others: Option<&Others>,
    brief: Option<Brief>,
) -> (Confirmation, String) {
    let rate = match rate {
        Ok(rate) => rate,
        Err(why) => return (Confirmation::Inconclusive, format!("what {who} is unknown: {why}")),
    };
    let off = Difference((rate.value / configured.rate.0 - 1.0) * 100.0);
    let of_it = if off.is_factor() { " the rate" } else { "" };
    let words = format!("{who} {}, {off}{of_it}", BitRate(rate.value));
    let (least, _) = tolerated(configured.rate, configured.tolerance_percent);
    let is_shared = |others: &&Others| rate.high < least && rate.high + others.bits_per_s >= least;
    if let Some(others) = others.filter(is_shared) {
        let words = format!("{words}, but {}: test again without it", others.words());
        return (Confirmation::Inconclusive, words);
    }
    let explained = brief.and_then(|brief| brief.explains(configured, rate));
    match (confirmation(rate, configured.rate, configured.tolerance_percent), explained) {
        (Confirmation::Inconclusive, Some(why)) => {
            (Confirmation::Confirmed, format!("{words}: {why}; datagrams decide"))
        }
        (Confirmation::Inconclusive, None) => {
            (Confirmation::Inconclusive, format!("{words}, too inexactly known to decide"))
        }
        (known, _) => (known, words),
    }
}

/// Whether `rate` is the configured one: its value is within the tolerance, or all of its interval is not.
pub(crate) fn confirmation(
    rate: &Estimate,
    configured: BitRate,
    tolerance_percent: f64,
) -> Confirmation {
    let (least, most) = tolerated(configured, tolerance_percent);
    match (rate.value >= least && rate.value <= most, rate.high < least || rate.low > most) {
        (true, _) => Confirmation::Confirmed,
        (_, true) => Confirmation::Missed,
        _ => Confirmation::Inconclusive,
    }
}

/// The least and the largest rate that a configured one may be, bits per second.
fn tolerated(BitRate(rate): BitRate, tolerance_percent: f64) -> (f64, f64) {
    let tolerance = tolerance_percent / 100.0;
    (rate * (1.0 - tolerance), rate * (1.0 + tolerance))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use goodput_model::{Bytes, Gaps};

    const CONFIGURED: Configured =
        Configured { rate: BitRate(1e8), tolerance_percent: 2.0, max_burst: None, counts: None };

    fn exactly(value: f64) -> Estimate {
        Estimate { value, low: value * 0.999, high: value * 1.001 }
    }

    pub(crate) fn train(frames_per_s: f64) -> Shaping {
        Shaping {
            kind: ShapingKind::Shaper,
            payload_bytes: Bytes(1472),
            packet_bytes: Bytes(1500),
            frame_bytes: Bytes(1514),
            sent: 1000,
            lost: 0,
            refused: 0,
            joined: None,
            stalled_s: None,
            outage_s: None,
            outages: 0,
            offered_bits_per_s: BitRate(4e8),
            held_percent: Known::Value(0.0),
            rate_waits_per_call: Known::Value(0.0),
            rate_bits_per_s: Known::Value(exactly(frames_per_s)),
            bucket_bytes: Known::Value(Estimate { value: 15e3, low: 13e3, high: 17e3 }),
            queue: Known::missing("not asked"),
            windows: Vec::new(),
            gaps: Gaps::default(),
            curve: Vec::new(),
        }
    }

    fn tcp(goodput: f64) -> TcpRate {
        TcpRate { goodput: exactly(goodput), payload: 1448.0, packet: 1500.0, window_s: None }
    }

    fn judged(configured: Configured, frames: f64, goodput: f64) -> ShapingTest {
        judge(configured, Ok(train(frames)), Ok(tcp(goodput)), &OtherTraffic::default())
    }

    /// 98.6 Mbit/s in frames are 100.2 on the wire; but a shaper that was seen to count frames gives 1.4 % less.
    #[test]
    fn what_was_read_is_not_guessed() {
        let configured = Configured { counts: Some(CountedLayer::Frame.into()), ..CONFIGURED };
        let seen = judged(configured, 98.6e6, 94.2e6);
        assert_eq!(seen.counts, Known::Value(CountedLayer::Frame));
        assert!((seen.datagrams_bits_per_s.value().unwrap().value - 98.6e6).abs() < 1.0);
        assert_eq!(judged(CONFIGURED, 98.6e6, 94.2e6).counts, Known::Value(CountedLayer::Wire));
    }

    /// Of cells of ATM, 1696 bytes count for a frame of 1514: 20 Mbit/s leave 17.85 for frames.
    #[test]
    fn a_shaper_that_counts_cells_is_held_against_its_own_count() {
        let tcp_least = 1696.0;
        let counts = Some(Counts::AsSet {
            train: 1696.0,
            train_least: 1696.0,
            tcp: 1696.0,
            tcp_least,
            layer: None,
        });
        let configured = Configured { rate: BitRate(20e6), counts, ..CONFIGURED };
        let frames = 20e6 * 1514.0 / 1696.0;
        let seen = judged(configured, frames, frames * 1448.0 / 1514.0);
        assert_eq!(seen.confirmation, Confirmation::Confirmed, "{:?}", seen.reasons);
        assert!((seen.tcp_bits_per_s.value().unwrap().value / 20e6 - 1.0).abs() < 1e-9);
        assert!(seen.counts.value().is_none());
    }

    #[test]
    fn a_qdisc_that_gives_its_rate_is_confirmed_in_frames() {
        let seen = judged(CONFIGURED, 1e8, 95.6e6);
        assert_eq!(seen.confirmation, Confirmation::Confirmed, "{:?}", seen.reasons);
        assert_eq!(seen.counts, Known::Value(CountedLayer::Frame));
    }

    #[test]
    fn a_policer_of_packets_and_a_shaper_of_the_wire_are_distinguished() {
        assert_eq!(
            judged(CONFIGURED, 1e8 * 1514.0 / 1500.0, 96e6).counts,
            Known::Value(CountedLayer::Packet)
        );
        assert_eq!(
            judged(CONFIGURED, 1e8 * 1514.0 / 1538.0, 94e6).counts,
            Known::Value(CountedLayer::Wire)
        );
    }

    #[test]
    fn tcp_that_gets_77_of_100_is_a_miss_that_says_so() {
        let seen = judged(CONFIGURED, 1e8, 77.4e6);
        assert_eq!(seen.confirmation, Confirmation::Missed);
        assert_eq!(seen.reasons, ["TCP gets 80.9 Mbit/s, -19.1 %"]);
    }

    /// A policer of 2.48 Mbit/s with a bucket of 52.6 kB, as measured: TCP of 2 s got 2.74 Mbit/s.
    #[test]
    fn what_a_bucket_had_saved_up_is_no_excess_of_tcp() {
        let configured = Configured { rate: BitRate(2.48e6), ..CONFIGURED };
        let bucket_bytes = Known::Value(Estimate { value: 52.6e3, low: 51e3, high: 54e3 });
        let policed = |kept| Shaping { bucket_bytes: kept, ..train(2.48e6) };
        let frames = |bits: f64| bits * 1448.0 / 1514.0;
        let goodput = Estimate { value: frames(2.74e6), low: frames(2.57e6), high: frames(2.91e6) };
        let of = |train, window_s| {
            let tcp = TcpRate { goodput, window_s: Some(window_s), ..tcp(1.0) };
            judge(configured, Ok(train), Ok(tcp), &OtherTraffic::default()).confirmation
        };
        assert_eq!(of(policed(bucket_bytes.clone()), 2.0), Confirmation::Confirmed);
        assert_eq!(of(policed(bucket_bytes), 60.0), Confirmation::Missed);
    }

    #[test]
    fn a_rate_far_beyond_is_so_many_times_the_rate() {
        let seen = judged(CONFIGURED, 1e8, 1.4e9);
        assert_eq!(seen.reasons.last().unwrap(), "TCP gets 1.46 Gbit/s, 14.6 times the rate");
    }

    #[test]
    fn a_burst_above_the_largest_is_a_miss_and_an_unknown_one_is_inconclusive() {
        let most = |bytes| Configured { max_burst: Some(Bytes(bytes)), ..CONFIGURED };
        assert_eq!(judged(most(20_000), 1e8, 95.6e6).confirmation, Confirmation::Confirmed);
        assert_eq!(judged(most(14_000), 1e8, 95.6e6).confirmation, Confirmation::Inconclusive);
        assert_eq!(judged(most(10_000), 1e8, 95.6e6).confirmation, Confirmation::Missed);
        let alone = judge(
            most(10_000),
            Err(Missing::because("foreign")),
            Ok(tcp(95.6e6)),
            &OtherTraffic::default(),
        );
        assert_eq!(alone.confirmation, Confirmation::Inconclusive);
        assert!(alone.reasons.iter().all(|why| why.contains("foreign")), "{:?}", alone.reasons);
    }

    #[test]
    fn a_sender_that_is_slower_than_the_rate_decides_nothing() {
        let slow = Shaping {
            kind: ShapingKind::None,
            offered_bits_per_s: BitRate(9e7),
            rate_bits_per_s: Known::missing("none"),
            ..train(1e8)
        };
        let seen = judge(CONFIGURED, Ok(slow), Ok(tcp(95.6e6)), &OtherTraffic::default());
        assert_eq!(seen.confirmation, Confirmation::Inconclusive);
        assert!(seen.reasons[0].contains("only 90 Mbit/s"), "{:?}", seen.reasons);
    }

    /// At 104 % of the rate, a policer drops fewer datagrams than chance may.
    #[test]
    fn a_sender_that_is_hardly_faster_than_the_rate_shows_no_policer_and_no_lack_of_one() {
        let policed = Shaping {
            kind: ShapingKind::None,
            offered_bits_per_s: BitRate(1.04e8),
            sent: 20_800,
            lost: 800,
            rate_bits_per_s: Known::missing("none"),
            ..train(1e8)
        };
        assert!(!policed.exceeds(BitRate(1e8), 2.0));
        let seen =
            judge(CONFIGURED, Ok(policed.clone()), Ok(tcp(95.6e6)), &OtherTraffic::default());
        assert_eq!(seen.confirmation, Confirmation::Inconclusive, "{:?}", seen.reasons);
        let said = &seen.reasons[0];
        assert!(
            said.contains("only 104 Mbit/s, of which 100") && said.contains("policer"),
            "{said}"
        );
        let whole = Shaping { lost: 0, ..policed };
        assert!(whole.exceeds(BitRate(1e8), 2.0), "all came");
        assert_eq!(whole.excess_bytes(BitRate(1e8)), Bytes(800 * 1514), "4 of 104 frames");
    }

    #[test]
    fn a_busy_senders_own_rate_is_none_of_the_shapers() {
        let busy = |held: f64| Shaping {
            offered_bits_per_s: BitRate(9e7),
            held_percent: Known::Value(held),
            ..train(8e7)
        };
        let seen = judge(CONFIGURED, Ok(busy(0.0)), Ok(tcp(95.6e6)), &OtherTraffic::default());
        assert_eq!(seen.confirmation, Confirmation::Inconclusive, "{:?}", seen.reasons);
        let tcp_rate = seen.tcp_bits_per_s.value().unwrap().value;
        assert!((tcp_rate / 1e8 - 1.0).abs() < 1e-3, "TCP is known anyway: {tcp_rate}");
        let train = seen.train.value().unwrap();
        assert_eq!(train.kind, ShapingKind::None, "what waited in busy hosts shows no shaper");
        assert!(train.bucket_bytes.value().is_none());
        let held = judge(CONFIGURED, Ok(busy(70.0)), Ok(tcp(95.6e6)), &OtherTraffic::default());
        assert_eq!(held.confirmation, Confirmation::Missed, "its queue held it");
        let timed = Shaping { rate_waits_per_call: Known::Value(1.0), ..busy(0.0) };
        let timed = judge(CONFIGURED, Ok(timed), Ok(tcp(95.6e6)), &OtherTraffic::default());
        assert_eq!(timed.confirmation, Confirmation::Missed, "its shaper took its CPU");
    }

    #[test]
    fn a_path_that_was_broken_confirms_nothing() {
        let broken = |outage_s, outages| Shaping {
            sent: 66_000,
            outage_s: Some(outage_s),
            outages,
            ..train(1e8)
        };
        let judged = |outage_s, outages| {
            judge(
                CONFIGURED,
                Ok(broken(outage_s, outages)),
                Ok(tcp(95.6e6)),
                &OtherTraffic::default(),
            )
        };
        let once = judged(1.0, 1);
        assert_eq!(once.confirmation, Confirmation::Inconclusive);
        assert!(once.reasons[0].contains("broken: for 1 s of 2.00 s"), "{:?}", once.reasons);
        let again = judged(1.0, 2);
        assert_eq!(again.confirmation, Confirmation::Missed);
        assert!(again.reasons[0].starts_with("the path broke 2 times"), "{:?}", again.reasons);
        let short = judged(0.03, 1);
        assert_eq!(short.confirmation, Confirmation::Confirmed, "{:?}", short.reasons);
    }

    #[test]
    fn another_program_is_judged_by_tcp_alone() {
        let why = Missing::because("another program answers there");
        // 2 % more than the payload of 100 Mbit/s in frames: as many IP packets fit better.
        let of =
            |goodput| judge_tcp(CONFIGURED, &why, Ok(tcp(goodput)), &OtherTraffic::default(), None);
        let seen = of(96.5e6);
        assert_eq!(seen.confirmation, Confirmation::Confirmed, "{:?}", seen.reasons);
        assert_eq!(seen.counts, Known::Value(CountedLayer::Frame));
        let said =
            ["TCP gets 100.9 Mbit/s, +0.9 %", "judged by TCP alone: another program answers there"];
        assert_eq!(seen.reasons, said);
        assert_eq!(of(77e6).confirmation, Confirmation::Missed);
        let with_burst = Configured { max_burst: Some(Bytes(10_000)), ..CONFIGURED };
        let seen = judge_tcp(with_burst, &why, Ok(tcp(95.6e6)), &OtherTraffic::default(), None);
        assert_eq!(seen.confirmation, Confirmation::Inconclusive, "{:?}", seen.reasons);
        assert!(seen.reasons[0].starts_with("the burst is unknown"), "{:?}", seen.reasons);
        let nothing = Err(Missing::because("nothing came"));
        let nothing = judge_tcp(CONFIGURED, &why, nothing, &OtherTraffic::default(), None);
        assert_eq!(nothing.confirmation, Confirmation::Inconclusive);
    }

    /// An iperf3 server with a small receive window behind a healthy shaper.
    #[test]
    fn tcp_alone_that_a_host_limits_says_nothing_of_the_shaper() {
        let why = Missing::because("another program answers there");
        let of = |goodput, is_of_host| {
            let (rule, words) = ("a-rule".to_owned(), "the receive window".to_owned());
            let limit = TcpLimit { rule, words, is_of_host };
            judge_tcp(CONFIGURED, &why, Ok(tcp(goodput)), &OtherTraffic::default(), Some(&limit))
        };
        let slow = of(77e6, true);
        assert_eq!(slow.confirmation, Confirmation::Inconclusive);
        let said = "TCP gets 80.5 Mbit/s, -19.5 %, limited by the receive window: the shaper may give more";
        assert_eq!(slow.reasons[0], said);
        assert_eq!(of(77e6, false).confirmation, Confirmation::Missed, "the path or a shaper");
        assert_eq!(of(95.6e6, true).confirmation, Confirmation::Confirmed);
        assert_eq!(of(190e6, true).confirmation, Confirmation::Missed, "it lets more through");
    }

    #[test]
    fn a_rate_that_fits_nowhere_is_one_of_frames() {
        let seen = judged(CONFIGURED, 77e6, 73e6);
        assert_eq!(seen.counts, Known::Value(CountedLayer::Frame));
        assert_eq!(seen.reasons[0], "datagrams get 77 Mbit/s, -23.0 %");
    }

    /// A limit of nftables of 1 Gbit/s in bytes, whose bucket always holds a second of it. One CPU sends 1.5 Gbit/s, and all
    /// of that passes; TCP, which comes later, gets the rate. Or nothing is in the way, and TCP gets far more.
    #[test]
    fn what_a_deep_bucket_lets_through_is_not_nothing_in_the_way() {
        let configured = Configured { rate: BitRate(1e9), ..CONFIGURED };
        let passed = |offered: f64, seconds: f64| Shaping {
            kind: ShapingKind::None,
            offered_bits_per_s: BitRate(offered),
            sent: (offered * seconds / 8.0 / 1514.0) as u64,
            rate_bits_per_s: Known::missing("none"),
            bucket_bytes: Known::missing("none"),
            ..train(1e9)
        };
        let of = |train: Shaping, goodput: f64| {
            judge(configured, Ok(train), Ok(tcp(goodput)), &OtherTraffic::default())
        };
        let held = of(passed(1.5e9, 1.0), 956e6);
        assert_eq!(held.confirmation, Confirmation::Inconclusive, "{:?}", held.reasons);
        assert!(held.reasons[0].contains("a bucket deeper than 62.5 MB"), "{:?}", held.reasons);
        assert!(!held.is_unheld());
        let free = of(passed(1.5e9, 1.0), 9e9);
        assert_eq!(free.confirmation, Confirmation::Missed, "{:?}", free.reasons);
        assert!(free.is_unheld());
        let deeper = of(passed(4.3e9, 1.0), 956e6);
        assert_eq!(deeper.confirmation, Confirmation::Inconclusive, "{:?}", deeper.reasons);
        let slow = of(passed(4.3e9, 1.0), 1e8);
        assert_eq!(slow.confirmation, Confirmation::Missed, "{:?}", slow.reasons);
        assert!(slow.is_unheld(), "TCP is slow for another reason");
    }

    #[test]
    fn a_path_that_stood_still_confirms_nothing() {
        let stood = |seconds| Shaping { stalled_s: Some(seconds), sent: 66_000, ..train(1e8) };
        let of = |train| judge(CONFIGURED, Ok(train), Ok(tcp(95.6e6)), &OtherTraffic::default());
        let still = of(stood(1.0));
        assert_eq!(still.confirmation, Confirmation::Inconclusive);
        assert!(
            still.reasons[0].starts_with("the path stood still: for 1 s"),
            "{:?}",
            still.reasons
        );
        assert_eq!(of(stood(0.03)).confirmation, Confirmation::Confirmed);
    }

    #[test]
    fn nothing_in_the_way_is_a_miss() {
        let free = Shaping {
            kind: ShapingKind::None,
            rate_bits_per_s: Known::missing("none"),
            bucket_bytes: Known::missing("none"),
            ..train(1e8)
        };
        let seen = judge(CONFIGURED, Ok(free), Ok(tcp(380e6)), &OtherTraffic::default());
        assert_eq!(seen.confirmation, Confirmation::Missed);
        assert!(seen.reasons[0].contains("nothing holds the rate"), "{:?}", seen.reasons);
    }
}
