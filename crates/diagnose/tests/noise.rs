//! Whatever the two ends report, a diagnosis comes out of it: no panic, every number finite.

use std::sync::Arc;

use goodput_diagnose::{diagnose, names};
use goodput_model::{
    BitRate, ClockRelation, Clocks, DatagramCounts, End, EndName, Evidence, Exchange, Fact,
    FlowSample, Host, Known, Measured, OwnClock, Plan, Role, Sample, Snapshot, SocketMemory,
    TcpInfo, Transport,
};
use proptest::prelude::*;

const FACTS: [&str; 24] = [
    names::LINK_DEVICE,
    names::LINK_KIND,
    names::LINK_SPEED,
    names::LINK_MTU,
    names::LINK_RX_DROPPED,
    names::QDISC_KIND,
    names::QDISC_RATE,
    names::QDISC_CEIL,
    names::QDISC_BURST,
    names::QDISC_PACKETS,
    names::QDISC_DROPS,
    names::QDISC_OVERLIMITS,
    names::OFFLOAD_TSO,
    names::ROUTE_WINDOW,
    names::ROUTE_DESTINATION,
    names::TCP_RMEM,
    names::TCP_WMEM,
    names::TCP_CONGESTION,
    names::TCP_AVAILABLE,
    names::THROTTLED_US,
    "cpu.0.idle_us",
    "cpu.0.user_us",
    "cpu.7.idle_us",
    "cpu.0.softirq_us",
];

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), 1..2000u64, 1_000_000..20_000_000u64, any::<u64>(),]
}

fn maybe() -> impl Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.9, number())
}

fn fact() -> impl Strategy<Value = Fact> {
    let words =
        ["tbf", "htb", "none", "cubic", "off", "4096 1 2", "4096 1 99999999999999", "", "x y"];
    prop_oneof![
        number().prop_map(Fact::Count),
        any::<f64>().prop_map(Fact::Real),
        proptest::sample::select(words.to_vec()).prop_map(|w| Fact::Text(w.into())),
    ]
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let facts =
        FACTS.map(|name| proptest::option::weighted(0.9, fact()).prop_map(move |f| (name, f)));
    Vec::from(facts).prop_map(|facts| {
        let mut snapshot = Snapshot::default();
        for (name, fact) in facts {
            match fact {
                Some(fact) => snapshot.put(name, fact),
                None => snapshot.lacks(name, "noise"),
            }
        }
        snapshot
    })
}

fn tcp() -> impl Strategy<Value = TcpInfo> {
    proptest::collection::vec(maybe(), 32).prop_map(|v| TcpInfo {
        length_bytes: 280,
        options: v[0],
        delivery_rate_app_limited: v[1],
        snd_mss_bytes: v[2],
        pmtu_bytes: v[3],
        unacked_segments: v[4],
        snd_cwnd_segments: v[5],
        rtt_us: v[6],
        min_rtt_us: v[7],
        delivery_rate_bytes_per_s: v[8],
        busy_us: v[9],
        rwnd_limited_us: v[10],
        sndbuf_limited_us: v[11],
        sent_bytes: v[12],
        retrans_bytes: v[13],
        total_retrans_segments: v[14],
        dsack_dups: v[15],
        total_rto: v[16],
        snd_wnd_bytes: v[17],
        sacked_segments: v[18],
        lost_segments: v[19],
        retrans_out_segments: v[20],
        notsent_bytes: v[21],
        pacing_rate_bytes_per_s: v[22],
        max_pacing_rate_bytes_per_s: v[23],
        snd_ssthresh_segments: v[24],
        ca_state: v[25],
        delivered_segments: v[26],
        data_segs_out: v[27],
        acked_bytes: v[28],
        rttvar_us: v[29],
        reord_seen: v[30],
        ..TcpInfo::default()
    })
}

fn flow() -> impl Strategy<Value = FlowSample> {
    (proptest::collection::vec(number(), 12), any::<bool>(), tcp(), any::<bool>(), 0..2u16)
        .prop_map(|(v, sends, tcp, known, flow)| {
            let own = |value| if known { Known::Value(value) } else { Known::missing("noise") };
            let role = if sends { Role::Sender } else { Role::Receiver };
            FlowSample {
                blocked_us: own(v[1]),
                paced_us: own(v[2]),
                calls: own(v[3]),
                cpu_us: own(v[4]),
                cpu_wait_us: own(v[0]),
                tcp: Known::Value(tcp),
                memory: Known::Value(SocketMemory {
                    rmem_alloc_bytes: v[5],
                    rcvbuf_bytes: v[6],
                    wmem_alloc_bytes: v[7],
                    sndbuf_bytes: v[8],
                    wmem_queued_bytes: v[9],
                    backlog_bytes: 0,
                    drops: v[10],
                }),
                queued_bytes: Known::Value(v[11]),
                datagrams: known.then_some(DatagramCounts {
                    received: v[5],
                    lost: v[6],
                    ..DatagramCounts::default()
                }),
                ..FlowSample::unreported(flow, role, v[0], "noise")
            }
        })
}

fn sample() -> impl Strategy<Value = Sample> {
    let at = prop_oneof![9 => 0.0..5.0f64, 1 => any::<f64>()];
    (at, number(), number(), proptest::collection::vec(flow(), 0..3)).prop_map(
        |(at_s, sent_bytes, received_bytes, flows)| Sample {
            at_s,
            sent_bytes,
            received_bytes,
            flows,
        },
    )
}

fn end() -> impl Strategy<Value = Known<End>> {
    let host = Host { name: "x".into(), kernel: "x".into(), goodput: "x".into(), cpus: 2 };
    let samples = proptest::collection::vec(sample(), 0..14);
    let known = (snapshot(), snapshot(), samples, any::<bool>(), any::<Option<u64>>());
    known.prop_map(move |(before, after, mut samples, sorted, began)| {
        if sorted {
            samples.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        }
        let clock = began.map(|began_ns| OwnClock { began_ns, kernel: None });
        Known::Value(End { before, after, samples, clock, ..End::unobserved(host.clone()) })
    })
}

/// Exchanges of any kind with any relation, and those that fit one.
fn clocks() -> impl Strategy<Value = Clocks> {
    let any_times = any::<[u64; 4]>().prop_map(Exchange::from);
    let fitting = (0u64..10_000_000_000, 0u64..100_000_000)
        .prop_map(|(at, way)| Exchange::from([at, at + way, at + way, at + 2 * way]));
    let exchanges = proptest::collection::vec(prop_oneof![any_times, fitting], 0..30);
    let relation = (any::<[u64; 2]>(), any::<i64>(), -1e9f64..1e9, 0.0f64..1e18);
    (exchanges, relation, any::<bool>()).prop_map(
        |(exchanges, ([from_ns, to_ns], ahead_ns, drift_ppm, error_ns), derived)| {
            let made_up = ClockRelation { from_ns, to_ns, ahead_ns, drift_ppm, error_ns };
            let relation = match derived {
                true => goodput_diagnose::clocks::relation(&exchanges, false).into(),
                false => Known::Value(made_up),
            };
            Clocks { relation, exchanges }
        },
    )
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let rate = prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::INFINITY), 1.0..1e12f64];
    (end(), end(), rate, any::<[bool; 3]>(), clocks()).prop_map(
        |(near, far, goodput, [udp, reverse, one], clocks)| {
            let mut plan = Plan::standard();
            if udp {
                plan.transport = Transport::Udp;
            }
            Evidence {
                plan,
                sender_end: if reverse { EndName::Far } else { EndName::Near },
                near: near.map(Arc::new),
                far: if one { Known::missing("noise") } else { far.map(Arc::new) },
                reported_loss_share: if udp {
                    Known::Value(goodput)
                } else {
                    Known::missing("noise")
                },
                latency: None,
                fetches: None,
                clocks,
                measured: Measured {
                    goodput: BitRate(goodput),
                    from_s: 0.5,
                    to_s: 4.5,
                    precision_percent: Known::missing("noise"),
                },
            }
        },
    )
}

proptest! {
    #[test]
    fn any_evidence_gives_a_diagnosis_with_finite_numbers(evidence in evidence()) {
        let diagnosis = diagnose(&evidence);
        for finding in &diagnosis.findings {
            prop_assert!(!finding.evidence.is_empty());
            for witness in &finding.evidence {
                prop_assert!(witness.value.is_finite(), "{finding:?}");
            }
            let share = finding.share_percent.value();
            prop_assert!(share.is_none_or(|s| s.is_finite()), "{finding:?}");
            let predicted = finding.predicted_bits_per_s.value();
            prop_assert!(predicted.is_none_or(|rate| rate.0.is_finite()), "{finding:?}");
            for change in &finding.changes {
                let name = change.setting.to_string();
                prop_assert!(!change.to.is_empty() && !name.is_empty());
            }
        }
        prop_assert!(diagnosis.witnesses.values().all(|value| value.is_finite()));
        prop_assert!(diagnosis.ceiling.rate.value().is_none_or(|rate| rate.0.is_finite()));
        if let Some(account) = diagnosis.verdict.account.value() {
            let parts = account.parts.iter().map(|part| part.seconds);
            prop_assert!(parts.clone().all(|part| part.is_finite() && part >= 0.0), "{account:?}");
            let sum = parts.sum::<f64>() + account.unknown_s;
            prop_assert!((sum - account.flow_seconds).abs() < 1e-6 * (1.0 + sum), "{account:?}");
        }
        for candidate in diagnosis.verdict.loss.value().iter().flat_map(|loss| &loss.candidates) {
            prop_assert!(candidate.behind.is_finite() && candidate.behind >= 0.0, "{candidate:?}");
            for one in &candidate.parameters {
                let numbers = [one.least, one.value, one.most];
                prop_assert!(numbers.iter().all(|number| number.is_finite()), "{candidate:?}");
                prop_assert!(one.least <= one.value && one.value <= one.most, "{candidate:?}");
            }
        }
    }
}
