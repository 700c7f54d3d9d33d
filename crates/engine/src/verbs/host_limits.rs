//! What this host could carry at best, beside a measurement (`--host-limits`): measured before payload moves, with a
//! profile of this end's threads while it moves.

use std::collections::BTreeSet;
use std::mem;

use goodput_kernel::Root;
use goodput_kernel::profile::{Profiler, Symbols};
use goodput_model::{
    Bytes, CpuProfile, Direction, End, Event, HostLimits, HostWork, Known, Missing, Pin, Plan,
    Record, Role, WorkLimit,
};
use goodput_mover::single_work::{self, SingleWork};

use crate::error::EngineError;
use crate::threads::blocking;

/// The limits of this host, and the profile of one measurement.
pub struct HostLimitsWatch {
    limits: SingleWork,
    profile: Profile,
}

/// How far the profile has got. Payload moves again in later probes; these don't count.
enum Profile {
    /// Payload has not begun to move.
    Ready(Result<Symbols, Missing>),
    /// The threads are sampled.
    Running(Profiler),
    /// It is over.
    Ended(Known<CpuProfile>),
}

impl HostLimitsWatch {
    /// Measures the limits for writes of `plan`, on the first CPU that it names for this end.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub async fn measure(plan: &Plan) -> Result<Self, EngineError> {
        let (chunk, cpu) = (plan.chunk_bytes, first_cpu(&plan.pin.near));
        let measured = blocking(move || {
            let limits = single_work::measure(chunk, cpu);
            limits.map(|limits| (limits, Symbols::read(&Root::default())))
        });
        let (limits, symbols) =
            measured.await?.map_err(EngineError::io("measure the limits of this host"))?;
        Ok(Self { limits, profile: Profile::Ready(symbols) })
    }

    /// Takes an event of the measurement: the threads are sampled while payload moves.
    pub fn heard(&mut self, event: &Event) {
        let before = mem::replace(&mut self.profile, Profile::Ended(no_payload()));
        self.profile = match (before, event) {
            (Profile::Ready(symbols), Event::Began) => match Profiler::begin(symbols) {
                Ok(profiler) => Profile::Running(profiler),
                Err(cause) => {
                    Profile::Ended(Known::missing(format!("no thread for a profile: {cause}")))
                }
            },
            (Profile::Running(profiler), Event::Ended) => Profile::Ended(profiler.finish()),
            (same, _) => same,
        };
    }

    /// The limits beside what was measured.
    pub fn conclude(&mut self, record: &Record) -> HostLimits {
        let before = mem::replace(&mut self.profile, Profile::Ended(no_payload()));
        let profile = match before {
            Profile::Ready(_) => no_payload(),
            Profile::Running(profiler) => profiler.finish(),
            Profile::Ended(profile) => profile,
        };
        let SingleWork { copying, page_references, empty_calls } = self.limits.clone();
        let of_run = record.ends.near.value().zip(empty_calls.value());
        let of_run = of_run.and_then(|(near, empty)| calls_limit(near, empty));
        let mut limits = HostLimits {
            copying,
            page_references,
            empty_calls: of_run.map_or(empty_calls, Known::Value),
            bounded_by: Known::missing(""),
            cpus: cpus(record),
            profile,
        };
        limits.bounded_by = bounded_by(record, &limits).into();
        limits
    }
}

fn no_payload() -> Known<CpuProfile> {
    Known::missing("no payload moved")
}

fn first_cpu(pin: &Pin) -> Option<u16> {
    match pin {
        Pin::Cpus(cpus) => cpus.first().copied(),
        Pin::None | Pin::Auto => None,
    }
}

/// CPUs that this end's flows can use at once.
fn cpus(record: &Record) -> u32 {
    let flows = u32::try_from(record.plan.flow_plans().len()).unwrap_or(u32::MAX);
    let own = record.ends.near.value().map_or(0, |near| near.host.cpus);
    let pinned = match &record.plan.pin.near {
        Pin::Cpus(cpus) => cpus.iter().collect::<BTreeSet<_>>().len() as u32,
        Pin::None | Pin::Auto => 0,
    };
    // Zero is unknown, or no limit.
    [own, pinned].into_iter().filter(|count| *count > 0).fold(flows, u32::min).max(1)
}

/// The work that this end can't do without: that of its mover, or its calls, if they would allow less.
fn bounded_by(record: &Record, limits: &HostLimits) -> Result<HostWork, Missing> {
    if record.mount.is_some() {
        return Err(Missing::because(
            "the payload is read or written by the client of a mounted file system",
        ));
    }
    let near = record.ends.near.get()?;
    let roles = match record.plan.direction {
        Direction::Send => &[Role::Sender][..],
        Direction::Reverse => &[Role::Receiver],
        Direction::Both => &[Role::Sender, Role::Receiver],
    };
    let mut works = roles.iter().map(|role| work_of(record, near, *role));
    let first = works.next().unwrap_or_else(|| Err(Missing::because("nothing moved")))?;
    if let Some(other) = works.next().transpose()?.filter(|other| *other != first) {
        return Err(Missing::because(format!(
            "this end sends by {} and receives by {}, so that no limit fits both",
            first.name(),
            other.name()
        )));
    }
    let of_calls = limits.empty_calls.value();
    let allows_less = (limits.of(first).value().zip(of_calls))
        .is_some_and(|(of_bytes, of_calls)| of_calls.bits_per_s.0 < of_bytes.bits_per_s.0);
    Ok(if allows_less { HostWork::EmptyCalls } else { first })
}

/// The work of the mover that ran. Without a device that takes pages, the kernel copies what it was to send from them.
fn work_of(record: &Record, near: &End, role: Role) -> Result<HostWork, Missing> {
    let work = single_work::work_of(&record.plan, role)
        .map_err(|why| Missing::because(why.to_string()))?;
    let flows = near.last_sample().map_or(&[][..], |last| &last.flows);
    let of_role = flows.iter().filter(|flow| flow.role == role);
    let copied: u64 = of_role.clone().filter_map(|flow| flow.copied_sends).sum();
    let calls: u64 = of_role.filter_map(|flow| flow.calls.value().copied()).sum();
    Ok(if work == HostWork::PageReferences && copied > calls / 2 {
        HostWork::Copying
    } else {
        work
    })
}

/// What empty calls would allow with the bytes that each call of the run has moved.
fn calls_limit(near: &End, empty: &WorkLimit) -> Option<WorkLimit> {
    let flows = &near.last_sample()?.flows;
    let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
    let calls = flows.iter().map(|flow| flow.calls.value().copied()).sum::<Option<u64>>()?;
    let each = Bytes(bytes.checked_div(calls)?);
    WorkLimit::of(each, empty.piece_ns)
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Host, Sample};

    use super::*;
    use crate::result::conclude::conclude_at_least;
    use crate::result::measurement::Measurement;

    fn flow(role: Role, bytes: u64, calls: u64, copied_sends: Option<u64>) -> FlowSample {
        let calls = Known::Value(calls);
        FlowSample { calls, copied_sends, ..FlowSample::unreported(0, role, bytes, "made up") }
    }

    fn record(plan: Plan, flows: Vec<FlowSample>) -> Record {
        let sample = |at_s, flows: &[FlowSample]| Sample {
            at_s,
            sent_bytes: (at_s * 1e6) as u64,
            received_bytes: (at_s * 1e6) as u64,
            flows: flows.to_vec(),
        };
        let samples = vec![sample(0.0, &[]), sample(1.0, &[]), sample(2.0, &flows)];
        let end = |name| End { samples: samples.clone(), ..End::unobserved(Host::foreign(name)) };
        let measured = Measurement::made_up(plan, end("near"), Known::Value(end("far").into()));
        conclude_at_least(measured, "x", "now").record
    }

    /// Copying 1 Gbit/s, page references 8 Gbit/s, calls 1 µs each.
    fn bounded(record: &Record) -> Result<HostWork, Missing> {
        limits(record).bounded_by.get().copied()
    }

    fn limits(record: &Record) -> HostLimits {
        let limit = |piece_ns| WorkLimit::of(Bytes(1000), piece_ns).map(Known::Value).unwrap();
        let limits = SingleWork {
            copying: limit(8000.0),
            page_references: limit(1000.0),
            empty_calls: limit(1000.0),
        };
        let profile = Profile::Ready(Err(Missing::because("no names")));
        HostLimitsWatch { limits, profile }.conclude(record)
    }

    fn plan(mover: &str) -> Plan {
        Plan { mover: mover.into(), ..Plan::standard() }
    }

    #[test]
    fn the_mover_decides_unless_its_calls_allow_less() {
        let sent = |calls| vec![flow(Role::Sender, 1_000_000, calls, None)];
        let of = |mover, calls| bounded(&record(plan(mover), sent(calls)));
        assert_eq!(of("copy", 10), Ok(HostWork::Copying));
        assert_eq!(of("splice", 10), Ok(HostWork::PageReferences));
        // 100 bytes for each call of 1 µs are 0.8 Gbit/s.
        assert_eq!(of("copy", 10_000), Ok(HostWork::EmptyCalls));
        let bound = limits(&record(plan("copy"), sent(10_000))).bound().unwrap();
        assert!((bound.0 / 0.8e9 - 1.0).abs() < 1e-9, "{bound}");
    }

    #[test]
    fn sends_that_the_kernel_copied_anyway_are_copies() {
        let copied = |copied| vec![flow(Role::Sender, 1_000_000, 10, Some(copied))];
        let of = |count| bounded(&record(plan("zerocopy"), copied(count)));
        assert_eq!(of(0), Ok(HostWork::PageReferences));
        assert_eq!(of(10), Ok(HostWork::Copying));
    }

    #[test]
    fn two_directions_with_different_work_have_no_common_limit() {
        let both = |mover| {
            let flows = [Role::Sender, Role::Receiver].map(|role| flow(role, 1_000_000, 10, None));
            bounded(&record(Plan { direction: Direction::Both, ..plan(mover) }, flows.into()))
        };
        assert_eq!(both("copy"), Ok(HostWork::Copying));
        let why = both("splice").unwrap_err();
        assert!(why.missing.contains("sends by passing page references and"), "{why}");
    }

    #[test]
    fn flows_share_the_cpus_of_the_host() {
        let mut of = record(Plan { flows: 8, ..plan("copy") }, Vec::new());
        assert_eq!(cpus(&of), 8, "how many CPUs there are is unknown");
        let Known::Value(near) = &mut of.ends.near else { panic!("it is made up") };
        near.host.cpus = 3;
        assert_eq!(cpus(&of), 3);
        of.plan.pin.near = Pin::Cpus(vec![4, 4]);
        assert_eq!(cpus(&of), 1);
    }

    #[test]
    fn only_the_first_payload_is_profiled() {
        let limits = SingleWork::unmeasured("not here");
        let profile = Profile::Ready(Err(Missing::because("no names")));
        let mut watch = HostLimitsWatch { limits, profile };
        watch.heard(&Event::Ended);
        assert!(matches!(watch.profile, Profile::Ready(_)));
        watch.heard(&Event::Began);
        assert!(matches!(watch.profile, Profile::Running(_)));
        watch.heard(&Event::Ended);
        watch.heard(&Event::Began);
        assert!(matches!(watch.profile, Profile::Ended(_)));
    }
}
