//! Whether a shaper delivers its rate: a train of datagrams shows what it does, then TCP shows what its users have.

mod around;
mod arrivals;
mod class_tcp;
mod classes;
mod prove;
mod router;
mod second_flow;
mod sender_facts;
mod together;
mod train;

use std::path::PathBuf;
use std::time::Instant;

use goodput_model::{
    Bytes, Change, Finding, Kind, LEAST_TCP_S, Length, Missing, Place, Plan, Record, ShapingTest,
    Verdict,
};
use goodput_settings::to_keep;
use goodput_shaping::{
    Configured, OtherTraffic, Timers, counts, explain, held_first, judge, judge_tcp, other_traffic,
};

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::captures::{CaptureFiles, CapturedRun, Captures};
use crate::near::client::Client;
use crate::near::measure::measure;
use crate::result::conclude::conclude;
use crate::result::measurement::Measurement;
use around::{with_counts, without_tcp};
pub use classes::{ClassMark, ClassRequest};
pub use prove::ProveRequest;
use prove::{may_prove, prove};
pub use router::RouterRequest;
use router::{Router, RouterFacts};
use second_flow::with_second_flow;
use sender_facts::{sender, tcp_rate, timers};
use train::{Sent, send_train};

/// All traffic together, seconds.
const TRAFFIC_S: f64 = 5.0;

/// What to test.
#[derive(Clone)]
pub struct ShapingRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The plan of the TCP measurement, in one direction and of any length; the train takes the same way, with the same marks.
    pub plan: Plan,
    /// Payload of the train's datagrams.
    pub datagram: Bytes,
    /// The shaper's configuration.
    pub configured: Configured,
    /// Classes to test beside each other instead of the shaper as a whole, if there are any.
    pub classes: Vec<ClassRequest>,
    /// How to compare the settings in question afterwards, if that is wanted.
    pub prove: Option<ProveRequest>,
    /// The router whose queueing discipline to read instead of the sender's, if one was named.
    pub router: Option<RouterRequest>,
    /// The files to capture packets into, if that is wanted.
    pub capture: CaptureFiles,
    /// The file for the times of the train's datagrams, if they are wanted: JSON of a [`goodput_shaping::Train`].
    pub times: Option<PathBuf>,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Tests a shaper. An interrupt ends it early with what was measured.
///
/// # Errors
/// If the target can't be reached, a router does not report its shaper before any traffic, a file can't be written, or
/// neither the train nor TCP was measured. If only one of them was, the record says why the other is missing.
pub async fn shaping(
    request: &ShapingRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let ShapingRequest { target, credentials, plan, .. } = request;
    if target.file.is_some() || target.mounted.is_some() {
        return Err(EngineError::Flow(format!(
            "{}: only a server that measures can test a shaper: name HOST or SCHEME://HOST",
            target.text
        )));
    }
    if !request.classes.is_empty() {
        return classes::test(request, interrupt, listener).await;
    }
    let mut router = Router::open(request, interrupt).await?;
    let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
    may_prove(request, &mut client).await?;
    // A router that does not report its shaper ends the test before any traffic.
    let at_begin = router::before(&mut router, request, &mut client).await?;
    let looked = Instant::now();
    let captures = Captures::start(&client, plan, &request.capture).await?;
    // Before any traffic: what it costs is not the timers'.
    let late = timers(request).await;
    let train = match send_train(request, &mut client, interrupt, listener).await {
        Ok(train) => train,
        Err(why @ (EngineError::Interrupted | EngineError::Io { .. })) => return Err(why),
        Err(why) => Sent::none(request, why.to_string()),
    };
    // Before the second flow: its datagrams are not this train's.
    let sent = router::now(&mut router, request, &mut client).await;
    let looks = router::both(at_begin.map(Ok), sent);
    let train = train.counted_at(looks, looked.elapsed().as_secs_f64());
    let mut train = with_second_flow(request, train, interrupt, listener).await;
    let before = router::now(&mut router, request, &mut client).await;
    let begun = Instant::now();
    let measured = tcp(request, &train, &mut client, interrupt, listener).await;
    let tcp_s = begun.elapsed().as_secs_f64();
    let at_router = router::since(&mut router, before, request, &mut client).await;
    client.leave().await;
    let (mut measured, no_tcp) = or_train(measured, &mut train)?;
    let of_tcp = no_tcp.is_none().then(|| CapturedRun::of(&mut measured));
    let runs = std::mem::take(&mut train.captured).into_iter().chain(of_tcp).collect();
    let mut record = conclude(measured, &target.text, &request.started)?.record;
    if let Some(why) = &no_tcp {
        record = undiagnosed(record, why);
    }
    captures.finish(&mut record, runs).await;
    let has_tcp = no_tcp.is_none();
    let seen = Seen { train, no_tcp, tcp_s, late, at_router };
    let record = explained(request, record, seen);
    Ok(match &request.prove {
        Some(how) if !interrupt.is_raised() && has_tcp => {
            prove(request, how, record, interrupt, listener).await
        }
        _ => record,
    })
}

/// Measures TCP, for the time that the train left.
async fn tcp(
    request: &ShapingRequest,
    train: &Sent,
    client: &mut Client,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    listener(Event::Note { text: "measures TCP, which is what users have".into() });
    let length = Length::Seconds(tcp_s(train));
    let plan = Plan { length, quiet: true, ..request.plan.clone() };
    measure(client, &plan, interrupt, listener).await
}

/// How long TCP sends, seconds: what is left after the train, and after what the queue that the train met holds. It is carried
/// after the train, and again after TCP, which fills the queue as well.
fn tcp_s(train: &Sent) -> f64 {
    let queue = train.shaping.as_ref().ok().and_then(|train| train.queue.value());
    let drains_s = queue.map_or(0.0, |queue| 2.0 * queue.longest_wait_s);
    (TRAFFIC_S - train.seconds - drains_s).max(LEAST_TCP_S)
}

/// What was seen beside the measurement of TCP.
struct Seen {
    train: Sent,
    /// Why TCP was not measured, if it was not.
    no_tcp: Option<Missing>,
    /// How long TCP took, seconds.
    tcp_s: f64,
    /// How late this host's timers are.
    late: Result<Timers, Missing>,
    /// What the router counted around TCP, if one was named.
    at_router: Option<Result<RouterFacts, Missing>>,
}

/// The measurement of TCP. If that failed, or was interrupted before its payload, what the train shows is not lost: its own
/// measurement, and why there is no TCP.
fn or_train(
    tcp: Result<Measurement, EngineError>,
    train: &mut Sent,
) -> Result<(Measurement, Option<Missing>), EngineError> {
    let why = match tcp {
        Ok(measured) => return Ok((measured, None)),
        Err(why) => why,
    };
    let missing = || Missing::because(format!("TCP was not measured: {why}"));
    let own = train.measured.take().filter(|_| train.shaping.is_ok());
    own.map(|own| (own, Some(missing()))).ok_or(why)
}

/// The record of the train, if TCP is missing. Its diagnosis would be of a path that the train overloads on purpose.
fn undiagnosed(record: Record, why: &Missing) -> Record {
    Record {
        verdict: Verdict::missing(why, record.verdict.sender),
        findings: Vec::new(),
        undecided: Vec::new(),
        incomplete: record.incomplete.or(Some(why.to_string())),
        ..record
    }
}

/// The record of TCP, with what the train shows and what explains it.
fn explained(request: &ShapingRequest, record: Record, seen: Seen) -> Record {
    let Seen { train, no_tcp, tcp_s, late, at_router } = seen;
    let Sent { shaping: train, facts, is_foreign, .. } = train;
    let sender = sender(&record, late, at_router.as_ref());
    let of_router = at_router.as_ref().and_then(|facts| facts.as_ref().ok());
    let sender = sender.map(|one| with_counts(one, &record, facts.as_ref(), of_router, tcp_s));
    let (sender, tcp) = match &no_tcp {
        None => (sender, tcp_rate(&record)),
        Some(why) => (sender.map(|sender| without_tcp(sender, why)), Err(why.clone())),
    };
    let read = sender.as_ref().ok().zip(tcp.as_ref().ok());
    let seen = train.as_ref().ok();
    let counts =
        read.and_then(|(sender, tcp)| counts(sender, &request.configured, tcp.packet, seen));
    let configured = Configured { counts, ..request.configured };
    let train = match &sender {
        Ok(sender) => train.map(|train| held_first(train, sender, &configured)),
        Err(_) => train,
    };
    let others = match &sender {
        Ok(sender) => other_traffic(sender, train.as_ref().ok()),
        Err(_) => OtherTraffic::default(),
    };
    let test = match train {
        Err(why) if is_foreign => {
            let limit = sender.as_ref().ok().and_then(|sender| sender.tcp_limit.as_ref());
            judge_tcp(configured, &why, tcp, &others, limit)
        }
        train => judge(configured, train, tcp, &others),
    };
    let mut test = explain(test, sender);
    let changed = test.changes.iter().map(|Change { setting, to, .. }| (setting, to.as_str()));
    test.permanent = to_keep(changed, |_| None);
    let findings = record.findings.into_iter().map(|finding| with_one_remedy(finding, &test));
    let findings = findings.collect();
    let verdict = with_policer(record.verdict, &test);
    Record { kind: Kind::Shaping, shaping: Some(Box::new(test)), findings, verdict, ..record }
}

/// What a test proposes for the same setting takes the place of what the diagnosis of TCP proposes, which knows less: how late
/// this host's timers are.
///
/// Of a policer that drops the bursts of TCP, the diagnosis may only see what follows from that, which no setting of a host
/// mends.
fn with_one_remedy(mut finding: Finding, test: &ShapingTest) -> Finding {
    if polices_bursts(test) && finding.end == Place::Path && finding.rule != POLICER {
        finding.changes.clear();
        finding.permanent.clear();
    }
    for change in &mut finding.changes {
        if let Some(better) = test.changes.iter().find(|better| better.setting == change.setting) {
            change.clone_from(better);
            finding.permanent.clone_from(&test.permanent);
        }
    }
    finding
}

/// The rule of the diagnosis that names a policer.
const POLICER: &str = "policer";

/// Whether the datagrams show a policer that drops bursts of TCP.
fn polices_bursts(test: &ShapingTest) -> bool {
    test.causes.iter().any(|cause| cause.id == "policed-bursts")
}

/// The verdict on TCP, with the policer that is behind what the diagnosis saw on the path.
fn with_policer(verdict: Verdict, test: &ShapingTest) -> Verdict {
    let is_symptom = verdict.limit != POLICER && verdict.limit != Verdict::NO_LIMIT;
    if polices_bursts(test) && verdict.end == Place::Path && is_symptom {
        let summary = format!("{}, because a policer drops bursts of TCP", verdict.summary);
        return Verdict { summary, ..verdict };
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Confidence, End, Host, Known, Shaping, ShapingCause};

    /// A train that was sent, with what it shows.
    fn sent(shaping: Result<Shaping, Missing>) -> Sent {
        let plan = Plan { length: Length::Seconds(1.0), ..Plan::standard() };
        let near = End::unobserved(Host::foreign("made up"));
        let measured = Measurement::made_up(plan, near, Known::missing("made up"));
        Sent {
            shaping,
            captured: Vec::new(),
            seconds: 1.0,
            trains: 1.0,
            calls: None,
            facts: None,
            measured: Some(measured),
            is_foreign: false,
        }
    }

    #[test]
    fn a_router_that_was_lost_takes_its_counts_from_the_train_and_nothing_else() {
        let rate = serde_json::json!({ "value": 1e9, "low": 1e9, "high": 1e9 });
        let mut train = sent(train::tests::single("shaper", 4e9, &rate));
        train.shaping.as_mut().unwrap().rate_waits_per_call = Known::Value(1.0);
        let why = Missing::because("the session with the router ssh://r is over");
        let lost = train.counted_at(Some(Err(why.clone())), 1.0);
        let shaping = lost.shaping.unwrap();
        assert_eq!(shaping.rate_waits_per_call, Known::Missing(why), "this host's are of another");
        assert!(shaping.rate_bits_per_s.value().is_some() && lost.facts.is_none());
    }

    #[test]
    fn a_train_is_not_lost_with_tcp() {
        for failed in [|| EngineError::Interrupted, || EngineError::Flow("refused".into())] {
            let why = failed().to_string();
            let rate = serde_json::json!({ "value": 1e9, "low": 1e9, "high": 1e9 });
            let shown = train::tests::single("shaper", 4e9, &rate);
            let (own, missing) = or_train(Err(failed()), &mut sent(shown)).unwrap();
            assert_eq!(own.plan.length, Length::Seconds(1.0));
            assert_eq!(missing, Some(Missing::because(format!("TCP was not measured: {why}"))));
            let nothing = Err(Missing::because("nothing came"));
            let lost = or_train(Err(failed()), &mut sent(nothing)).map(|_| ()).unwrap_err();
            assert_eq!(lost.to_string(), why);
        }
    }

    #[test]
    fn what_follows_from_a_policer_has_no_remedy_at_a_host() {
        let cause = ShapingCause { id: "policed-bursts".into(), text: String::new() };
        let policed = ShapingTest { causes: vec![cause], ..ShapingTest::of(BitRate(1e7)) };
        let json = include_str!("../../../../store/tests/golden/v1/test.json");
        let change = Record::from_json(json).unwrap().findings[0].changes[0].clone();
        let of = |rule: &str, test: &ShapingTest| {
            let finding = Finding::new(rule, Place::Path, Confidence::Likely, "time-outs");
            with_one_remedy(Finding { changes: vec![change.clone()], ..finding }, test)
        };
        assert!(of("rto-bound", &policed).changes.is_empty());
        assert_eq!(of(POLICER, &policed).changes.len(), 1);
        let other = ShapingTest::of(BitRate(1e7));
        assert_eq!(of("rto-bound", &other).changes.len(), 1);
        let mut verdict = Record::from_json(json).unwrap().verdict;
        (verdict.limit, verdict.end) = ("rto-bound".into(), Place::Path);
        verdict.summary = "retransmission time-outs".into();
        let said = "retransmission time-outs, because a policer drops bursts of TCP";
        assert_eq!(with_policer(verdict.clone(), &policed).summary, said);
        assert_eq!(with_policer(verdict, &other).summary, "retransmission time-outs");
    }

    #[test]
    fn the_overload_of_a_train_is_not_diagnosed_as_the_path_of_its_users() {
        let json = include_str!("../../../../store/tests/golden/v1/test.json");
        let record = Record::from_json(json).unwrap();
        assert!(!record.findings.is_empty() && record.verdict.limit != Verdict::NO_LIMIT);
        let why = Missing::because("TCP was not measured: refused");
        let record = undiagnosed(record, &why);
        assert!(record.findings.is_empty() && record.verdict.limit == Verdict::NO_LIMIT);
        assert_eq!(record.verdict.summary, record.incomplete.unwrap());
    }
}
