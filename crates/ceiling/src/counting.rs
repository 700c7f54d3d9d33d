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

/// What a shaper of this `kind`, or its class, counts for each of such segments, bytes. htb passes them whole, and so does tbf if its
/// bucket holds them: they have the overhead of its rate once, and a table of sizes takes them with one header. tbf cuts others
/// up, behind the table (net/sched/sch_tbf.c, `tbf_segment`). `None` if each counts as if it left alone: cake counts the overhead
/// of each, cut up or not (net/sched/sch_cake.c, `cake_overhead`).
pub fn each_of(
    facts: &Snapshot,
    of: &str,
    kind: &str,
    burst_at_most: Option<f64>,
    joined: Joined,
) -> Option<f64> {
    let whole = in_layer(facts, of, together(facts, joined));
    match kind {
        "htb" => Some(whole / joined.segments),
        "tbf" if burst_at_most? >= whole => Some(whole / joined.segments),
        "tbf" => Some(in_layer(facts, DISCIPLINE, joined.frame)),
        _ => None,
    }
}

/// What all of them count before the overhead of the rate. Without a table of sizes, the kernel counts the headers of each
/// (net/core/dev.c, `qdisc_pkt_len_init`).
fn together(facts: &Snapshot, Joined { segments, payload, frame }: Joined) -> f64 {
    let has_table = facts.facts.keys().any(|name| name.starts_with("qdisc.table."));
    match has_table {
        true => by_table(facts, frame - payload + segments * payload),
        false => segments * frame,
    }
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
        let each = |kind: &str, burst| each_of(&facts, "qdisc", kind, Some(burst), SUPER_PACKET);
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
        let each = |burst| each_of(&facts, "qdisc", "tbf", Some(burst), SUPER_PACKET).unwrap();
        let cells = ((66.0 + 45.0 * 1448.0 + 18.0) / 48.0_f64).ceil() * 53.0;
        assert!((each(100e3) - cells / 45.0).abs() < 1e-9);
        assert!((each(20e3) - 1514.0).abs() < 1e-9);
    }
}
