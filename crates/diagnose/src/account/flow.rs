//! Every flow of the sender, interval by interval.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, Role, Sample, TcpInfo};

use super::busy::Busy;
use super::control::FullPipe;
use super::interval::{Control, Interval, account};
use super::reader::{Readers, throttled_share};
use super::share::{Ledger, Seat};
use super::state::at_once_bytes;
use super::work::Work;
use crate::view::View;

/// Share of its time from which a CPU is full of softirqs.
const FULL_SOFTIRQ_SHARE: f64 = 0.95;

/// Samples closer to each other are one, seconds.
const SHORTEST_S: f64 = 1e-4;

/// One flow between two samples.
pub struct Entry {
    /// Its number.
    pub flow: u16,
    /// Start and end, seconds by the sender's samples.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Whether it lies within the measured window.
    pub is_measured: bool,
    /// Who limited, seconds.
    pub ledger: Result<Ledger, Missing>,
}

/// Every interval of every flow, in the order of time.
///
/// # Errors
/// If the sender reports no samples.
pub fn entries(view: &View) -> Result<Vec<Entry>, Missing> {
    let path = PathFacts::of(view)?;
    let samples = &view.sender.end()?.samples;
    let detailed: Vec<&Sample> = samples.iter().filter(|sample| !sample.flows.is_empty()).collect();
    let mut pasts: HashMap<u16, Past> = HashMap::new();
    let mut entries = Vec::new();
    for pair in detailed.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        // Samples of a peer may say anything of their time.
        if to.at_s - from.at_s < SHORTEST_S || !(to.at_s - from.at_s).is_finite() {
            continue;
        }
        for (earlier, later) in senders(from, to) {
            let past = pasts.entry(later.flow).or_default();
            entries.push(Entry {
                flow: later.flow,
                from_s: from.at_s,
                to_s: to.at_s,
                is_measured: [from, to].iter().all(|sample| view.sender.is_measured(sample.at_s)),
                ledger: path.ledger([from.at_s, to.at_s], earlier, later, past),
            });
        }
    }
    Ok(entries)
}

/// Each sending flow that is in both samples.
fn senders<'a>(
    from: &'a Sample,
    to: &'a Sample,
) -> impl Iterator<Item = (&'a FlowSample, &'a FlowSample)> {
    let mine = |flow: &&FlowSample| flow.role == Role::Sender;
    let before: HashMap<u16, &FlowSample> =
        from.flows.iter().filter(mine).map(|flow| (flow.flow, flow)).collect();
    to.flows.iter().filter(mine).filter_map(move |later| Some((*before.get(&later.flow)?, later)))
}

/// What one flow's earlier intervals leave to the next.
#[derive(Debug, Default)]
struct Past {
    pipe: FullPipe,
    busy: Busy,
}

/// What holds for all intervals.
struct PathFacts<'a> {
    readers: Readers<'a>,
    base_s: Result<f64, Missing>,
    late_s: f64,
    throttled_share: f64,
    softirqs_full: Option<Seat>,
    by_loss: bool,
}

impl<'a> PathFacts<'a> {
    fn of(view: &View<'a>) -> Result<Self, Missing> {
        let full =
            |share: Result<f64, Missing>| share.is_ok_and(|share| share >= FULL_SOFTIRQ_SHARE);
        let seats = [(&view.sender, Seat::Sender), (&view.receiver, Seat::Receiver)];
        Ok(Self {
            readers: Readers::of(view),
            base_s: view.sender.min_rtt_s(),
            late_s: view.sides().map(|side| side.late_s()).into_iter().fold(0.0, f64::max),
            throttled_share: throttled_share(&view.sender),
            softirqs_full: seats
                .into_iter()
                .find(|(side, _)| full(side.softirq_share()))
                .map(|(_, seat)| seat),
            by_loss: view.backs_off_at_loss().unwrap_or(true),
        })
    }

    fn ledger(
        &self,
        [from_s, to_s]: [f64; 2],
        from: &FlowSample,
        to: &FlowSample,
        past: &mut Past,
    ) -> Result<Ledger, Missing> {
        let duration_us = (to_s - from_s) * 1e6;
        let tcp = [from.tcp.get()?, to.tcp.get()?];
        let writer = Work::between(from, to)
            .map(|work| work.throttled(self.throttled_share * duration_us, duration_us));
        let control =
            if self.by_loss { Control::ByLoss } else { past.pipe.after(tcp[1], duration_us) };
        let seen = Interval {
            duration_us,
            tcp,
            busy_us: past.busy.within(tcp[0], tcp[1], duration_us)?,
            writer,
            behind: self.readers.behind(to.flow, from_s, to_s),
            softirqs_full: self.softirqs_full,
            queued: self.is_queued(tcp[1])?,
            control,
        };
        Ok(account(&seen)?.scaled_to(to_s - from_s))
    }

    /// Whether a round trip took longer than what hosts, jitter and what is sent at once make of the shortest.
    fn is_queued(&self, tcp: &TcpInfo) -> Result<bool, Missing> {
        let waits_s = tcp.rtt_us()? as f64 / 1e6 - self.base_s.clone()?;
        let rate = tcp.delivery_rate_bytes_per_s()? as f64;
        let train_s = if rate > 0.0 { at_once_bytes(tcp)? / rate } else { 0.0 };
        let jitter_s = tcp.rttvar_us.unwrap_or(0) as f64 / 1e6;
        Ok(waits_s > self.late_s + jitter_s.max(train_s))
    }
}
