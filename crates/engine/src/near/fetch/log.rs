//! What becomes known of the requests of a measurement, in bounded memory whatever their number.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goodput_experiment::quantile::nearest_rank;
use goodput_files::{About, Body, RpcLog};
use goodput_model::{Bytes, Fetch, FetchTimes, Fetches, Known, Rpcs, median};

/// Most times of one kind that are kept for their median: more would change it little.
const MAX_KEPT_TIMES: usize = 10_000;

/// The requests of all flows.
pub struct FetchLog(Mutex<Inner>);

struct Inner {
    first: Known<Fetch>,
    /// Times of further fetches like the first one, seconds.
    alone_s: Vec<f64>,
    /// Host and port of the proxy, if there is one.
    proxy: Option<String>,
    about: About,
    file_bytes: Option<u64>,
    /// Shortest and longest announced length of the file, if it is fetched.
    announced: Option<(u64, u64)>,
    flows: Vec<Flow>,
    answers: u64,
    connections: u64,
    first_byte_us: Vec<f64>,
    longest_first_byte_us: f64,
    whole_s: Vec<f64>,
    confirmed_us: Vec<f64>,
}

/// The requests of one flow.
#[derive(Clone, Default)]
struct Flow {
    /// When it requested what it reads now.
    asked: Option<Instant>,
    /// When the last body ended, or the measurement began.
    over: Option<Instant>,
    /// Time without payload because it was being requested.
    asking: Duration,
    /// Time without payload because the connection had broken.
    reconnecting: Duration,
    began: Option<Instant>,
    /// Its calls, if it asks piece by piece.
    calls: Option<Arc<RpcLog>>,
}

impl FetchLog {
    /// The log of flows that follow this fetch and, once they are known, others like it.
    pub fn new(first: Known<Fetch>, flows: u16, proxy: Option<String>, about: About) -> Self {
        Self(Mutex::new(Inner {
            announced: None,
            first,
            alone_s: Vec::new(),
            proxy,
            about,
            file_bytes: None,
            flows: vec![Flow::default(); usize::from(flows)],
            answers: 0,
            connections: u64::from(flows),
            first_byte_us: Vec::new(),
            longest_first_byte_us: 0.0,
            whole_s: Vec::new(),
            confirmed_us: Vec::new(),
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Times of further fetches before the measurement, seconds.
    pub fn alone(&self, times_s: Vec<f64>) {
        self.inner().alone_s = times_s;
    }

    /// Sets the calls of a flow, if it asks piece by piece.
    pub fn calls(&self, flow: u16, calls: Option<Arc<RpcLog>>) {
        if let Some(of_flow) = self.inner().flows.get_mut(usize::from(flow)) {
            of_flow.calls = calls;
        }
    }

    /// A flow has read everything that it requested, if it requested anything before.
    pub fn over(&self, flow: u16, now: Instant) {
        let mut inner = self.inner();
        let Some(of_flow) = inner.flows.get_mut(usize::from(flow)) else { return };
        let before = of_flow.over.replace(now);
        of_flow.began.get_or_insert(now);
        if let Some(asked) = of_flow.asked.take() {
            // A request sent ahead did not take the time of the file before it.
            let asked = before.map_or(asked, |before| asked.max(before));
            keep(&mut inner.whole_s, now.saturating_duration_since(asked).as_secs_f64());
        }
    }

    /// Notes the announced number of bytes of what is fetched.
    pub fn announced(&self, bytes: u64) {
        let mut inner = self.inner();
        let (least, most) = inner.announced.unwrap_or((bytes, bytes));
        inner.announced = Some((least.min(bytes), most.max(bytes)));
    }

    /// Reports that the file changed, if it did.
    pub fn change(&self) -> Option<String> {
        let (least, most) = self.inner().announced.filter(|(least, most)| least < most)?;
        Some(format!(
            "the file changed between fetches: it had {least} to {most} bytes, so their times can't be compared"
        ))
    }

    /// A flow got an answer.
    pub fn answered(&self, flow: u16, body: &Body, about: About) {
        let mut inner = self.inner();
        // A request sent ahead waited for the file before it, not for the server.
        let over = inner.flows.get(usize::from(flow)).and_then(|of_flow| of_flow.over);
        let asked = over.map_or(body.asked, |over| body.asked.max(over));
        let first_byte_us = body.answered.saturating_duration_since(asked).as_secs_f64() * 1e6;
        if body.answered > asked {
            keep(&mut inner.first_byte_us, first_byte_us);
        }
        inner.longest_first_byte_us = inner.longest_first_byte_us.max(first_byte_us);
        inner.answers += 1;
        inner.connections += u64::from(body.anew);
        inner.about = about;
        // The last of several uploads may be shorter.
        inner.file_bytes = body.announced_bytes.max(inner.file_bytes);
        if let Some(of_flow) = inner.flows.get_mut(usize::from(flow)) {
            of_flow.asked = Some(body.asked);
            if let Some(over) = of_flow.over {
                of_flow.asking += body.answered.saturating_duration_since(over);
            }
        }
    }

    /// A server confirmed what a flow stored, this long after all of it was written. For `idle` of that time the kernel
    /// had nothing left to send.
    pub fn stored(&self, flow: u16, took: Duration, idle: Option<Duration>) {
        let mut inner = self.inner();
        keep(&mut inner.confirmed_us, took.as_secs_f64() * 1e6);
        if let (Some(of_flow), Some(idle)) = (inner.flows.get_mut(usize::from(flow)), idle) {
            of_flow.asking += idle;
        }
    }

    /// Sets what is known of the server by now.
    pub fn about(&self, about: About) {
        self.inner().about = about;
    }

    /// A flow continues its request after its connection broke at `cut`.
    pub fn went_on(&self, flow: u16, cut: Instant, body: &Body) {
        let mut inner = self.inner();
        inner.connections += u64::from(body.anew);
        if let Some(of_flow) = inner.flows.get_mut(usize::from(flow)) {
            of_flow.reconnecting += body.answered.saturating_duration_since(cut);
        }
    }

    /// All that is known at the end of a measurement.
    pub fn conclude(&self) -> Fetches {
        let now = Instant::now();
        let mut inner = self.inner();
        let about = inner.about.clone();
        let first_byte_us = std::mem::take(&mut inner.first_byte_us);
        let whole_s = std::mem::take(&mut inner.whole_s);
        let confirmed_us = std::mem::take(&mut inner.confirmed_us);
        let longest = inner.longest_first_byte_us;
        let announced = inner.announced.filter(|(least, most)| least < most);
        Fetches {
            version: about.version.map_or(Known::missing("no answer came"), Known::Value),
            server: about
                .server
                .map_or(Known::missing("the server does not report it"), Known::Value),
            tls: about.tls,
            proxy: inner.proxy.clone(),
            moved_to: about.moved_to,
            remarks: about.remarks,
            first: inner.first.clone(),
            file_bytes: match (announced, inner.file_bytes) {
                (Some(_), _) => Known::missing("of a length that changed"),
                (None, Some(bytes)) => Known::Value(bytes),
                (None, None) => Known::missing("length not announced"),
            },
            answers: inner.answers,
            connections: Known::Value(inner.connections),
            longest_first_byte_us: match first_byte_us.is_empty() {
                true => Known::missing("no answer came"),
                false => Known::Value(longest),
            },
            first_byte_us: middle(first_byte_us, "no answer came"),
            confirmed_us: median(confirmed_us),
            whole_times: FetchTimes::of(&whole_s),
            alone_times: FetchTimes::of(&inner.alone_s),
            whole_s: middle(whole_s, "no file was moved to its end"),
            asking_share: share(&inner.flows, now, |flow| flow.asking),
            rpcs: rpcs(&inner.flows, now),
        }
    }
}

fn keep(times: &mut Vec<f64>, time: f64) {
    if times.len() < MAX_KEPT_TIMES {
        times.push(time);
    }
}

fn middle(times: Vec<f64>, none: &'static str) -> Known<f64> {
    median(times).map_or(Known::missing(none), Known::Value)
}

/// The calls of all flows.
fn rpcs(flows: &[Flow], now: Instant) -> Option<Rpcs> {
    let all: Vec<_> = flows.iter().filter_map(|flow| Some(flow.calls.as_ref()?.so_far())).collect();
    let first = all.first()?;
    let longest = all.iter().map(|calls| calls.longest_us).fold(0.0, f64::max);
    let shortest = all.iter().filter_map(|calls| calls.shortest_us).reduce(f64::min);
    let answered: u64 = all.iter().map(|calls| calls.answered).sum();
    let none = "no call was answered";
    let if_any = |time: f64| if answered == 0 { Known::missing(none) } else { Known::Value(time) };
    let sum_us: f64 = all.iter().map(|calls| calls.sum_us).sum();
    let mut times: Vec<f64> = all.iter().flat_map(|calls| &calls.round_trips_us).copied().collect();
    times.sort_by(f64::total_cmp);
    Some(Rpcs {
        call_bytes: Bytes(u64::from(first.call_bytes)),
        slots: first.slots,
        answered,
        short: all.iter().map(|calls| calls.short).sum(),
        retransmitted: Known::Value(all.iter().map(|calls| calls.retransmitted).sum()),
        put_off: Known::Value(all.iter().map(|calls| calls.put_off).sum()),
        reconnects: Known::Value(all.iter().map(|calls| calls.reconnects).sum()),
        reconnecting_share: share(flows, now, |flow| flow.reconnecting),
        longest_round_trip_us: if_any(longest),
        shortest_round_trip_us: shortest.map_or(Known::missing(none), Known::Value),
        idle_share: idle_share(flows, &all, now),
        mean_round_trip_us: if_any(sum_us / answered as f64),
        p99_round_trip_us: nearest_rank(&times, 0.99).map_or(Known::missing(none), Known::Value),
        round_trip_us: middle(times, none),
    })
}

/// Share of the flows' time between the end of one answer and the beginning of the next.
fn idle_share(flows: &[Flow], calls: &[goodput_files::Rpcs], now: Instant) -> Known<f64> {
    let idle = calls.iter().filter_map(|calls| calls.idle).sum::<Duration>();
    let began = flows.iter().filter_map(|flow| flow.began);
    let all: Duration = began.map(|began| now.saturating_duration_since(began)).sum();
    if calls.iter().any(|calls| calls.stored_bytes > 0) {
        return Known::missing("only READs are timed");
    }
    if calls.iter().all(|calls| calls.idle.is_none()) || all.is_zero() {
        return Known::missing("no two answers with payload came");
    }
    Known::Value(idle.as_secs_f64() / all.as_secs_f64())
}

/// Share of the flows' time that was spent this way.
fn share(flows: &[Flow], now: Instant, spent: fn(&Flow) -> Duration) -> Known<f64> {
    let times = flows.iter().filter_map(|flow| {
        let all = now.saturating_duration_since(flow.began?).as_secs_f64();
        Some((spent(flow).as_secs_f64(), all))
    });
    let (spent, all) = times.fold((0.0, 0.0), |sum, time| (sum.0 + time.0, sum.1 + time.1));
    if all > 0.0 {
        Known::Value((spent / all).min(1.0))
    } else {
        Known::missing("nothing was asked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(asked: Instant, answered: Instant) -> Body {
        let extent = goodput_files::Extent::Decoded;
        Body { extent, announced_bytes: Some(9), anew: false, asked, answered }
    }

    #[test]
    fn what_is_asked_for_ahead_does_not_take_the_time_of_the_file_before() {
        let log = FetchLog::new(Known::missing("cut off"), 1, None, About::default());
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        log.over(0, at(0));
        // All three requests leave at the beginning; each body takes 2 s.
        for pass in 0..3 {
            log.answered(0, &body(at(0), at(2 * pass + 1)), About::default());
            log.over(0, at(2 * pass + 2));
        }
        let fetches = log.conclude();
        let longest_us = *fetches.longest_first_byte_us.value().unwrap();
        assert!(longest_us < 1.1e6, "{longest_us}");
        let times = fetches.whole_times;
        let times = times.value().unwrap();
        assert!((times.geometric_mean_s - 2.0).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn the_time_after_a_break_is_no_time_between_files() {
        let log = FetchLog::new(Known::missing("cut off"), 1, None, About::default());
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        log.over(0, begun);
        log.calls(0, Some(Arc::default()));
        log.answered(0, &body(begun, begun), About::default());
        log.went_on(0, begun, &body(begun, begun + Duration::from_secs(5)));
        let fetches = log.conclude();
        let broken = *fetches.rpcs.unwrap().reconnecting_share.value().unwrap();
        assert!((0.4..0.6).contains(&broken), "{broken}");
        assert_eq!(fetches.asking_share, Known::Value(0.0));
    }

    #[test]
    fn a_file_that_changes_its_size_has_none() {
        let log = FetchLog::new(Known::missing("cut off"), 1, None, About::default());
        log.announced(1000);
        log.announced(1000);
        assert_eq!(log.change(), None);
        log.announced(999);
        assert!(log.change().is_some_and(|words| words.contains("999 to 1000 bytes")));
        assert!(log.conclude().file_bytes.value().is_none());
    }
}
