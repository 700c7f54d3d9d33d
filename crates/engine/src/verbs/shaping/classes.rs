//! Several classes of a shaper: TCP of each class alone, then of all classes beside each other, then trains of all.

use goodput_experiment::steady;
use goodput_model::{EndName, Kind, Length, Measured, Missing, Plan, Record, SocketOptions};
use goodput_shaping::{ClassAsked, ClassSeen, Configured, TcpRate, classes, overlapping};

use super::ShapingRequest;
use super::router::{self, Router, RouterFacts, at_router};
use super::sender_facts::{sender, tcp_rate, tcp_rate_of};
use super::together::all;
use super::train::{let_fill, train, train_plan};
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::conclude::conclude;
use crate::result::measurement::Measurement;

/// TCP of one class alone, seconds.
const ALONE_S: f64 = 3.0;
/// TCP of all classes, seconds.
const BESIDE_S: f64 = 4.0;
/// What is left out at both ends of TCP of all classes, seconds: they don't begin and end at exactly the same time, and a
/// class that does not send lends its rate to the others.
const EDGE_S: f64 = 0.5;

/// One class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassRequest {
    /// What it should get.
    pub asked: ClassAsked,
    /// What distinguishes its packets.
    pub mark: ClassMark,
}

/// What distinguishes the packets of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassMark {
    /// Their differentiated services code point.
    Dscp(u8),
    /// Their port at this host.
    SourcePort(u16),
    /// Their port at the far host, where a server answers.
    Port(u16),
}

impl ClassRequest {
    /// The request of the same test for this class alone.
    fn of(&self, whole: &ShapingRequest) -> ShapingRequest {
        let ShapingRequest { target, plan, configured, .. } = whole;
        let (mut target, mut socket) = (target.clone(), plan.socket.clone());
        match self.mark {
            ClassMark::Dscp(dscp) => socket = SocketOptions { dscp: Some(dscp), ..socket },
            ClassMark::SourcePort(port) => socket.source_port = Some(port),
            ClassMark::Port(port) => target = Target { port, ..target },
        }
        let plan = Plan { socket, ..plan.clone() };
        let configured = Configured { rate: self.asked.rate, ..*configured };
        ShapingRequest { target, plan, configured, ..whole.clone() }
    }
}

/// Tests the classes of a shaper.
///
/// # Errors
/// If the target can't be reached, or TCP of a class alone can't be measured. What can't be measured beside the others, or
/// is interrupted, is in the record with its reason.
pub(super) async fn test(
    request: &ShapingRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let requests: Vec<_> = request.classes.iter().map(|class| class.of(request)).collect();
    let (mut alone, mut router) = (Vec::new(), None);
    for (class, request) in request.classes.iter().zip(&requests) {
        let text = format!("measures TCP of {} alone", class.asked.name);
        listener(Event::Note { text });
        alone.push(of_one(request, &mut router, interrupt, listener).await?);
    }
    let tcp = requests.iter().map(|request| tcp_plan(request, BESIDE_S)).collect::<Vec<_>>();
    let trains = of_one_length(requests.iter().map(train_plan).collect());
    let beside = at_once(&requests, &tcp, "measures TCP", interrupt, listener).await;
    let trains = at_once(&requests, &trains, "sends datagrams", interrupt, listener).await;
    concluded(request, alone, beside, trains)
}

/// A record of TCP, and what the router counted meanwhile, if one was named.
type Alone = (Record, Option<Result<RouterFacts, Missing>>);

/// TCP of a class alone. The first class opens the session with the router.
async fn of_one(
    request: &ShapingRequest,
    router: &mut Option<Router>,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Alone, EngineError> {
    let plan = tcp_plan(request, ALONE_S);
    let ShapingRequest { target, credentials, .. } = request;
    let mut client = Client::connect(target, &plan, credentials, interrupt, listener).await?;
    if !client.far_end().reports || !client.far_end().takes_any_plan {
        return Err(EngineError::Flow(format!(
            "{}: only a goodput server answers several classes at the same time; start `goodput serve` there",
            target.text
        )));
    }
    if router.is_none() {
        *router = Router::open(request, &client, interrupt).await?;
    }
    let before = router::before(router).await?;
    let measured = measure_whole(&mut client, &plan, interrupt, &mut |_| {}).await;
    let counted = router::since(router, before).await;
    client.leave().await;
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    Ok((conclude(measured?, &target.text, &request.started)?.record, counted))
}

fn tcp_plan(request: &ShapingRequest, seconds: f64) -> Plan {
    Plan { length: Length::Seconds(seconds), ..request.plan.clone() }
}

/// Trains of the shortest one's length: the others would have its rate afterwards.
fn of_one_length(mut plans: Vec<Plan>) -> Vec<Plan> {
    let seconds = plans.iter().filter_map(|plan| match plan.length {
        Length::Seconds(seconds) => Some(seconds),
        _ => None,
    });
    let shortest = seconds.fold(f64::INFINITY, f64::min);
    for plan in &mut plans {
        plan.length = Length::Seconds(shortest);
    }
    plans
}

/// Measures all plans at the same time, once all buckets are full. After an interrupt, the reason is what is missing.
async fn at_once(
    requests: &[ShapingRequest],
    plans: &[Plan],
    does: &str,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Vec<Result<Measurement, Missing>> {
    listener(Event::Note { text: format!("{does} of all classes at the same time") });
    // An interrupt ends the connections below as well.
    let _ = let_fill(interrupt).await;
    let one = async |(request, plan): (&ShapingRequest, &Plan)| {
        let ShapingRequest { target, credentials, .. } = request;
        let nobody: &mut Listener<'_> = &mut |_| {};
        let mut client = Client::connect(target, plan, credentials, interrupt, nobody).await?;
        let measured = measure_whole(&mut client, plan, interrupt, nobody).await;
        client.leave().await;
        measured
    };
    let measured = all(requests.iter().zip(plans).map(one)).await;
    let missing = |why: EngineError| Missing::because(why.to_string());
    measured.into_iter().map(|one| one.map_err(missing)).collect()
}

/// TCP of a class beside the others: its record, and its rate without the edges.
fn of_beside(
    request: &ShapingRequest,
    measurement: Measurement,
) -> Result<(Record, TcpRate), Missing> {
    let measured = without_edges(&measurement)?;
    let concluded = conclude(measurement, &request.target.text, &request.started);
    let record = concluded.map_err(|why| Missing::because(why.to_string()))?.record;
    let rate = tcp_rate_of(&record, measured.goodput, &measured.precision_percent)?;
    Ok((record, rate))
}

fn without_edges(measurement: &Measurement) -> Result<Measured, Missing> {
    let sender = measurement.senders().first().copied().unwrap_or(EndName::Near);
    let receiver = measurement.end(sender.other());
    let receiver = receiver.ok_or_else(|| Missing::because("the receiver reports nothing"))?;
    let counted = receiver.samples.iter().map(|sample| (sample.at_s, sample.received_bytes));
    let counted: Vec<_> =
        counted.filter(|(at_s, _)| (EDGE_S..=BESIDE_S - EDGE_S).contains(at_s)).collect();
    steady::measure(&counted, None, 0.0)
        .ok_or_else(|| Missing::because("the receiver reports too little"))
}

/// The record of the class that is furthest below its rate, with what all classes show.
fn concluded(
    request: &ShapingRequest,
    alone: Vec<Alone>,
    beside: Vec<Result<Measurement, Missing>>,
    trains: Vec<Result<Measurement, Missing>>,
) -> Result<Record, EngineError> {
    let beside = beside.into_iter().map(|one| one.and_then(|all| of_beside(request, all)));
    let beside: Vec<_> = beside.collect();
    let trains = trains.into_iter().map(|one| one.and_then(|all| train(&all))).collect();
    let trains = overlapping(trains).into_iter();
    let seen = request.classes.iter().zip(&alone).zip(&beside).zip(trains);
    let unwatched = || Err(Missing::because("timers are not watched for classes"));
    let seen = seen.map(|(((class, (alone, router)), beside), train)| ClassSeen {
        asked: class.asked.clone(),
        alone: tcp_rate(alone),
        beside: beside.as_ref().map(|(_, rate)| *rate).map_err(Clone::clone),
        datagrams: train,
        sender: at_router(sender(alone, unwatched()), router.as_ref()),
    });
    let test = classes(request.configured, &seen.collect::<Vec<_>>());
    let place = test.furthest_below().unwrap_or_default();
    let of_class = beside.into_iter().zip(alone).nth(place);
    let (beside, (alone, _)) =
        of_class.ok_or_else(|| EngineError::Flow("there is no class".into()))?;
    let record = beside.map_or(alone, |(record, _)| record);
    Ok(Record { kind: Kind::Shaping, shaping: Some(Box::new(test)), ..record })
}
