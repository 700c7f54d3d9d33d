//! The READs of each arm's runs, if they read from an NFS server.

use goodput_ceiling::answers::segments_of_read;
use goodput_diagnose::names::RING_RX;
use goodput_model::{
    Comparison, Direction, EndName, Known, Missing, Place, ReadArm, ReadTable, Record, Sample,
    StepName, median,
};

/// The READs of one run.
pub struct ReadRun {
    call_bytes: u64,
    slots: u64,
    segment_bytes: Result<u64, Missing>,
    ring_frames: Result<u64, Missing>,
    round_trip_us: Result<f64, Missing>,
    dropped: Result<u64, Missing>,
    retransmitted: Result<u64, Missing>,
}

impl ReadRun {
    /// The READs of a run, if it made any.
    pub fn of(record: &Record) -> Option<Self> {
        if record.plan.direction != Direction::Reverse {
            return None;
        }
        let rpcs = record.fetches.as_ref()?.rpcs.as_ref()?;
        Some(Self {
            call_bytes: rpcs.call_bytes.0,
            slots: u64::from(rpcs.slots),
            segment_bytes: record.ends.near.get().and_then(|near| arriving_segment(&near.samples)),
            ring_frames: record.ends.near.get().and_then(|near| near.after.count(RING_RX)),
            round_trip_us: rpcs.round_trip_us.get().copied(),
            dropped: dropped(record),
            retransmitted: rpcs.retransmitted.get().copied(),
        })
    }
}

/// Payload of an arriving segment, the longest of any flow (`tcpi_rcv_mss`). Segments that this end could send may be
/// longer or shorter.
fn arriving_segment(samples: &[Sample]) -> Result<u64, Missing> {
    let none = || Missing::because("no flow was sampled");
    let last = samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let flows = last.ok_or_else(none)?.flows.iter();
    let all: Result<Vec<u64>, Missing> =
        flows.map(|flow| flow.tcp.get()?.rcv_mss_bytes()).collect();
    all?.into_iter().max().ok_or_else(none)
}

/// Packets that the receiving host dropped before they reached their sockets. Drops at the sockets show only in the
/// sender's retransmissions.
fn dropped(record: &Record) -> Result<u64, Missing> {
    let of_host = [StepName::Device, StepName::Backlog];
    let received =
        record.result.directions.iter().filter(|direction| direction.sender == EndName::Far);
    let steps = received.flat_map(|direction| &direction.path_steps);
    let own = steps.filter(|step| step.place == Place::Near && of_host.contains(&step.name));
    let counts: Result<Vec<u64>, Missing> = own.map(|step| step.dropped.get().copied()).collect();
    let counts = counts?;
    match counts.is_empty() {
        true => Err(Missing::because("this host counts no drops")),
        false => Ok(counts.iter().sum()),
    }
}

/// The table. `runs` are the runs that count, with their arms.
pub fn table(comparison: &Comparison, runs: &[(usize, ReadRun)]) -> Option<ReadTable> {
    let (_, first) = runs.first()?;
    let arms = comparison.arms.iter().enumerate().map(|(number, result)| {
        let own: Vec<_> = runs.iter().filter(|(of, _)| *of == number).map(|(_, run)| run).collect();
        arm(result.values.clone(), &own)
    });
    Some(ReadTable {
        segment_bytes: first.segment_bytes.clone().into(),
        ring_frames: first.ring_frames.clone().into(),
        arms: arms.collect(),
    })
}

fn arm(values: Vec<String>, runs: &[&ReadRun]) -> ReadArm {
    let none = || Missing::because("no run of this arm counts");
    let first = runs.first().ok_or_else(none);
    let sum = |read: fn(&ReadRun) -> &Result<u64, Missing>| -> Known<u64> {
        let all: Result<Vec<u64>, Missing> = runs.iter().map(|run| read(run).clone()).collect();
        all.and_then(|all| if all.is_empty() { Err(none()) } else { Ok(all.iter().sum()) }).into()
    };
    let trips: Result<Vec<f64>, Missing> =
        runs.iter().map(|run| run.round_trip_us.clone()).collect();
    let segments: Result<Vec<u64>, Missing> =
        runs.iter().map(|run| run.segment_bytes.clone()).collect();
    let answer_segments = first.clone().and_then(|run| {
        // The kernel guesses it from past segments: the longest guess is of a full segment.
        let segment = segments?.into_iter().max().ok_or_else(none)?;
        let segments = segments_of_read(run.call_bytes, segment);
        segments.ok_or_else(|| Missing::because("no segment came"))
    });
    ReadArm {
        values,
        call_bytes: first.clone().map(|run| run.call_bytes).into(),
        slots: first.map(|run| run.slots).into(),
        answer_segments: answer_segments.into(),
        round_trip_us: trips.and_then(|all| median(all).ok_or_else(none)).into(),
        dropped: sum(|run| &run.dropped),
        retransmitted: sum(|run| &run.retransmitted),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Role, TcpInfo};

    use super::*;

    fn run(call_bytes: u64, round_trip_us: f64) -> ReadRun {
        ReadRun {
            call_bytes,
            slots: 8,
            segment_bytes: Ok(1448),
            ring_frames: Ok(256),
            round_trip_us: Ok(round_trip_us),
            dropped: Ok(3),
            retransmitted: Ok(1),
        }
    }

    #[test]
    fn drops_are_summed_and_round_trips_are_medians() {
        let runs = [run(8192, 100.0), run(8192, 900.0), run(8192, 200.0)];
        let arm = arm(vec!["8K".into()], &runs.iter().collect::<Vec<_>>());
        assert_eq!(arm.answer_segments, Known::Value(6));
        assert_eq!(arm.round_trip_us, Known::Value(200.0));
        assert_eq!((arm.dropped, arm.retransmitted), (Known::Value(9), Known::Value(3)));
    }

    #[test]
    fn each_arm_has_the_segments_that_came_in_its_runs() {
        let of_segments = |sizes: [u64; 2]| {
            let runs = sizes.map(|bytes| ReadRun { segment_bytes: Ok(bytes), ..run(8192, 1.0) });
            arm(vec!["8K".into()], &runs.iter().collect::<Vec<_>>()).answer_segments
        };
        assert_eq!(of_segments([536, 1448]), Known::Value(6));
        assert_eq!(of_segments([536, 8948]), Known::Value(1));
    }

    #[test]
    fn segments_that_arrive_count_and_not_those_that_this_end_could_send() {
        let flow = |number, arriving| {
            let tcp = TcpInfo {
                snd_mss_bytes: Some(1448),
                rcv_mss_bytes: Some(arriving),
                ..TcpInfo::default()
            };
            let other = FlowSample::unreported(number, Role::Receiver, 0, "not asked");
            FlowSample { tcp: Known::Value(tcp), ..other }
        };
        let flows = vec![flow(0, 536), flow(1, 1220)];
        let samples = [
            Sample { at_s: 1.0, sent_bytes: 0, received_bytes: 0, flows },
            Sample { at_s: 2.0, sent_bytes: 0, received_bytes: 0, flows: vec![] },
        ];
        assert_eq!(arriving_segment(&samples), Ok(1220));
    }

    #[test]
    fn an_arm_without_runs_knows_nothing() {
        let arm = arm(vec!["8K".into()], &[]);
        assert!(arm.answer_segments.value().is_none() && arm.dropped.value().is_none());
    }
}
