//! The train: datagrams faster than the rate, and when they came.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use goodput_model::{
    BitRate, Known, Length, MAX_ARRIVALS, Missing, Plan, REST_S, Seconds, Shaping, ShapingKind,
    Snapshot, SocketOptions, Transport,
};
use goodput_shaping::{Configured, Train, behind};

use super::ShapingRequest;
use super::around::TrainFacts;
use super::arrivals::{JOINING, train};
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::captures::CapturedRun;
use crate::near::client::Client;
use crate::near::measure::measure_rested;
use crate::result::measurement::Measurement;

/// A train is sent at this multiple of the configured rate: fast enough to empty a bucket soon, and not a whole number,
/// so that its datagrams don't beat with the tokens.
const OFFERED_TIMES: f64 = 4.3;
/// Longest train, seconds.
const MAX_TRAIN_S: f64 = 2.5;
/// Datagrams that must arrive from a train, if there is time: ten parts of them show how the rate spreads.
const WANTED_ARRIVALS: f64 = 10_000.0;
/// Pause before a train: the bucket fills.
const BUCKET_FILL_TIME: Duration = Duration::from_millis((REST_S * 1e3) as u64);
/// Rate from which datagrams are joined for the way through the kernel, bits per second: a program that sends them one
/// by one gets little further.
const JOINED_FROM_BITS_PER_S: f64 = 1e9;
/// The mover that sends datagrams one by one.
const SINGLE: &str = "copy";
/// An Ethernet frame of 1500 bytes of IP, bits.
const USUAL_FRAME_BITS: f64 = 1514.0 * 8.0;

/// A train that was sent, or was to be.
pub(super) struct Sent {
    /// What it shows, or why none was sent.
    pub(super) shaping: Result<Shaping, Missing>,
    /// What its captures have, if it was sent.
    pub(super) captured: Vec<CapturedRun>,
    /// How long its traffic takes, seconds.
    pub(super) seconds: f64,
    /// Number of trains that were sent.
    pub(super) trains: f64,
    /// Number of calls that sent it, if that was counted.
    pub(super) calls: Option<f64>,
    /// What both ends counted around it, if it was sent.
    pub(super) facts: Option<TrainFacts>,
    /// Its own measurement, if it was sent.
    pub(super) measured: Option<Measurement>,
    /// Whether the far end is a program that can report on none.
    pub(super) is_foreign: bool,
}

impl Sent {
    /// No train, of which something may have been sent.
    pub(super) fn none(request: &ShapingRequest, why: impl Into<Cow<'static, str>>) -> Self {
        let seconds = train_length_s(request);
        let shaping = Err(Missing::because(why));
        Self {
            shaping,
            captured: Vec::new(),
            seconds,
            trains: 0.0,
            calls: None,
            facts: None,
            measured: None,
            is_foreign: false,
        }
    }
}

impl Sent {
    /// The same with the waits for its rate that a router's queueing discipline counted meanwhile, if one was named, or the
    /// reason why they are unknown. This host's own counts are of another queueing discipline.
    pub(super) fn counted_at(
        mut self,
        router: Option<Result<(Snapshot, Snapshot), Missing>>,
        seconds: f64,
    ) -> Self {
        let counted = match router {
            None => return self,
            // The router's counts are those of both trains.
            Some(Ok(_)) if self.trains > 1.0 => {
                Err(Missing::because("two trains were counted together"))
            }
            Some(counted) => counted,
        };
        let (before, after) = match counted {
            Ok(looks) => looks,
            Err(why) => {
                self.facts = None;
                if let Ok(train) = &mut self.shaping {
                    train.rate_waits_per_call = Known::Missing(why);
                }
                return self;
            }
        };
        if let (Ok(train), Some(calls)) = (&mut self.shaping, self.calls)
            && let Ok(waits) = before.grown(&after, "qdisc.overlimits")
        {
            train.rate_waits_per_call = Known::Value(waits as f64 / calls);
        }
        self.facts = self.facts.map(|facts| facts.with_router((before, after), seconds));
        self
    }
}

/// Sends a train, if the far end can report on it. An interrupt ends what comes after the first one that came whole.
///
/// # Errors
/// If no train comes whole, or the file for its times can't be written.
pub(super) async fn send_train(
    request: &ShapingRequest,
    client: &mut Client,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Sent, EngineError> {
    if !client.far_end().reports || !client.far_end().takes_any_plan {
        let why = "only goodput reports when datagrams come, and another program answers there";
        return Ok(Sent { seconds: 0.0, is_foreign: true, ..Sent::none(request, why) });
    }
    if let Some(why) = too_slow_to_show(request.configured.rate) {
        return Ok(Sent { seconds: 0.0, ..Sent::none(request, why) });
    }
    // Refused before the time is spent.
    let file = request.times.as_deref().map(begin_times).transpose()?;
    let plan = train_plan(request);
    listener(Event::Note {
        text: format!(
            "waits {} s for the bucket to fill, then sends datagrams at {}",
            BUCKET_FILL_TIME.as_secs(),
            plan.rate_bits_per_s.unwrap_or(request.configured.rate)
        ),
    });
    let mut run = one(client, &plan, interrupt).await?;
    if plan.mover != SINGLE && !run.shows_a_shaper() {
        let text = "sends datagrams one by one as well: a policer may take joined ones for one";
        listener(Event::Note { text: text.into() });
        match one(client, &Plan { mover: SINGLE.into(), ..plan }, interrupt).await {
            Ok(single) => run = single.instead_of(run, &request.configured),
            Err(why) => {
                let text = format!("single datagrams were not all sent: {why}");
                listener(Event::Note { text });
            }
        }
    }
    if let (Ok(train), Some(mut file)) = (&run.train, file)
        && let Err(why) = keep(train, &mut file)
    {
        let text = format!("the times of datagrams were not written to the end: {why}");
        listener(Event::Note { text });
    }
    let calls = run.train.as_ref().ok().map(|train| train.sent as f64 / train.batch);
    let Run { shaping, captured, facts, measured, trains, .. } = run;
    let seconds = trains * train_length_s(request);
    let (facts, measured) = (Some(facts), Some(measured));
    Ok(Sent { shaping, captured, seconds, trains, calls, facts, measured, is_foreign: false })
}

/// Why no train can show a rate, if it is so low.
fn too_slow_to_show(rate: BitRate) -> Option<String> {
    let least = BitRate(Train::MIN_ARRIVALS as f64 * USUAL_FRAME_BITS / MAX_TRAIN_S);
    (rate.0 < least.0).then(|| {
        let train = Seconds(MAX_TRAIN_S);
        format!("in {train}, too few datagrams pass at {rate} to show it; {least} is the lowest rate that shows")
    })
}

/// A train as it was sent once.
struct Run {
    train: Result<Train, Missing>,
    shaping: Result<Shaping, Missing>,
    captured: Vec<CapturedRun>,
    facts: TrainFacts,
    measured: Measurement,
    /// Number of trains that were sent for it.
    trains: f64,
}

/// Lets the bucket fill, and sends one. The bucket fills after the ends have agreed: what that takes is a part of a small
/// bucket.
async fn one(client: &mut Client, plan: &Plan, interrupt: &Interrupt) -> Result<Run, EngineError> {
    let begun = Instant::now();
    let mut measurement =
        measure_rested(BUCKET_FILL_TIME, client, plan, interrupt, &mut |_| {}).await?;
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    let train = train(&measurement);
    let shaping = train.clone().and_then(|train| goodput_shaping::shaping(&train));
    let behind = train.as_ref().ok().and_then(behind);
    let facts = TrainFacts::of(&measurement, begun.elapsed().as_secs_f64(), behind);
    let captured = vec![CapturedRun::of(&mut measurement)];
    Ok(Run { train, shaping, captured, facts, measured: measurement, trains: 1.0 })
}

impl Run {
    /// Whether datagrams waited at a rate: what counts joined ones as one would have shown something else.
    fn shows_a_shaper(&self) -> bool {
        let waited = |train: &Shaping| {
            train.kind == ShapingKind::Shaper && train.rate_bits_per_s.value().is_some()
        };
        self.shaping.as_ref().is_ok_and(waited)
    }

    /// This train of single datagrams instead of one of joined ones, if it was fast enough to show something.
    fn instead_of(self, joined: Self, configured: &Configured) -> Self {
        let captured = [joined.captured.clone(), self.captured.clone()].concat();
        let own = overrules(&self.shaping, &joined.shaping, configured);
        let trains = self.trains + joined.trains;
        Self { captured, trains, ..if own { self } else { joined } }
    }
}

/// Whether single datagrams say more than joined ones. If a policer lets the rate of joined ones pass, which come faster, it may
/// just have saved up what the single ones had too much.
fn overrules(
    single: &Result<Shaping, Missing>,
    joined: &Result<Shaping, Missing>,
    configured: &Configured,
) -> bool {
    let none = single.as_ref().is_ok_and(|train| train.kind == ShapingKind::None);
    is_answer(single, configured) && !(none && gives_the_rate(joined, configured))
}

/// Whether a policer let the configured rate pass.
fn gives_the_rate(joined: &Result<Shaping, Missing>, configured: &Configured) -> bool {
    let is_near =
        |rate: f64| (rate / configured.rate.0 - 1.0).abs() * 100.0 <= configured.tolerance_percent;
    joined.as_ref().is_ok_and(|train| {
        train.kind == ShapingKind::Policer
            && train.rate_bits_per_s.value().is_some_and(|rate| is_near(rate.value))
    })
}

/// Whether something held single datagrams, or more of them came than the rate.
fn is_answer(single: &Result<Shaping, Missing>, configured: &Configured) -> bool {
    single.as_ref().is_ok_and(|train| match train.kind {
        ShapingKind::None => train.exceeds(configured.rate, configured.tolerance_percent),
        ShapingKind::Policer | ShapingKind::Shaper => train.rate_bits_per_s.value().is_some(),
    })
}

/// The file for the times of datagrams.
fn begin_times(file: &Path) -> Result<File, EngineError> {
    let operation = || format!("write the times of datagrams to {}", file.display());
    File::create(file).map_err(|cause| EngineError::Io { operation: operation(), cause })
}

/// Writes when each datagram was sent and came.
fn keep(train: &Train, file: &mut File) -> io::Result<()> {
    let json = serde_json::to_vec(train).map_err(io::Error::from);
    json.and_then(|json| file.write_all(&json))
}

/// Waits until a bucket is full.
pub(super) async fn let_fill(interrupt: &Interrupt) -> Result<(), EngineError> {
    tokio::select! {
        () = tokio::time::sleep(BUCKET_FILL_TIME) => Ok(()),
        () = interrupt.raised() => Err(EngineError::Interrupted),
    }
}

/// Length of a train, seconds: enough for a rate, but no longer than the receiver keeps the times of its datagrams.
pub(super) fn train_length_s(request: &ShapingRequest) -> f64 {
    let bits = request.datagram.0 as f64 * 8.0;
    let kept_s = MAX_ARRIVALS as f64 * bits / (request.configured.rate.0 * OFFERED_TIMES);
    (WANTED_ARRIVALS * bits / request.configured.rate.0).max(1.0).min(kept_s).min(MAX_TRAIN_S)
}

/// The plan of a train: of the sockets, only what says which way it takes.
pub(super) fn train_plan(request: &ShapingRequest) -> Plan {
    let payload = request.datagram;
    let rate = request.configured.rate.0 * OFFERED_TIMES;
    let base = &request.plan;
    let SocketOptions { bind, device, family, source_port, dscp, .. } = base.socket.clone();
    Plan {
        transport: Transport::Udp,
        direction: base.direction,
        length: Length::Seconds(train_length_s(request)),
        chunk_bytes: payload,
        rate_bits_per_s: Some(BitRate(rate)),
        // `auto` sends datagrams that have a rate one by one.
        mover: if rate < JOINED_FROM_BITS_PER_S { SINGLE } else { JOINING }.into(),
        arrivals: true,
        far_capture: base.far_capture,
        socket: SocketOptions {
            bind,
            device,
            family,
            source_port,
            dscp,
            ..SocketOptions::default()
        },
        pin: base.pin.clone(),
        ..Plan::standard()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const CONFIGURED: Configured =
        Configured { rate: BitRate(1e9), tolerance_percent: 2.0, max_burst: None, counts: None };

    /// What single datagrams show, as JSON of a train's estimate.
    pub(in crate::verbs::shaping) fn single(
        kind: &str,
        offered: f64,
        rate: &serde_json::Value,
    ) -> Result<Shaping, Missing> {
        let gaps = serde_json::json!({ "longest_s": 0.0, "histogram": [] });
        let train = serde_json::json!({
            "kind": kind, "payload_bytes": 1472, "packet_bytes": 1500, "frame_bytes": 1514, "sent": 9000, "lost": 0,
            "offered_bits_per_s": offered, "rate_bits_per_s": rate, "bucket_bytes": { "missing": "not asked" },
            "queue": { "missing": "not asked" }, "windows": [], "gaps": gaps, "curve": [],
        });
        Ok(serde_json::from_value(train).unwrap())
    }

    /// A policer that takes joined datagrams for one lets them come at 4.4 Gbit/s. Single ones are an answer if they were held,
    /// or came faster than the rate.
    #[test]
    fn single_datagrams_are_an_answer_if_they_were_fast_enough() {
        let held = serde_json::json!({ "value": 1e9, "low": 1e9, "high": 1e9 });
        let unknown = serde_json::json!({ "missing": "too little came" });
        assert!(is_answer(&single("policer", 1.4e9, &held), &CONFIGURED));
        assert!(is_answer(&single("none", 1.4e9, &unknown), &CONFIGURED));
        assert!(!is_answer(&single("none", 0.9e9, &unknown), &CONFIGURED));
        assert!(!is_answer(&single("policer", 1.4e9, &unknown), &CONFIGURED));
        assert!(!is_answer(&Err(Missing::because("the socket dropped some")), &CONFIGURED));
    }

    #[test]
    fn a_policer_that_gives_joined_datagrams_the_rate_had_saved_up_what_single_ones_need() {
        let rate = |value: f64| serde_json::json!({ "value": value, "low": value, "high": value });
        let unknown = serde_json::json!({ "missing": "nothing was held" });
        let passed = single("none", 1.05e9, &unknown);
        let joined = |value| single("policer", 4.3e9, &rate(value));
        assert!(!overrules(&passed, &joined(1e9), &CONFIGURED));
        assert!(overrules(&passed, &joined(4.2e9), &CONFIGURED), "it took joined ones for one");
        assert!(overrules(&single("policer", 1.05e9, &rate(9e8)), &joined(1e9), &CONFIGURED));
    }

    #[test]
    fn a_rate_that_no_train_can_show_is_refused_with_the_lowest_one() {
        assert_eq!(too_slow_to_show(BitRate(78e3)), None);
        let why = too_slow_to_show(BitRate(1e3)).unwrap();
        assert!(
            why.contains("pass at 1 kbit/s") && why.contains("77.5 kbit/s is the lowest"),
            "{why}"
        );
    }
}
