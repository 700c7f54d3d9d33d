//! How much memory a day-long measurement takes at its near end, while it runs and when its record is made. A
//! program of its own, because the allocator counts for all threads. Time is virtual: a day of samples is fed as fast
//! as it is taken.

use std::io::{self, Write};
use std::sync::Arc;

use goodput_engine::conclude;
use goodput_engine::kept_samples::{KeptMeasurement, KeptSamples};
use goodput_engine::measurement::Measurement;
use goodput_model::{
    Clocks, DatagramCounts, End, EndName, FlowSample, Host, Known, Length, Plan, Role, Sample,
    SocketMemory, TcpInfo, Transport,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Samples of a day, ten a second.
const TENTHS: u64 = 864_000;

/// As many flows as one end may have with every flow in each of those samples.
const FLOWS: u16 = 10;

/// Bytes at most while samples come, and while the record is made, judged and written. What is kept takes 8 MB, and a
/// copy of it would not fit.
const RUNNING_MAX: usize = 16 << 20;
const CONCLUDING_MAX: usize = 12 << 20;

/// Bytes of the record as JSON at most.
const RECORD_MAX: usize = 24 << 20;

/// What a kernel of today says of a connection: all fields there are.
fn tcp() -> TcpInfo {
    goodput_kernel::decode(&[1; 512])
}

fn flow(flow: u16, role: Role, transport: Transport) -> FlowSample {
    let is_tcp = transport == Transport::Tcp;
    FlowSample {
        blocked_us: Known::Value(0),
        paced_us: Known::Value(0),
        calls: Known::Value(0),
        cpu_us: Known::Value(0),
        cpu_wait_us: Known::Value(0),
        tcp: if is_tcp { Known::Value(tcp()) } else { Known::missing("not a TCP flow") },
        memory: Known::Value(SocketMemory {
            rmem_alloc_bytes: 0,
            rcvbuf_bytes: 6_291_456,
            wmem_alloc_bytes: 0,
            sndbuf_bytes: 4_194_304,
            wmem_queued_bytes: 0,
            backlog_bytes: 0,
            drops: 0,
        }),
        queued_bytes: Known::Value(0),
        datagrams: (!is_tcp).then(DatagramCounts::default),
        ..FlowSample::unreported(flow, role, 0, "not counted")
    }
}

/// What an end counts after this many tenths of a second, at 1 Gbit/s and a little that varies.
fn count(sample: &mut Sample, tenth: u64) {
    let each = tenth * 1_250_000 + tenth % 7 * 1000;
    sample.at_s = tenth as f64 / 10.0;
    for flow in &mut sample.flows {
        flow.bytes = each;
        (flow.calls, flow.cpu_us) = (Known::Value(each / 65_536), Known::Value(tenth * 9000));
        flow.blocked_us = Known::Value(tenth * 40_000);
        let sends = flow.role == Role::Sender;
        if let Known::Value(tcp) = &mut flow.tcp {
            (tcp.acked_bytes, tcp.sent_bytes) = (Some(each), Some(each));
            tcp.total_retrans_segments = Some(tenth / 50);
            tcp.busy_us = Some(tenth * 100_000);
        }
        if let Some(datagrams) = &mut flow.datagrams {
            let all = each / 1400;
            (datagrams.sent, datagrams.received) = if sends { (all, 0) } else { (0, all) };
        }
    }
    let all = each * sample.flows.len() as u64;
    match sample.flows[0].role {
        Role::Sender => sample.sent_bytes = all,
        Role::Receiver => sample.received_bytes = all,
    }
}

/// What is kept of a day.
fn a_day(plan: &Plan) -> KeptSamples {
    let mut samples = KeptSamples::new(plan, true);
    let empty = |role| {
        let flows = (0..plan.flows).map(|id| flow(id, role, plan.transport)).collect();
        Sample { at_s: 0.0, sent_bytes: 0, received_bytes: 0, flows }
    };
    let (mut near, mut far) = (empty(Role::Sender), empty(Role::Receiver));
    let mut intervals = 0;
    for tenth in 0..=TENTHS {
        for (end, sample) in [(EndName::Near, &mut near), (EndName::Far, &mut far)] {
            count(sample, tenth);
            samples.take(end, sample.clone(), &mut |event| {
                intervals += u64::from(matches!(event, goodput_engine::Event::Interval(_)));
            });
        }
    }
    let wanted = (TENTHS as f64 / 10.0 / plan.interval_s).round() as u64;
    assert_eq!(intervals, wanted, "each was shown");
    samples
}

fn measurement(plan: Plan, kept: KeptMeasurement) -> Measurement {
    let end = |name: &str, samples| End {
        samples,
        ..End::unobserved(Host {
            name: name.into(),
            kernel: "Linux 6.18.44".into(),
            goodput: "0.1.0".into(),
            cpus: 2,
        })
    };
    Measurement {
        plan,
        near: Arc::new(end("near", kept.near)),
        far: Known::Value(Arc::new(end("far", kept.far))),
        far_settings: None,
        connections: Vec::new(),
        far_totals: None,
        intervals: kept.intervals,
        thinned: kept.thinned,
        steady_samples: kept.steady_samples,
        latency: None,
        far_capture: None,
        fetches: None,
        clocks: Clocks::missing("virtual time"),
        doubts: Vec::new(),
        incomplete: None,
    }
}

/// Counts what is written.
struct Counting(usize);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check(transport: Transport, interval_s: f64) {
    let what = format!("{transport:?}, intervals of {interval_s} s");
    let length = Length::Seconds(TENTHS as f64 / 10.0);
    let plan = Plan { transport, flows: FLOWS, length, interval_s, ..Plan::standard() };
    let before = MEMORY.current_usage();
    let most = || MEMORY.peak_usage() - before;
    MEMORY.reset_peak_usage();
    let mut samples = a_day(&plan);
    let running = most();
    MEMORY.reset_peak_usage();
    samples.stop(true, TENTHS as f64 / 10.0);
    let kept = samples.close(true, &mut |_| {});
    let conclusion = conclude(measurement(plan, kept), "far", "2026-01-01T00:00:00Z");
    let record = conclusion.expect("payload was counted").record;
    let mut json = Counting(0);
    serde_json::to_writer_pretty(&mut json, &record).expect("a record can be written");
    let concluding = most();
    println!("{what}: {running} bytes while it runs, {concluding} after, record {}", json.0);
    assert!(running < RUNNING_MAX, "{what}: {running} bytes while it runs");
    assert!(concluding < CONCLUDING_MAX, "{what}: {concluding} bytes for the record");
    assert!(json.0 < RECORD_MAX, "{what}: a record of {} bytes", json.0);
    let goodput = record.result.goodput_bits_per_s.0;
    assert!((goodput / 1e9 - 1.0).abs() < 1e-3, "{what}: {goodput}");
    let thinned = record.thinned.expect("it says that detail was left out");
    let known = (thinned.intervals_every_s, thinned.near_samples_every_s);
    assert!(known.0.is_some() && known.1.is_some(), "{what}: {thinned:?}");
    let bytes: u64 = record.intervals.iter().filter_map(|i| i.received_bytes.value()).sum();
    let last = record.ends.far.value().and_then(End::last_sample).map(|last| last.received_bytes);
    assert_eq!(Some(bytes), last, "{what}: no byte is lost by joining");
}

#[test]
fn a_day_stays_small() {
    check(Transport::Tcp, 0.1);
}
