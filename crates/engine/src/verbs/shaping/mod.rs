//! Whether a shaper delivers its rate: a train of datagrams shows what it does, then TCP shows what its users have.

mod around;
mod arrivals;
mod beside;
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
    Bytes, Change, Finding, Kind, Length, Missing, Plan, Record, ShapingTest, Verdict,
};
use goodput_settings::to_keep;
use goodput_shaping::{
    Beside, Configured, Timers, beside, counts, explain, held_first, judge, judge_tcp,
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
use prove::prove;
pub use router::RouterRequest;
use router::{Router, RouterFacts};
use second_flow::with_second_flow;
use sender_facts::{sender, tcp_rate, timers};
use train::{Sent, send_train};

/// All traffic together, seconds.
const TRAFFIC_S: f64 = 5.0;
/// Shortest time in which TCP shows its rate on a slow path, seconds.
const LEAST_TCP_S: f64 = 2.0;

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
/// If the target can't be reached, TCP can't be measured, or a file can't be written. Without the train the record says
/// why.
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
    let sent = router::before(&mut router, request, &mut client).await?;
    let train = train.counted_at(at_begin.zip(sent), looked.elapsed().as_secs_f64());
    let mut train = with_second_flow(request, train, interrupt, listener).await?;
    listener(Event::Note { text: "measures TCP, which is what users have".into() });
    let length = Length::Seconds(tcp_s(&train));
    let plan = Plan { length, ..plan.clone() };
    let before = router::before(&mut router, request, &mut client).await?;
    let begun = Instant::now();
    let measured = measure(&mut client, &plan, interrupt, listener).await;
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
    let tcp = Tcp { missing: no_tcp, seconds: tcp_s };
    let record = explained(request, record, train, &tcp, (late, at_router));
    Ok(match &request.prove {
        Some(how) if !interrupt.is_raised() && tcp.missing.is_none() => {
            prove(request, how, record, interrupt, listener).await
        }
        _ => record,
    })
}

/// How long TCP sends, seconds: what is left after the train, and after what the queue that the train met holds. It is carried
/// after the train, and again after TCP, which fills the queue as well.
fn tcp_s(train: &Sent) -> f64 {
    let queue = train.shaping.as_ref().ok().and_then(|train| train.queue.value());
    let drains_s = queue.map_or(0.0, |queue| 2.0 * queue.longest_wait_s);
    (TRAFFIC_S - train.seconds - drains_s).max(LEAST_TCP_S)
}

/// How long TCP took, seconds, or why it was not measured.
struct Tcp {
    missing: Option<Missing>,
    seconds: f64,
}

/// The measurement of TCP. If that failed, what the train shows is not lost: its own measurement, and why there is no TCP.
fn or_train(
    tcp: Result<Measurement, EngineError>,
    train: &mut Sent,
) -> Result<(Measurement, Option<Missing>), EngineError> {
    let why = match tcp {
        Ok(measured) => return Ok((measured, None)),
        Err(why @ (EngineError::Interrupted | EngineError::Io { .. })) => return Err(why),
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
fn explained(
    request: &ShapingRequest,
    record: Record,
    Sent { shaping: train, facts, is_foreign, .. }: Sent,
    timing: &Tcp,
    (late, router): (Result<Timers, Missing>, Option<Result<RouterFacts, Missing>>),
) -> Record {
    let sender = sender(&record, late, router.as_ref());
    let of_router = router.as_ref().and_then(|facts| facts.as_ref().ok());
    let sender =
        sender.map(|one| with_counts(one, &record, facts.as_ref(), of_router, timing.seconds));
    let (sender, tcp) = match &timing.missing {
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
        Ok(sender) => beside(sender, train.as_ref().ok()),
        Err(_) => Beside::default(),
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
    Record { kind: Kind::Shaping, shaping: Some(Box::new(test)), findings, ..record }
}

/// What a test proposes for the same setting takes the place of what the diagnosis of TCP proposes, which knows less: how late
/// this host's timers are.
fn with_one_remedy(mut finding: Finding, test: &ShapingTest) -> Finding {
    for change in &mut finding.changes {
        if let Some(better) = test.changes.iter().find(|better| better.setting == change.setting) {
            change.clone_from(better);
            finding.permanent.clone_from(&test.permanent);
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

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
