//! The token bucket on the sender's own device, if there is one.

use goodput_ceiling::bucket::{BucketNeeds, PLAUSIBLE_LATENESS_S, USUAL_FILL_S};
use goodput_ceiling::counting::{self, Joined, burst_at_most};
use goodput_model::Missing;

use crate::framing::{QDISC_EXTRA_BYTES, packet};
use crate::htb::{self, Leaf};
use crate::names;
use crate::thresholds::{MIN_SHARE_OF_SHAPER_RATE, MIN_SHARE_OF_SHAPER_RATE_IF_WAITING};
use crate::view::{Side, View, positive};

/// Queueing disciplines that shape to a rate.
const SHAPERS: [&str; 4] = ["tbf", "htb", "hfsc", "cake"];
/// Burst below which segmentation-offload super-packets are cut up, bytes.
pub use goodput_ceiling::bucket::SUPER_PACKET_BYTES as BATCH_BYTES;
/// Wake-up lateness that a bucket must bridge, seconds.
const LATENESS_S: f64 = USUAL_FILL_S;
/// Mean lateness that high-resolution timers hardly exceed, microseconds.
const PLAUSIBLE_LATENESS_US: f64 = PLAUSIBLE_LATENESS_S * 1e6;
/// By how much a bucket of little more than a frame stretches a packet's cycle, and how much such a
/// bucket bridges, microseconds. Measured: 1.1 to 6, up to 12 on a virtual machine.
const USUAL_STRETCH_US: f64 = 8.0;
const USUAL_BRIDGED_US: f64 = 15.0;
/// Share of the bucketfuls that had to be waited for, above which the bucket is usually empty.
const MIN_EMPTY_SHARE: f64 = 0.5;
/// Share of the sent units that had to wait for tokens, above which packets usually wait.
const MIN_WAITING_SHARE: f64 = 0.1;

/// What a bucket needs that costs neither goodput nor batching at `rate`, bits per second, with frames of `frame` bytes. No
/// fact says how late this host's timers are, so they get what is usual: 1 ms of the rate.
fn needs(rate: f64, frame: f64) -> BucketNeeds {
    BucketNeeds { rate, frame, super_packet: BATCH_BYTES, lateness_s: None, super_lateness_s: None }
}

/// Burst, bytes, that costs neither goodput nor batching: 1 ms of the rate, at least one super-packet.
pub fn needed_burst(rate: f64, frame: f64) -> f64 {
    needs(rate, frame).bytes()
}

/// A shaper on the sender's device.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaper<'a> {
    /// Discipline.
    pub kind: &'a str,
    /// Device that the shaper sits on.
    pub device: &'a str,
    /// Its configured rate, bits per second, in the bytes that the shaper counts.
    pub rate: f64,
    /// Goodput that this rate allows, bits per second.
    pub ceiling: f64,
    /// What its rate leaves for frames, bits per second: all of it, unless it counts more or fewer bytes than these have. By a table of
    /// sizes, super-packets have fewer.
    pub in_frames: f64,
    /// Length of a full frame as the shaper counts it, bytes.
    pub frame: f64,
    /// Bytes that the bucket holds, if known.
    pub burst: Result<f64, Missing>,
    /// Whether it is a tbf with a peak rate as well, whose bucket holds hardly more than a frame.
    pub has_peak: bool,
    /// The htb class, as tc(8) writes it, if the shaper is one and its counters show it.
    pub class: Option<&'a str>,
}

impl<'a> Shaper<'a> {
    /// The shaper on the sender's device; `None` if there is none.
    pub fn of(view: &View<'a>) -> Result<Option<Self>, Missing> {
        let side = &view.sender;
        let kind = side.text(names::QDISC_KIND)?;
        // An htb class sends up to its ceil as long as its parent lends.
        let class = used_class(side, kind);
        let configured = match &class {
            Some(class) => Ok(class.ceil),
            None => side.count(names::QDISC_CEIL).or_else(|_| side.count(names::QDISC_RATE)),
        };
        let rate = match configured {
            Ok(rate) if rate > 0.0 => rate,
            Err(why) if SHAPERS.contains(&kind) => return Err(why),
            _ => return Ok(None),
        };
        let packet = packet(view)?;
        let (id, burst) =
            (class.as_ref().map(|class| class.id), class.as_ref().map(|class| class.burst));
        let burst = burst.map_or_else(|| side.count(names::QDISC_BURST), Ok);
        let facts = &side.end()?.before;
        let of = id.map_or_else(|| "qdisc".to_owned(), |id| format!("class.{id}"));
        let frame = packet.counted_frame();
        let alone = counting::alone(facts, &of, frame);
        let (payload, rtt_s) = (packet.payload / packet.frames, view.sender.min_rtt_s().ok());
        let joined = Joined::by_tcp(facts, rate, rtt_s, payload, frame);
        let most = burst.as_ref().ok().map(|burst| burst_at_most(*burst, rate));
        let each = counting::least_of(facts, &of, kind, most, joined).filter(|_| view.is_tcp());
        // At best, super-packets have the overhead once.
        let in_frames = rate * frame / each.map_or(alone, |each| each.bytes.min(alone));
        Ok(Some(Self {
            kind,
            device: side.device()?,
            rate,
            ceiling: in_frames * packet.share(QDISC_EXTRA_BYTES),
            in_frames,
            frame: alone,
            has_peak: kind == "tbf" && counting::has_peak(facts),
            class: id,
            burst,
        }))
    }

    /// Burst that costs neither goodput nor batching: 1 ms of the rate, at least one super-packet.
    pub fn needed_burst(&self) -> f64 {
        needed_burst(self.rate, self.frame)
    }

    /// What that burst is for, after its number of bytes.
    pub fn what_needs(&self) -> &'static str {
        let needs = needs(self.rate, self.frame);
        match needs.for_rate() >= needs.super_packet {
            true => "would be 1 ms",
            false => "would hold a batch of segmentation offload",
        }
    }

    /// How late each packet would have to leave, on average, to explain `goodput`, microseconds: the lateness
    /// that the bucket bridges, plus the stretch of one packet's cycle. Tokens that come in while
    /// the bucket is full are lost (net/sched/sch_tbf.c, `tbf_dequeue`).
    pub fn implied_lateness_us(&self, goodput: f64) -> Result<f64, Missing> {
        Ok(self.bridged_us()? + self.stretched_us(goodput))
    }

    /// Whether the bucket bridges any lateness of a wake-up, so that it costs no goodput.
    pub fn bridges_wakeups(&self) -> Result<bool, Missing> {
        Ok(self.bridged_us()? >= LATENESS_S * 1e6)
    }

    fn bridged_us(&self) -> Result<f64, Missing> {
        Ok((self.burst.clone()? - self.frame).max(0.0) * 8.0 / self.rate * 1e6)
    }

    fn stretched_us(&self, goodput: f64) -> f64 {
        self.frame * (self.ceiling / goodput - 1.0) * 8.0 / self.rate * 1e6
    }

    /// Whether the usual lateness of timers explains `goodput`, so that nothing else need.
    pub fn usual_lateness_explains(&self, goodput: f64) -> Result<bool, Missing> {
        Ok(self.bridged_us()? <= USUAL_BRIDGED_US && self.stretched_us(goodput) <= USUAL_STRETCH_US)
    }

    /// Whether a plausible lateness of timers explains `goodput`.
    pub fn lateness_explains(&self, goodput: f64) -> Result<bool, Missing> {
        Ok(self.implied_lateness_us(goodput)? <= PLAUSIBLE_LATENESS_US)
    }

    /// Payload that it let through, bits per second. TCP counts what it sent, so what gets lost behind the shaper, and is sent
    /// again, is in it: it used the shaper's tokens. Of datagrams it is what arrived.
    pub fn passed(&self, view: &View) -> f64 {
        let sent = || {
            let (sent, share) = (view.sender.sent_rate()?, self.passed_share(view)?);
            // The queue goes on counting after TCP's last sample, but no shaper lets more through than its rate.
            Ok::<_, Missing>(if share < 1.0 { (sent * share).min(self.ceiling) } else { sent })
        };
        view.goodput_or_zero().max(sent().unwrap_or(0.0))
    }

    /// Share of what TCP sent that its queue did not drop. TCP counts a super-packet that its own queue refuses, and
    /// counts it again at each new attempt (net/ipv4/tcp_output.c, `__tcp_transmit_skb` and `tcp_write_xmit`), while the
    /// queue counts one drop for all of its segments. So the bytes that left the queue bound the share of the packets.
    fn passed_share(&self, view: &View) -> Result<f64, Missing> {
        let side = &view.sender;
        let of_packets = 1.0 - side.queue_drop_share()?;
        let (Ok(left), Ok(sent)) = (side.grown(names::QDISC_SENT_BYTES), side.sent_in_all()) else {
            return Ok(of_packets);
        };
        if of_packets == 1.0 || sent <= 0.0 {
            return Ok(of_packets);
        }
        let payload = left as f64 * self.ceiling / self.in_frames;
        Ok(of_packets.min(payload / sent))
    }

    /// Whether it gives its rate: nearly all of it, or a little less while packets wait for tokens.
    pub fn gives(&self, view: &View) -> bool {
        let share = self.passed(view) / self.ceiling;
        share >= MIN_SHARE_OF_SHAPER_RATE
            || share >= MIN_SHARE_OF_SHAPER_RATE_IF_WAITING
                && self.makes_wait(view).unwrap_or(false)
    }

    /// Whether it cuts up super-packets: tbf does if they exceed its bucket, or that of its peak rate (net/sched/sch_tbf.c,
    /// `tbf_segment`).
    pub fn cuts_up(&self) -> bool {
        let is_small = || self.burst.as_ref().is_ok_and(|burst| *burst < BATCH_BYTES);
        self.kind == "tbf" && (self.has_peak || is_small())
    }

    /// Whether packets usually had to wait for tokens. A bucket that takes whole super-packets makes
    /// super-packets wait, while the sent counters count their segments. Every shaper but tbf does so:
    /// only tbf cuts up what exceeds its bucket (net/sched/sch_tbf.c, `tbf_segment`).
    pub fn makes_wait(&self, view: &View) -> Result<bool, Missing> {
        let may_cut = self.kind == "tbf" && self.burst.is_err();
        let unit = if self.cuts_up() || may_cut { 1.0 } else { BATCH_BYTES / self.frame };
        Ok(overlimits_per_packet(view)? * unit >= MIN_WAITING_SHARE)
    }

    /// Whether packets find the bucket empty at least every second time. A bucket that is filled faster than it is
    /// emptied holds a bucketful and makes no packet wait.
    pub fn is_found_empty(&self, view: &View) -> Result<bool, Missing> {
        let packets = (self.burst.clone()? / self.frame).max(1.0);
        Ok(overlimits_per_packet(view)? * packets >= MIN_EMPTY_SHARE)
    }
}

/// The htb class that the flows went through, if the counters show it.
fn used_class<'a>(side: &Side<'a>, kind: &str) -> Option<Leaf<'a>> {
    (kind == "htb").then(|| htb::used(&htb::leaves(side).ok()?).ok()).flatten()
}

/// Waits at the local shaper per packet.
pub fn overlimits_per_packet(view: &View) -> Result<f64, Missing> {
    let packets = positive(view.sender.grown(names::QDISC_PACKETS)? as f64, "the packets sent")?;
    Ok(view.sender.grown(names::QDISC_OVERLIMITS)? as f64 / packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName;

    /// A tbf of 50 Mbit/s with `overhead 40`, as measured: 47.8 Mbit/s if super-packets pass whole.
    #[test]
    fn overhead_that_counts_leaves_less_for_frames() {
        let over = |rtt_us: u64, burst, overhead: u64, layer: &str| {
            let case = Case::healthy().tbf(5e7, burst);
            let case = case.tcp(move |tcp, _| tcp.min_rtt_us = Some(rtt_us));
            let case = case.fact(EndName::Near, "qdisc.overhead_bytes", overhead);
            let evidence = case.fact(EndName::Near, "qdisc.link_layer", layer).evidence();
            let view = View::new(&evidence);
            let shaper = Shaper::of(&view).unwrap().unwrap();
            format!("{:.1}", shaper.ceiling / 1e6)
        };
        let ceiling = |burst, overhead, layer: &str| over(100, burst, overhead, layer);
        assert_eq!(ceiling(70_000, 0, "ethernet"), "47.8");
        assert_eq!(ceiling(70_000, 40, "ethernet"), "47.8", "once for a super-packet");
        assert_eq!(over(42_000, 70_000, 40, "ethernet"), "47.7", "TCP joins fewer segments");
        assert_eq!(ceiling(1600, 40, "ethernet"), "46.6", "each is cut off");
        assert_eq!(ceiling(1600, 0, "atm"), "42.7");
    }

    #[test]
    fn lateness_follows_the_measured_curve() {
        // 1 Gbit/s with 1600 bytes gives 75 % of its ceiling: 4.1 µs late, as measured.
        let evidence = Case::shaper_burst().evidence();
        let shaper = Shaper::of(&View::new(&evidence)).unwrap().unwrap();
        let late = shaper.implied_lateness_us(0.75 * 956.4e6).unwrap();
        assert!((4.5..5.0).contains(&late), "{late}");
        assert_eq!(shaper.needed_burst(), 125_000.0);
    }

    #[test]
    fn a_bucket_of_many_frames_bridges_what_timers_are_late() {
        // 12500 bytes and 15 kB of queue at 100 Mbit/s, as measured: 73.9 Mbit/s is the queue's.
        let evidence = Case::shaper_burst().tbf(1e8, 12_500).evidence();
        let shaper = Shaper::of(&View::new(&evidence)).unwrap().unwrap();
        assert_eq!(shaper.lateness_explains(73.9e6), Ok(false));
    }

    /// 64 flows at 100 Mbit/s, as measured: TCP counted 14 GB, of which 0.8 GB left the queue, with 1.26 million drops of
    /// super-packets beside 529 thousand packets.
    #[test]
    fn what_its_own_queue_refused_has_not_passed() {
        let passed = |left_bytes: u64, drops: u64| {
            let case = Case::healthy().tbf(1e8, 65_536).goodput(90e6).retransmitted(15.0);
            let case = case.grows(EndName::Near, names::QDISC_DROPS, drops);
            let evidence =
                case.grows(EndName::Near, names::QDISC_SENT_BYTES, left_bytes).evidence();
            let view = View::new(&evidence);
            let shaper = Shaper::of(&view).unwrap().unwrap();
            shaper.passed(&view) / shaper.ceiling
        };
        let goodput = 90.0 / 95.6;
        assert!((passed(1_000_000, 200_000) - goodput).abs() < 0.01, "what arrived has passed");
        assert_eq!(passed(1 << 50, 200_000), 1.0, "other traffic, or what left the queue later");
        assert!(passed(1_000_000, 0) > 10.0, "what no queue refused is what was sent");
    }

    /// No super-packet passes the bucket of a peak rate, however large the other bucket is.
    #[test]
    fn a_peak_rate_has_super_packets_cut_up() {
        let cuts = |case: Case| {
            let evidence = case.overlimits(0.02).evidence();
            let view = View::new(&evidence);
            let shaper = Shaper::of(&view).unwrap().unwrap();
            (shaper.cuts_up(), shaper.makes_wait(&view))
        };
        let tbf = || Case::healthy().tbf(4e9, 100_000);
        let peak = || tbf().fact(EndName::Near, "qdisc.peak_rate_bits_per_s", 5_000_000_000u64);
        assert_eq!(cuts(tbf()), (false, Ok(true)));
        assert_eq!(cuts(peak()), (true, Ok(false)));
    }

    #[test]
    fn whole_super_packets_wait_though_few_segments_do() {
        let waits = |burst| {
            let evidence = Case::healthy().tbf(4e9, burst).overlimits(0.02).evidence();
            let view = View::new(&evidence);
            Shaper::of(&view).unwrap().unwrap().makes_wait(&view)
        };
        assert_eq!((waits(100_000), waits(5000)), (Ok(true), Ok(false)));
    }
}
