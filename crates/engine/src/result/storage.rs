//! Whether a measurement's files or its network were slower.

use goodput_model::{
    BitRate, End, EndName, FlowSample, Known, Missing, Role, Slowest, Snapshot, StorageResult,
};

use crate::result::measurement::Measurement;

/// The storage of the direction in which `sender` sends; `None` if it is memory.
pub fn of(measurement: &Measurement, sender: EndName) -> Option<StorageResult> {
    let storage = &measurement.plan.storage;
    if storage.source.is_none() && storage.sink.is_none() {
        return None;
    }
    let nothing = Snapshot::default();
    let sending = measurement.end(sender);
    let before = sending.map_or(&nothing, |end| &end.before);
    let receiving = measurement.end(sender.other());
    // One end is done long before the other if much waits in buffers, or for the disk.
    let whole_s = [sending, receiving].into_iter().filter_map(last_s).fold(0.0, f64::max);
    let (sends, receives) =
        (Times::of(sending, Role::Sender, whole_s), Times::of(receiving, Role::Receiver, whole_s));
    let wait = |times: &Result<Times, Missing>, read: fn(&Times) -> Result<f64, Missing>| {
        times.as_ref().map_err(Clone::clone).and_then(read).map(|share| share * 100.0).into()
    };
    Some(StorageResult {
        source: storage.source.as_ref().map(|source| source.name().to_string()),
        source_bytes: before.count("source.bytes").into(),
        cache: before.text("source.cache").map(str::to_string).into(),
        resident_percent: before.number("source.resident_percent").into(),
        alone_bits_per_s: before.number("source.alone_bits_per_s").map(BitRate).into(),
        source_wait_percent: wait(&sends, |times| times.storage.clone()),
        sink: storage.sink.as_ref().map(|sink| sink.name.clone()),
        sink_alone_bits_per_s: sink_alone(receiving),
        sink_wait_percent: wait(&receives, |times| times.storage.clone()),
        network_wait_percent: wait(&sends, |times| Ok(times.blocked)),
        slowest: slowest(sends, receives).into(),
    })
}

/// Rate of the sink when it was written alone.
fn sink_alone(receiving: Option<&End>) -> Known<BitRate> {
    let end = receiving.ok_or_else(|| Missing::because("the receiving end did not report"));
    end.and_then(|end| end.before.number("sink.alone_bits_per_s")).map(BitRate).into()
}

/// When an end's last flow had ended, seconds.
fn last_s(end: Option<&End>) -> Option<f64> {
    Some(end?.samples.last()?.at_s)
}

/// What took most of the sender's time; if that is the network, what took most of the receiver's. A
/// sink that took more of the run than anything at the sender is still the slowest: a sender is done
/// when everything is in buffers.
fn slowest(
    sends: Result<Times, Missing>,
    receives: Result<Times, Missing>,
) -> Result<Slowest, Missing> {
    let sends = sends?;
    let asleep = sends.storage.as_ref().copied().unwrap_or(0.0);
    if let Ok(receives) = &receives {
        let in_sink = receives.storage.as_ref().copied().unwrap_or(0.0);
        if receives.is_in_sink() && in_sink > asleep && in_sink > sends.cpu {
            return Ok(Slowest::Sink);
        }
    }
    if asleep >= sends.blocked && asleep >= sends.cpu {
        return Ok(Slowest::Source);
    }
    if sends.cpu > sends.blocked {
        return Ok(Slowest::SenderCpu);
    }
    let receives = receives?;
    Ok(match () {
        () if receives.is_in_sink() => Slowest::Sink,
        () if receives.cpu > receives.blocked => Slowest::ReceiverCpu,
        () => Slowest::Network,
    })
}

/// Where the threads of one end spent their time, as shares of the run, averaged over all flows.
struct Times {
    blocked: f64,
    /// Running, or waiting for a CPU.
    cpu: f64,
    /// Sleeping in the calls that read the source or write to the sink.
    storage: Result<f64, Missing>,
}

impl Times {
    /// Whether a receiver spent more time in its sink than waiting for data or on a CPU.
    fn is_in_sink(&self) -> bool {
        let asleep = self.storage.as_ref().copied().unwrap_or(0.0);
        asleep > self.blocked && asleep >= self.cpu
    }

    fn of(end: Option<&End>, role: Role, whole_s: f64) -> Result<Self, Missing> {
        let last = end.and_then(|end| end.samples.iter().rev().find(|s| !s.flows.is_empty()));
        let last = last.ok_or_else(|| Missing::because("this end did not report its flows"))?;
        let flows: Vec<_> = last.flows.iter().filter(|flow| flow.role == role).collect();
        let whole = whole_s * 1e6 * flows.len() as f64;
        if whole <= 0.0 {
            return Err(Missing::because("the run was too short to know"));
        }
        let share = |read: fn(&FlowSample) -> &Known<u64>| -> Result<f64, Missing> {
            let each: Result<Vec<u64>, Missing> =
                flows.iter().map(|flow| read(flow).get().copied()).collect();
            Ok(each?.iter().sum::<u64>() as f64 / whole)
        };
        let (blocked, paced) = (share(|f| &f.blocked_us)?, share(|f| &f.paced_us)?);
        let cpu = share(|f| &f.cpu_us)? + share(|f| &f.cpu_wait_us).unwrap_or(0.0);
        let in_calls = match role {
            Role::Sender => share(|f| &f.source_us),
            Role::Receiver => share(|f| &f.sink_us),
        };
        // A thread that runs, or waits for a CPU or for the socket, does not sleep in those calls.
        let elsewhere = (blocked + paced + cpu).min(1.0);
        Ok(Self { blocked, cpu, storage: in_calls.map(|share| share.min(1.0 - elsewhere)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(storage: f64, cpu: f64, blocked: f64) -> Result<Times, Missing> {
        Ok(Times { blocked, cpu, storage: Ok(storage) })
    }

    #[test]
    fn what_took_most_of_the_time_is_the_slowest() {
        let idle = || times(0.0, 0.1, 0.9);
        assert_eq!(slowest(times(0.8, 0.1, 0.1), idle()), Ok(Slowest::Source));
        assert_eq!(slowest(times(0.1, 0.8, 0.1), idle()), Ok(Slowest::SenderCpu));
        assert_eq!(slowest(times(0.1, 0.1, 0.8), idle()), Ok(Slowest::Network));
        let waits = || times(0.0, 0.1, 0.9);
        assert_eq!(slowest(waits(), times(0.8, 0.1, 0.1)), Ok(Slowest::Sink));
        assert_eq!(slowest(waits(), times(0.1, 0.8, 0.1)), Ok(Slowest::ReceiverCpu));
        // The sender was done at once; its data waits for the disk.
        assert_eq!(slowest(times(0.0, 0.05, 0.02), times(0.9, 0.05, 0.0)), Ok(Slowest::Sink));
        assert!(slowest(waits(), Err(Missing::because("private"))).is_err());
    }
}
