//! The raw result of one measurement, before anything is concluded from it: what both ends saw, and what it shows of each
//! direction.

use std::net::IpAddr;
use std::sync::Arc;

use goodput_model::{
    BitRate, Clocks, Connection, End, EndName, Evidence, FarHeads, Fetches, Host, Interval, Known,
    Latency, Measured, Plan, Role, Sample, Snapshot, Thinned, Totals, Transport,
};

use crate::result::acknowledged::acknowledged;
use crate::result::far_totals::FarCounts;
use crate::result::silence::Silence;
use crate::result::window::{after_steps, measure, steady, whole, written};

/// Both ends' observations of one plan.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// What was agreed.
    pub plan: Plan,
    /// What this end saw.
    pub near: Arc<End>,
    /// What the far end saw.
    pub far: Known<Arc<End>>,
    /// What is configured at a far end that reports nothing itself, if it was read.
    pub far_settings: Option<Arc<FarSettings>>,
    /// The addresses of each flow, as far as they are known.
    pub connections: Vec<Connection>,
    /// What a far end that is not goodput reported about itself.
    pub far_totals: Option<Totals>,
    /// The shown intervals, oldest first.
    pub intervals: Vec<Interval>,
    /// How many of the samples and intervals were left out, if any.
    pub thinned: Option<Thinned>,
    /// How many samples of the near end and of the far end were taken before the senders were asked to stop; later
    /// samples show queues emptying. `None`: the flows ended on their own.
    pub steady_samples: Option<(usize, usize)>,
    /// How long the probes took, if the plan asks for them.
    pub latency: Option<Latency>,
    /// What the far end captured of the flows' packets, if the plan asks for it.
    pub far_capture: Option<Known<FarCaptured>>,
    /// How the requests for the file went, if the target is a file.
    pub fetches: Option<Fetches>,
    /// How the clocks of both ends relate.
    pub clocks: Clocks,
    /// Doubts about the measurement itself.
    pub doubts: Vec<String>,
    /// What is missing, if the plan asks for more than was measured.
    pub incomplete: Option<Incomplete>,
}

/// What the host of a far end that reports nothing has configured, as its own programs print it.
#[derive(Debug, Clone, PartialEq)]
pub struct FarSettings {
    /// The host, as `ssh://…`.
    pub host: String,
    /// Its settings. There are no counters among them.
    pub facts: Snapshot,
}

impl FarSettings {
    /// An end of which nothing else is known. What is configured was so before the run, and is so after it.
    fn end(&self) -> End {
        let (before, after) = (self.facts.clone(), self.facts.clone());
        let cpus = self.facts.count("cpu.count").unwrap_or_default();
        let cpus = u32::try_from(cpus).unwrap_or_default();
        let host = Host { cpus, ..Host::foreign(self.host.as_str()) };
        End { before, after, ..End::unobserved(host) }
    }
}

/// Packets that the far end captured.
#[derive(Debug, Clone, Default)]
pub struct FarCaptured {
    /// The device of the far host.
    pub device: String,
    /// Their heads.
    pub heads: FarHeads,
}

/// Why a measurement is only a part of what was asked for: payload ended too early, or the far end's report is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// In words.
    pub why: String,
    /// Whether a privilege or a token is missing.
    pub not_permitted: bool,
}

impl Measurement {
    /// The ends that sent: one, or both.
    pub fn senders(&self) -> Vec<EndName> {
        let mut senders: Vec<_> = self.plan.flow_plans().iter().map(|f| f.sender).collect();
        senders.dedup();
        senders
    }

    /// What `end` saw.
    pub fn end(&self, end: EndName) -> Option<&End> {
        match end {
            EndName::Near => Some(&self.near),
            EndName::Far => self.far.value().map(Arc::as_ref),
        }
    }

    /// The samples of `end` from before the senders were stopped; all samples if those are too few to measure anything,
    /// as in a run of a few tenths of a second.
    pub fn steady(&self, end: EndName) -> &[Sample] {
        let samples = self.end(end).map_or(&[][..], |e| &e.samples);
        let count = self.steady_samples.map(|(near, far)| match end {
            EndName::Near => near,
            EndName::Far => far,
        });
        steady(samples, count)
    }

    /// This end's address on the path, as the far end sees it if nothing translates it.
    pub fn near_address(&self) -> Option<IpAddr> {
        self.connections.first().map(|connection| connection.local.ip().to_canonical())
    }

    /// The far end's address on the path, as this end sees it.
    pub fn far_address(&self) -> Option<IpAddr> {
        self.connections.first().map(|connection| connection.remote.ip().to_canonical())
    }

    /// Goodput of the data that `sender` sent, from what the receiver's TCP acknowledged.
    pub(super) fn acknowledged(&self, sender: EndName) -> Option<Measured> {
        if sender == EndName::Near && self.is_written_by_passes() {
            return written(&acknowledged(&self.near.samples), self.plan.omit_s);
        }
        measure(self.steady(sender), &self.acked(sender), self.plan.omit_s, 0.0)
    }

    /// What arrived according to `sender`'s TCP before it was stopped. Not all samples tell; if only one did until then,
    /// all of the run.
    fn acked(&self, sender: EndName) -> Vec<Sample> {
        let until_stop = acknowledged(self.steady(sender));
        match &until_stop[..] {
            [] | [_] => self.end(sender).map_or_else(Vec::new, |end| acknowledged(&end.samples)),
            _ => until_stop,
        }
    }

    /// Whether this end writes a file through the page cache. Cached data counts only after the fsync that ends a pass.
    fn is_written_by_passes(&self) -> bool {
        self.near.before.count("mount.direct") == Ok(0)
    }

    /// Reports that nothing could be left out of a file written through the page cache, if `--omit` asks for it.
    pub(super) fn omitted_nothing(&self) -> Option<String> {
        let asked = self.plan.omit_s > 0.0 && self.senders() == [EndName::Near];
        if !asked || !self.is_written_by_passes() {
            return None;
        }
        let all = acknowledged(&self.near.samples);
        after_steps(&all, self.plan.omit_s).is_none().then(|| {
            "--omit left nothing out: fewer than two passes over the file reached the server after it; choose a longer -t or a \
             smaller --size, or --direct"
                .into()
        })
    }

    /// How long the far end had reported nothing when the senders were to stop, if its report did not come and its
    /// earlier reports end before that time.
    pub fn silence(&self) -> Option<Silence> {
        self.incomplete.as_ref()?;
        let later_s = -self.sender_later_s(EndName::Near);
        Silence::of(self.steady(EndName::Near), self.steady(EndName::Far), later_s)
    }

    /// Set if nothing shows how much of what `sender` sent arrived after the receiver fell silent.
    pub fn partly_counted(&self, sender: EndName) -> Option<Silence> {
        let silence = self.silence().filter(|_| sender == EndName::Near)?;
        self.acknowledged(sender).is_none().then_some(silence)
    }

    /// Number of steps between the samples that count what arrived from `sender`.
    pub fn steps(&self, sender: EndName) -> Option<usize> {
        self.counted_at_s(sender).len().checked_sub(1)
    }

    /// Time from the first of these samples to the last, seconds.
    pub fn counted_for_s(&self, sender: EndName) -> Option<f64> {
        let at_s = self.counted_at_s(sender);
        Some(at_s.last()? - at_s.first()?)
    }

    /// When the samples were taken that count what arrived from `sender`, seconds.
    fn counted_at_s(&self, sender: EndName) -> Vec<f64> {
        let receiver = self.end(sender.other());
        let tells_all = sender == EndName::Far || self.silence().is_none();
        let at_s = |samples: &[Sample]| samples.iter().map(|sample| sample.at_s).collect();
        match receiver.filter(|_| tells_all) {
            Some(_) => at_s(self.steady(sender.other())),
            None => at_s(&self.acked(sender)),
        }
    }

    /// Seconds from the beginning of the receiver's samples to that of the sender's; 0 if nothing relates their clocks,
    /// because both begin with the traffic.
    pub(crate) fn sender_later_s(&self, sender: EndName) -> f64 {
        let far = self.far.get();
        let later_s = far.and_then(|far| self.clocks.far_began_later_s(&self.near, far));
        later_s.map_or(0.0, |later_s| if sender == EndName::Far { later_s } else { -later_s })
    }

    /// Goodput of what `sender` sent, from the receiver's count after slow start. If the receiver reports nothing
    /// during the run or falls silent: from what its TCP acknowledged, or else from what it reported afterwards, or
    /// before it fell silent. `None` if none of these is there.
    pub fn measured(&self, sender: EndName) -> Option<Measured> {
        self.counted(sender).map(|(_, measured)| measured)
    }

    /// The same, with the end that counted it: the receiver, or the sender, whose TCP learned what arrived.
    pub fn counted(&self, sender: EndName) -> Option<(EndName, Measured)> {
        if self.is_without_payload(sender) {
            return None;
        }
        let receiver = sender.other();
        let sent = self.steady(sender);
        let omit_s = self.plan.omit_s;
        // What has arrived waits for the disk until the end: this time counts.
        let to_disk = self.plan.storage.sink.as_ref().is_some_and(|sink| sink.fsync);
        let to_disk = to_disk && omit_s == 0.0 && self.steady_samples.is_none();
        let by_receiver =
            || measure(sent, self.steady(sender.other()), omit_s, self.sender_later_s(sender));
        let tells_all = sender == EndName::Far || self.silence().is_none();
        let by = |end: EndName| move |measured| (end, measured);
        match self.end(receiver).filter(|_| tells_all) {
            Some(seen) if to_disk => whole(&seen.samples).map(by(receiver)),
            Some(_) => by_receiver().map(by(receiver)),
            None => self
                .acknowledged(sender)
                .map(by(sender))
                .or_else(|| self.reported().or_else(by_receiver).map(by(receiver))),
        }
    }

    /// Whether both ends saw that `sender` sent nothing and nothing arrived. Then nothing was measured, rather than a
    /// rate of zero, as after an interrupt before the flows began.
    pub(super) fn is_without_payload(&self, sender: EndName) -> bool {
        let sent = self.steady(sender).last();
        let received = self.steady(sender.other()).last();
        sent.is_some_and(|last| last.sent_bytes == 0)
            && received.is_some_and(|last| last.received_bytes == 0)
    }

    /// One direction as the rules see it; `None` if nothing could be counted, or only a part of the time. A far end
    /// that fell silent gives none: its part of the time is not what limited the whole.
    pub fn evidence(&self, sender: EndName) -> Option<Evidence> {
        if self.partly_counted(sender).is_some() {
            return None;
        }
        let far = match self.silence() {
            Some(silence) => Known::missing(silence.to_string()),
            None => self.far_as_known(),
        };
        Some(Evidence {
            plan: self.plan.clone(),
            sender_end: sender,
            near: Known::Value(self.near.clone()),
            far,
            reported_loss_share: self.reported_loss_share(sender),
            latency: self.latency.clone(),
            fetches: self.fetches.clone(),
            clocks: self.clocks.clone(),
            measured: self.measured(sender)?,
        })
    }

    /// What the far end saw, or else what is configured there.
    fn far_as_known(&self) -> Known<Arc<End>> {
        match (&self.far, &self.far_settings) {
            (Known::Missing(_), Some(settings)) => Known::Value(Arc::new(settings.end())),
            (far, _) => far.clone(),
        }
    }

    /// What the far end reported about the flows on which it has this role.
    pub fn far_counts(&self, role: Role) -> FarCounts<'_> {
        FarCounts::of(self.far_totals.as_ref(), &self.far, role)
    }

    /// Goodput of what this end sent, as the far end reported it afterwards: one number for the whole run.
    pub(super) fn reported(&self) -> Option<Measured> {
        let counts = self.far_counts(Role::Receiver);
        let bytes = *counts.sum(|flow| &flow.bytes).value()?;
        let counted_for = counts.duration_s().value().copied().filter(|s| *s > 0.0);
        let (duration_s, whose) = match counted_for {
            Some(duration_s) => (duration_s, ""),
            None => (self.sent_for_s()?, " and no duration, so this end's is used"),
        };
        Some(Measured {
            goodput: BitRate::over(bytes, duration_s)?,
            from_s: 0.0,
            to_s: duration_s,
            precision_percent: Known::missing(format!(
                "the far end reported one number for the whole run{whose}; one number shows no variation"
            )),
        })
    }

    /// How long this end took to send all that the far end counted, seconds. The measured window is shorter, but what left
    /// after it counts too.
    fn sent_for_s(&self) -> Option<f64> {
        let samples = &self.near.samples;
        let grew = samples.windows(2).rev().find(|pair| pair[1].sent_bytes > pair[0].sent_bytes);
        let last = grew.map(|pair| &pair[1]);
        let last = last.or(samples.last().filter(|last| last.sent_bytes > 0));
        last.map(|last| last.at_s - self.plan.omit_s)
    }

    /// Share of the datagrams from `sender` that did not arrive, according to the far end.
    fn reported_loss_share(&self, sender: EndName) -> Known<f64> {
        if self.plan.transport != Transport::Udp || sender == EndName::Far {
            return Known::missing("only a far end that receives over UDP reports it");
        }
        let last = self.near.last_sample().map(|last| last.sent_bytes);
        let sent = last.map_or(Known::missing("nothing was sampled here"), Known::Value);
        self.far_counts(Role::Receiver).lost_percent(&sent).map(|percent| percent / 100.0)
    }
}

#[cfg(test)]
impl Measurement {
    /// What both ends saw, and nothing else.
    pub fn made_up(plan: Plan, near: End, far: Known<Arc<End>>) -> Self {
        Self {
            plan,
            near: near.into(),
            far,
            far_settings: None,
            connections: Vec::new(),
            far_totals: None,
            intervals: Vec::new(),
            thinned: None,
            steady_samples: None,
            latency: None,
            far_capture: None,
            fetches: None,
            clocks: goodput_model::Clocks::missing("a made-up measurement"),
            incomplete: None,
            doubts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_stands_in_for_a_far_end_that_reports_nothing() {
        let samples: Vec<_> = (0..4u32)
            .map(|second| Sample {
                at_s: second.into(),
                sent_bytes: u64::from(second) * 1_000_000,
                received_bytes: u64::from(second) * 1_000_000,
                flows: Vec::new(),
            })
            .collect();
        let end = || End { samples: samples.clone(), ..End::unobserved(Host::foreign("x")) };
        let mut facts = Snapshot::default();
        facts.put("sysctl.net.ipv4.tcp_rmem", "4096 131072 262144");
        facts.put("cpu.count", 4u64);
        let plan = Plan { transport: Transport::Udp, ..Plan::standard() };
        let seen = |far: Known<Arc<End>>| {
            let mut measured = Measurement::made_up(plan.clone(), end(), far);
            measured.far_totals = None;
            let settings = FarSettings { host: "ssh://b".into(), facts: facts.clone() };
            measured.far_settings = Some(Arc::new(settings));
            measured.far_as_known().get().unwrap().clone()
        };
        let silent = seen(Known::missing("iperf3 reports nothing"));
        assert_eq!((silent.host.name.as_str(), silent.samples.len()), ("ssh://b", 0));
        assert!(silent.before.text("sysctl.net.ipv4.tcp_rmem").is_ok());
        assert_eq!(silent.host.cpus, 4);
        let reporting = seen(Known::Value(Arc::new(end())));
        assert!(reporting.before.facts.is_empty(), "it reports itself");
    }
}
