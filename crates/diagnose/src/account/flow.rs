//! Every flow of the sender, interval by interval.

use std::collections::HashMap;

use goodput_model::{Direction, FlowSample, Missing, Role, TcpInfo};

use super::busy::BusyTimes;
use super::control::FullPipe;
use super::full_path::FullPath;
use super::interval::{Control, Interval, Look, account, is_paced_out, of_datagrams};
use super::pair::Pair;
use super::reader::{Readers, reader_is_behind, throttled_share};
use super::share::{Ledger, Seat};
use super::silence::{Silences, Wait};
use super::state::{CA_LOSS, State, at_once_bytes, state};
use super::work::Work;
use crate::ceiling::ceiling;
use crate::filled_buffer::losses_fill_the_buffer;
use crate::view::{Side, View};

/// Share of its time from which a CPU is full of softirqs.
const FULL_SOFTIRQ_SHARE: f64 = 0.95;

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
    /// Who would have limited by the same counters, had the samples seen again what they saw of the interval before; absent
    /// if there is none, or if samples decide nothing.
    pub as_before: Option<Ledger>,
}

/// Every interval of every flow, in the order of time.
///
/// # Errors
/// If the sender reports no samples.
pub fn entries(view: &View) -> Result<Vec<Entry>, Missing> {
    let path = PathFacts::of(view)?;
    let pairs = Pair::all(view.sender.end()?, Role::Sender);
    let silences = Silences::of(&pairs);
    let kept_from_s = view.unanswered().ok().map(|unanswered| unanswered.explained_from_s);
    let busy = BusyTimes::of(&pairs);
    let is_queued = |(number, pair): (usize, &Pair)| {
        path.most_are_queued(pair) && busy.may_fill(number, pair, path.throttled_share)
    };
    let queued: Vec<bool> = pairs.iter().enumerate().map(is_queued).collect();
    let carries = ceiling(view).value().map(|rate| rate.0);
    let is_measured =
        |pair: &Pair| [pair.from_s, pair.to_s].iter().all(|at| view.sender.is_measured(*at));
    let full = FullPath::of(&pairs, &queued, carries).measured_over(&pairs, is_measured);
    let mut pasts: HashMap<u16, Past<'_>> = HashMap::new();
    let mut entries = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let used_share = full.used_share(number);
        let is_full = full.is_at_ceiling(pair) || queued[number] && full.is_at_usual(number);
        let is_kept = kept_from_s.is_some_and(|kept_from_s| pair.from_s >= kept_from_s);
        for ((earlier, later), busy_us) in pair.flows.iter().zip(busy.of_pair(number)) {
            let past = pasts.entry(later.flow).or_default();
            let wait = silences.wait(number, later.flow);
            let wait = if is_kept { Some(Wait::Queue) } else { wait };
            let seen = Seen { is_full, used_share, wait, busy_us: busy_us.clone() };
            let ledgers = path.ledgers([pair.from_s, pair.to_s], [earlier, later], seen, past);
            let (ledger, as_before) =
                ledgers.map_or_else(|why| (Err(why), None), |(l, b)| (Ok(l), b));
            entries.push(Entry {
                flow: later.flow,
                from_s: pair.from_s,
                to_s: pair.to_s,
                is_measured: is_measured(pair),
                ledger,
                as_before,
            });
        }
    }
    Ok(entries)
}

/// What only all flows, or all samples, show of one interval of a flow.
#[derive(Debug)]
struct Seen {
    is_full: bool,
    used_share: f64,
    wait: Option<Wait>,
    busy_us: Result<f64, Missing>,
}

/// What one flow's earlier intervals leave to the next.
#[derive(Debug, Default)]
struct Past<'a> {
    pipe: FullPipe,
    look: Option<Look<'a>>,
    /// When it was first sampled, seconds.
    began_s: Option<f64>,
}

/// What another program's writers did over the whole window, shares of it.
#[derive(Debug, Clone, Copy)]
struct Watched {
    waits: f64,
    runs: f64,
}

impl Watched {
    fn of(side: &Side) -> Option<Self> {
        let waits = side.is_watched().then(|| side.blocked_share().ok()).flatten()?;
        Some(Self { waits, runs: side.thread_cpu_share().unwrap_or(0.0) })
    }
}

/// What holds for all intervals.
struct PathFacts<'a> {
    readers: Readers<'a>,
    base_s: Result<f64, Missing>,
    late_s: f64,
    throttled_share: f64,
    watched: Option<Watched>,
    softirqs_full: Option<Seat>,
    is_tcp: bool,
    losses_fill: bool,
    by_loss: bool,
    acks_may_wait: bool,
}

impl<'a> PathFacts<'a> {
    fn of(view: &View<'a>) -> Result<Self, Missing> {
        let full =
            |share: Result<f64, Missing>| share.is_ok_and(|share| share >= FULL_SOFTIRQ_SHARE);
        let seats = [(&view.sender, Seat::Sender), (&view.receiver, Seat::Receiver)];
        Ok(Self {
            readers: Readers::of(view),
            base_s: view.sender.min_rtt_s(),
            late_s: view.late_s(),
            throttled_share: throttled_share(&view.sender),
            watched: Watched::of(&view.sender),
            softirqs_full: seats
                .into_iter()
                .find(|(side, _)| full(side.softirq_share()))
                .map(|(_, seat)| seat),
            is_tcp: view.is_tcp(),
            losses_fill: losses_fill_the_buffer(view).unwrap_or(false),
            by_loss: view.backs_off_at_loss().unwrap_or(true),
            // In the queue of the other direction's payload, or for a reader that is behind
            // (net/ipv4/tcp_input.c, `__tcp_ack_snd_check`).
            acks_may_wait: view.plan().direction == Direction::Both || reader_is_behind(view),
        })
    }

    /// Who limited, and who would have limited if the samples had seen what they saw before.
    fn ledgers<'b>(
        &self,
        [from_s, to_s]: [f64; 2],
        [from, to]: [&'b FlowSample; 2],
        seen: Seen,
        past: &mut Past<'b>,
    ) -> Result<(Ledger, Option<Ledger>), Missing> {
        let (lasts_s, duration_us) = (to_s - from_s, (to_s - from_s) * 1e6);
        let writer = Work::between(from, to)
            .or_else(|why| self.watched_writer(duration_us).ok_or(why))
            .map(|work| work.throttled(self.throttled_share * duration_us, duration_us));
        if !self.is_tcp {
            return Ok((of_datagrams(&writer?, duration_us).scaled_to(lasts_s), None));
        }
        let tcp = [from.tcp.get()?, to.tcp.get()?];
        let control =
            if self.by_loss { Control::ByLoss } else { past.pipe.after(tcp[1], duration_us) };
        let since_s = to_s - *past.began_s.get_or_insert(from_s);
        let look = Look {
            tcp,
            behind: self.readers.behind(to.flow, from_s, to_s),
            full_for_all: seen.is_full,
            used_share: seen.used_share,
            queued: !seen.is_full && self.is_queued(tcp[1], seen.wait)?,
        };
        let interval = Interval {
            duration_us,
            tcp,
            look,
            busy_us: seen.busy_us?,
            losses_fill: self.losses_fill,
            writer,
            softirqs_full: self.softirqs_full,
            wait: seen.wait,
            paced_out: is_paced_out(tcp[1], since_s),
            control,
        };
        let ledger = account(&interval)?.scaled_to(lasts_s);
        let before = past.look.replace(look).map(|look| Interval { look, ..interval });
        let as_before = before.and_then(|interval| account(&interval).ok());
        Ok((ledger, as_before.map(|ledger| ledger.scaled_to(lasts_s))))
    }

    /// What another program's thread did, as far as its sockets show.
    fn watched_writer(&self, duration_us: f64) -> Option<Work> {
        let Watched { waits, runs } = self.watched?;
        let (blocked_us, ran_us) = (waits * duration_us, runs * duration_us);
        Some(Work { blocked_us, ran_us, ..Work::default() })
    }

    /// Whether most of the flows waited in a queue, of those whose round trips are fresh.
    fn most_are_queued(&self, pair: &Pair) -> bool {
        let fresh: Vec<&TcpInfo> = pair.flows.iter().filter_map(freshly_measured).collect();
        let waits = |tcp: &&&TcpInfo| self.is_queued(tcp, None).unwrap_or(false);
        2 * fresh.iter().filter(waits).count() > fresh.len()
    }

    /// Whether a round trip took longer than what hosts, jitter and what is sent at once make of the shortest, or a silence
    /// was a queue. Where acknowledgements may wait, neither shows a queue that a full window of the peer's has filled.
    fn is_queued(&self, tcp: &TcpInfo, wait: Option<Wait>) -> Result<bool, Missing> {
        if self.acks_may_wait && state(tcp)? == State::Closed {
            return Ok(false);
        }
        let waits_s = tcp.rtt_us()? as f64 / 1e6 - self.base_s.clone()?;
        let rate = tcp.delivery_rate_bytes_per_s()? as f64;
        let train_s = if rate > 0.0 { at_once_bytes(tcp)? / rate } else { 0.0 };
        let jitter_s = tcp.rttvar_us.unwrap_or(0) as f64 / 1e6;
        Ok(wait == Some(Wait::Queue) || waits_s > self.late_s + jitter_s.max(train_s))
    }
}

/// The connection at the end of two samples, if it measured round trips between them: something of it was delivered, and it
/// does not wait for a time-out, after which the smoothed round trip is still that of before.
fn freshly_measured<'a>((from, to): &(&FlowSample, &'a FlowSample)) -> Option<&'a TcpInfo> {
    let (before, tcp) = (from.tcp.value()?, to.tcp.value()?);
    // Linux before 4.18 does not report what was delivered.
    let counted = |tcp: &TcpInfo| tcp.delivered_segments.or(tcp.acked_bytes);
    let is_fresh = counted(tcp)? > counted(before)? && tcp.ca_state != Some(CA_LOSS);
    is_fresh.then_some(tcp)
}
