//! What the witnesses of the rules are called in English. Their values stand after the words: `bytes in headers 5.2 %`.

/// Name of each witness, its words, and the unit behind its values.
const WORDS: &[(&str, &str, &str)] = &[
    ("application_percent", "time waiting for the sending application", " %"),
    ("arrived_packets_per_mb", "packets that arrived per MB", ""),
    ("backlog_drops_per_million_packets", "packets dropped at the backlog per million", ""),
    ("between_answers_percent", "time between answers and the next calls", " %"),
    ("broken_frames_per_million_packets", "broken frames per million packets", ""),
    ("bus_percent", "goodput as a share of the bus", " %"),
    ("busiest_cpu_softirq_percent", "busiest CPU in softirqs", " %"),
    ("calls_per_megabyte", "calls per MB", ""),
    ("calls_queued_percent", "calls that waited in the queue", " %"),
    ("carrier_changes", "changes of the carrier", ""),
    ("changed_on_the_way", "options changed on the way", ""),
    ("clock_lacking_percent", "CPU clock missing", " %"),
    ("cpu_wait_percent", "time waiting for a CPU", " %"),
    ("crawling_from_the_start_percent", "time crawling, from the start", " %"),
    ("crawling_percent", "time crawling", " %"),
    ("datagrams_dropped_by_socket_percent", "datagrams dropped by the socket", " %"),
    ("dry_while_writer_waits_percent", "time with nothing to send while the writer waits", " %"),
    ("ends_far_from_their_card", "ends far from their card", ""),
    ("first_fetch_percent_of_others", "first fetch as a share of the later ones", " %"),
    ("fragments_per_datagram", "fragments per datagram", ""),
    ("goodput_of_cap_percent", "goodput as a share of the pacing cap", " %"),
    ("goodput_of_link_percent", "goodput as a share of the link", " %"),
    ("goodput_of_present_speed_percent", "goodput as a share of the present link speed", " %"),
    ("goodput_of_shaper_percent", "goodput as a share of the shaper's rate", " %"),
    ("header_percent", "bytes in headers", " %"),
    ("held_by_limit_percent", "time held by the server's limit", " %"),
    (
        "late_collisions_and_broken_frames_per_million_packets",
        "late collisions and broken frames per million packets",
        "",
    ),
    ("local_drop_percent", "packets dropped on this host", " %"),
    ("loss_limited_percent", "goodput as a share of what the losses allow", " %"),
    ("marked_percent", "packets marked", " %"),
    ("memory_pressure_percent", "time under memory pressure", " %"),
    ("path_percent", "time at the path's rate", " %"),
    ("pauses_per_million_packets", "pause frames per million packets", ""),
    ("pcie_percent", "goodput as a share of the PCIe link", " %"),
    ("queue_delay_us", "delay in the queue", " µs"),
    ("queue_drop_percent", "packets dropped by the queue", " %"),
    ("rate_before_of_after", "rate before the step over the rate after it", ""),
    ("reader_not_waiting_percent", "time in which the reader was not waiting", " %"),
    ("reader_waiting_percent", "time in which the reader was waiting", " %"),
    ("receiver_cpu_us_per_mb", "CPU time of the receiver per MB", " µs"),
    ("reconnecting_percent", "time connecting again", " %"),
    ("recovering_unselectively_percent", "time repairing losses without SACK", " %"),
    ("reordered_percent", "packets out of order", " %"),
    ("retransmitted_percent", "bytes sent again", " %"),
    ("ring_drops_per_million_packets", "packets dropped at the ring per million", ""),
    ("rwnd_limited_percent", "time stopped by the receive window", " %"),
    ("segments_dropped_by_sockets", "segments dropped by sockets", ""),
    ("send_buffer_percent", "time stopped by the send buffer", " %"),
    ("sender_cpu_us_per_mb", "CPU time of the sender per MB", " µs"),
    ("sent_packets_per_mb", "packets sent per MB", ""),
    ("server_silent_percent", "time in which the server was silent", " %"),
    ("sink_wait_percent", "time waiting for the sink", " %"),
    ("softirq_percent", "CPU in softirqs", " %"),
    ("source_wait_percent", "time waiting for the source", " %"),
    ("squeezes_per_million_packets", "squeezed polls per million packets", ""),
    ("starting_percent", "time in slow start", " %"),
    ("startup_lost_percent", "bytes lost at the start", " %"),
    ("stolen_percent", "working time taken by the hypervisor", " %"),
    ("throttled_percent", "time throttled by a quota", " %"),
    ("timeout_percent", "time in time-outs", " %"),
    ("unanswered_percent", "large packets without an answer", " %"),
    ("unscaled_percent", "time stopped by a window without scaling", " %"),
    ("waiting_for_answers_percent", "time waiting for answers", " %"),
    ("waits_and_drops_per_100_packets", "waits and drops per 100 packets", ""),
    (
        "waits_of_round_trip_or_interrupts_for_each_packet_percent",
        "waits as a share of the round trip, or interrupts as a share of the packets",
        " %",
    ),
    ("way_back_us", "time of the way back", " µs"),
];

/// The words and the unit of a witness; its name without underscores if it has none.
pub(super) fn of(name: &str) -> (String, &'static str) {
    let known = WORDS.iter().find(|(witness, ..)| *witness == name);
    known.map_or_else(
        || (name.replace('_', " "), ""),
        |(_, words, unit)| ((*words).to_string(), *unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_witness_has_words_and_all_words_have_a_witness() {
        let rules = || goodput_diagnose::rules::ALL.iter().map(|rule| rule.witness_name);
        let lacking: Vec<_> =
            rules().filter(|name| !WORDS.iter().any(|(witness, ..)| witness == name)).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
        let spare: Vec<_> =
            WORDS.iter().filter(|(witness, ..)| !rules().any(|name| name == *witness)).collect();
        assert!(spare.is_empty(), "{spare:?}");
        assert_eq!(of("sent_packets_per_mb"), ("packets sent per MB".into(), ""));
        assert_eq!(of("header_percent"), ("bytes in headers".into(), " %"));
        assert_eq!(of("of_a_newer_goodput"), ("of a newer goodput".into(), ""));
    }
}
