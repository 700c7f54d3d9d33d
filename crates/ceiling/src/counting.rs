//! What a shaper of Linux counts for a packet, by the facts of its queueing discipline or class.

use goodput_model::Snapshot;

/// A payload of 48 bytes in each cell of 53 (ATM, ITU-T I.361).
const CELL_PAYLOAD_BYTES: f64 = 48.0;
const CELL_BYTES: f64 = 53.0;
/// One byte more for each of so many, or part of them (PTM, IEEE 802.3 61.3; as cake counts it).
const PTM_BYTES: f64 = 64.0;
/// The kernel reports a bucket as the time in which it fills, in steps of this, seconds (`PSCHED_TICK2NS`,
/// include/net/pkt_sched.h).
const BURST_STEP_S: f64 = 64e-9;
/// The discipline's own facts.
const DISCIPLINE: &str = "qdisc";
/// Those of its table of sizes (tc-stab(8)).
const TABLE: &str = "qdisc.table";

/// What the facts `of` a discipline, class or table of sizes have it count for this many bytes.
pub fn in_layer(facts: &Snapshot, of: &str, bytes: f64) -> f64 {
    let fact = |what: &str| facts.number(&format!("{of}.{what}")).unwrap_or(0.0);
    let length = (bytes + fact("overhead_bytes")).max(fact("least_bytes"));
    match facts.text(&format!("{of}.link_layer")) {
        Ok("atm") => (length / CELL_PAYLOAD_BYTES).ceil() * CELL_BYTES,
        Ok("ptm") => length + (length / PTM_BYTES).ceil(),
        _ => length,
    }
}

/// What the table of sizes has the discipline count for a frame (net/sched/sch_api.c, `__qdisc_calculate_pkt_len`): the frame, if
/// there is none.
pub fn by_table(facts: &Snapshot, frame: f64) -> f64 {
    in_layer(facts, TABLE, frame)
}

/// What a shaper, or its class, counts for a frame that leaves alone (net/sched/sch_generic.c `psched_l2t_ns`;
/// net/sched/sch_cake.c `cake_calc_overhead`): the frame, if the facts don't say. cake adds its overhead to the IP packet.
pub fn alone(facts: &Snapshot, of: &str, frame: f64) -> f64 {
    let base = match facts.text(&format!("{of}.counts_from")) {
        Ok("packet") => frame - crate::ETHERNET_HEADER_BYTES,
        _ => by_table(facts, frame),
    };
    in_layer(facts, of, base)
}

/// What a flow of TCP has sent within this time leaves in one packet, seconds (`sk_pacing_shift` of 10; net/ipv4/tcp_output.c,
/// `tcp_tso_autosize`).
const AUTOSIZE_S: f64 = 1.0 / 1024.0;
/// Most by which TCP paces faster than it gets through (`tcp_pacing_ss_ratio`, Documentation/networking/ip-sysctl.rst).
const PACED_TIMES: f64 = 2.0;
/// Round trip for each of which the rest of a packet is halved, seconds (`tcp_tso_rtt_log` of 9).
const HALVING_RTT_S: f64 = 512e-6;
/// Least number of segments in a packet (`tcp_min_tso_segs`).
const LEAST_SEGMENTS: f64 = 2.0;
/// Largest super-packet of most devices, bytes (`GSO_LEGACY_MAX_SIZE`, include/linux/netdevice.h).
const USUAL_GSO_BYTES: f64 = 65_536.0;

/// Segments that leave the sender in one packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joined {
    /// Their number.
    pub segments: f64,
    /// Payload of each, bytes.
    pub payload: f64,
    /// Frame of each, bytes.
    pub frame: f64,
}

impl Joined {
    /// Most segments of TCP that leave in one packet, by the `facts` of the device (net/ipv4/tcp_output.c, `tcp_tso_autosize`; the
    /// round trip counts since Linux 5.18, and makes packets larger). `rate`: at which TCP gets through, bits per second. Without a
    /// known round trip, it may be so short that only the device limits packets.
    #[must_use]
    pub fn by_tcp(
        facts: &Snapshot,
        rate: f64,
        min_rtt_s: Option<f64>,
        payload: f64,
        frame: f64,
    ) -> Self {
        let fact = |name: &str| facts.number(name).ok().filter(|value| *value > 0.0);
        let most = fact("link.gso_max_bytes").unwrap_or(USUAL_GSO_BYTES);
        let by_rtt = min_rtt_s.map_or(most, |rtt| most / (rtt / HALVING_RTT_S).floor().exp2());
        let bytes = (PACED_TIMES * rate / 8.0 * AUTOSIZE_S + by_rtt).min(most);
        let segments = (bytes / payload).floor().max(LEAST_SEGMENTS);
        let allowed = fact("link.gso_max_segments").unwrap_or(f64::INFINITY);
        Self { segments: segments.min(allowed).max(1.0), payload, frame }
    }
}

/// What a shaper counts for each of several segments in one packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Each {
    /// Bytes that count.
    pub bytes: f64,
    /// Whether the packet was cut up before it was counted.
    pub is_cut: bool,
}

/// What a shaper of this `kind`, or its class, counts for each of such segments. htb passes them whole, and so does tbf if its
/// bucket holds them: they have the overhead of its rate once, and a table of sizes takes them with one header. tbf cuts others
/// up, behind the table (net/sched/sch_tbf.c, `tbf_segment`). `None` if each counts as if it left alone: cake counts the overhead
/// of each, cut up or not (net/sched/sch_cake.c, `cake_overhead`).
///
/// A tbf with a peak rate passes whole only what the bucket of that rate holds as well (`tbf_change`, `max_size`). The kernel does not
/// report its size; it is hardly larger than a frame, or it would not keep to the peak rate.
pub fn each_of(
    facts: &Snapshot,
    of: &str,
    kind: &str,
    burst_at_most: Option<f64>,
    joined: Joined,
) -> Option<Each> {
    let together = in_layer(facts, of, together(facts, joined));
    let whole = Each { bytes: together / joined.segments, is_cut: false };
    match kind {
        "htb" => Some(whole),
        "tbf" if has_peak(facts) || burst_at_most? < together => {
            Some(Each { bytes: in_layer(facts, DISCIPLINE, joined.frame), is_cut: true })
        }
        "tbf" => Some(whole),
        _ => None,
    }
}

/// The least that such a shaper counts for each segment, if that many or fewer leave in one packet.
#[must_use]
pub fn least_of(
    facts: &Snapshot,
    of: &str,
    kind: &str,
    burst_at_most: Option<f64>,
    most: Joined,
) -> Option<Each> {
    let numbers = (1..=most.segments as u32).map(f64::from);
    let each = |segments| each_of(facts, of, kind, burst_at_most, Joined { segments, ..most });
    numbers.filter_map(each).min_by(|one, other| one.bytes.total_cmp(&other.bytes))
}

/// What all of them count before the overhead of the rate. Without a table of sizes, the kernel counts the headers of each
/// (net/core/dev.c, `qdisc_pkt_len_init`).
fn together(facts: &Snapshot, Joined { segments, payload, frame }: Joined) -> f64 {
    match has_table(facts) {
        true => by_table(facts, frame - payload + segments * payload),
        false => segments * frame,
    }
}

/// Whether a tbf has a peak rate as well, whose bucket holds hardly more than a frame.
#[must_use]
pub fn has_peak(facts: &Snapshot) -> bool {
    facts.number("qdisc.peak_rate_bits_per_s").is_ok()
}

/// Whether the discipline has a table of sizes.
#[must_use]
pub fn has_table(facts: &Snapshot) -> bool {
    facts.facts.keys().any(|name| name.starts_with("qdisc.table."))
}

/// Largest possible size of a bucket, bytes: the kernel reports the size rounded down to a step. `rate` in bits per second.
pub fn burst_at_most(burst: f64, rate: f64) -> f64 {
    burst + BURST_STEP_S * rate / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(overhead: u64, layer: &str) -> Snapshot {
        let mut facts = Snapshot::default();
        facts.put("qdisc.overhead_bytes", overhead);
        facts.put("qdisc.link_layer", layer);
        facts
    }

    const SUPER_PACKET: Joined = Joined { segments: 45.0, payload: 1448.0, frame: 1514.0 };

    #[test]
    fn a_frame_is_counted_with_its_overhead_and_in_cells() {
        assert!((alone(&facts(40, "ethernet"), "qdisc", 1514.0) - 1554.0).abs() < 1e-9);
        assert!((alone(&facts(0, "atm"), "qdisc", 1514.0) - 1696.0).abs() < 1e-9);
        assert!((alone(&Snapshot::default(), "qdisc", 1514.0) - 1514.0).abs() < 1e-9);
        let mut cake = facts(0, "ethernet");
        cake.put("qdisc.counts_from", "packet");
        assert!((alone(&cake, "qdisc", 1514.0) - 1500.0).abs() < 1e-9);
    }

    #[test]
    fn what_passes_whole_has_the_overhead_once() {
        let facts = facts(40, "ethernet");
        let each = |kind: &str, burst| {
            each_of(&facts, "qdisc", kind, Some(burst), SUPER_PACKET).map(|each| each.bytes)
        };
        let once = 1514.0 + 40.0 / 45.0;
        assert!((each("tbf", 100e3).unwrap() - once).abs() < 1e-9);
        assert!((each("htb", 1600.0).unwrap() - once).abs() < 1e-9, "whatever its bucket is");
        assert!((each("tbf", 20e3).unwrap() - 1554.0).abs() < 1e-9, "cut up");
        assert_eq!(each("cake", 0.0), None);
    }

    /// `stab overhead 18 linklayer atm`: the kernel takes a super-packet with one header, and leaves what tbf cuts up as it is.
    #[test]
    fn a_table_of_sizes_is_for_what_enters() {
        let mut facts = facts(0, "ethernet");
        facts.put("qdisc.table.overhead_bytes", 18u64);
        facts.put("qdisc.table.link_layer", "atm");
        let each =
            |burst| each_of(&facts, "qdisc", "tbf", Some(burst), SUPER_PACKET).unwrap().bytes;
        let cells = ((66.0 + 45.0 * 1448.0 + 18.0) / 48.0_f64).ceil() * 53.0;
        assert!((each(100e3) - cells / 45.0).abs() < 1e-9);
        assert!((each(20e3) - 1514.0).abs() < 1e-9);
    }

    /// `tbf rate 50mbit burst 100kb peakrate 60mbit mtu 1600 overhead 40`: no super-packet passes the bucket of the peak rate.
    #[test]
    fn a_peak_rate_has_super_packets_cut_up() {
        let mut facts = facts(40, "ethernet");
        let each =
            |facts: &Snapshot| each_of(facts, "qdisc", "tbf", Some(100e3), SUPER_PACKET).unwrap();
        facts.lacks("qdisc.peak_rate_bits_per_s", "the bucket has no peak rate");
        assert!(!each(&facts).is_cut);
        facts.put("qdisc.peak_rate_bits_per_s", 60_000_000u64);
        assert_eq!(each(&facts), Each { bytes: 1554.0, is_cut: true });
    }

    /// Of packets that TCP may make smaller, those count least that just pass the bucket whole.
    #[test]
    fn the_least_is_that_of_the_largest_packet_that_passes_whole() {
        let facts = facts(40, "ethernet");
        let least = |kind, burst| least_of(&facts, "qdisc", kind, Some(burst), SUPER_PACKET);
        let bytes = |burst| least("tbf", burst).unwrap().bytes;
        assert!((bytes(100e3) - (1514.0 + 40.0 / 45.0)).abs() < 1e-9);
        assert!((bytes(20e3) - (1514.0 + 40.0 / 13.0)).abs() < 1e-9);
        assert!((bytes(1600.0) - 1554.0).abs() < 1e-9);
        assert_eq!(least("cake", 20e3), None);
    }

    #[test]
    fn tcp_sizes_packets_to_its_rate_unless_the_round_trip_is_short() {
        let segments = |rate, rtt_s, facts: &Snapshot| {
            Joined::by_tcp(facts, rate, rtt_s, 1448.0, 1514.0).segments
        };
        let mut facts = Snapshot::default();
        assert_eq!(segments(1e6, Some(0.02), &facts), 2.0);
        assert_eq!(segments(5e7, Some(0.02), &facts), 8.0);
        assert_eq!(segments(1e9, Some(0.02), &facts), 45.0);
        assert_eq!(segments(1e6, Some(1e-4), &facts), 45.0);
        assert_eq!(segments(1e6, Some(6e-4), &facts), 22.0);
        assert_eq!(segments(1e6, None, &facts), 45.0);
        facts.put("link.gso_max_segments", 1u64);
        assert_eq!(segments(1e9, None, &facts), 1.0);
    }
}
