//! Several classes of a shaper: TCP of each class alone, then of all classes beside each other, then trains of all.

use goodput_model::{Kind, Length, Missing, Plan, Record, SocketOptions};
use goodput_shaping::{
    ClassAsked, ClassSeen, Configured, Sender, TcpRate, TrainPart, classes, overlapping,
};

use super::ShapingRequest;
use super::arrivals::train;
use super::class_tcp::{TOGETHER_S, of_beside};
use super::router::{self, Router, RouterFacts};
use super::sender_facts::{sender, tcp_rate};
use super::together::{at_once, from_its_port, missing};
use super::train::train_plan;
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
/// is interrupted after the first class, is in the record with its reason.
pub(super) async fn test(
    request: &ShapingRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let requests: Vec<_> = request.classes.iter().map(|class| class.of(request)).collect();
    let mut router = Router::open(request, interrupt).await?;
    let mut alone = Vec::new();
    for (class, request) in request.classes.iter().zip(&requests) {
        let text = format!("measures TCP of {} alone", class.asked.name);
        listener(Event::Note { text });
        let one = match of_one(request, &alone, &mut router, interrupt, listener).await {
            Err(why @ EngineError::Interrupted) if !alone.is_empty() => Err(missing(why)),
            one => Ok(one?),
        };
        alone.push(one);
    }
    let tcp = requests.iter().map(|request| tcp_plan(request, TOGETHER_S)).collect::<Vec<_>>();
    let trains = of_one_length(requests.iter().map(train_plan).collect());
    let beside = at_once(&requests, &tcp, "measures TCP", interrupt, listener).await;
    let trains = at_once(&requests, &trains, "sends datagrams", interrupt, listener).await;
    let mut record = concluded(request, alone, of_beside(&requests, beside), trains)?;
    if interrupt.is_raised() {
        record.incomplete.get_or_insert_with(|| interrupt.in_words().into());
    }
    Ok(record)
}

/// TCP of a class alone.
struct Alone {
    record: Record,
    /// Whether its packets had the mark of the class.
    marked: Result<(), Missing>,
    /// What the router counted meanwhile, if one was named.
    counted: Option<Result<RouterFacts, Missing>>,
}

impl Alone {
    /// What TCP got.
    fn tcp(&self) -> Result<TcpRate, Missing> {
        self.marked.clone().and_then(|()| tcp_rate(&self.record))
    }

    /// The end that sent.
    fn sender(&self) -> Result<Sender<'_>, Missing> {
        self.marked.clone()?;
        let unwatched = Err(Missing::because("timers are not watched for classes"));
        sender(&self.record, unwatched, self.counted.as_ref())
    }
}

/// What was seen of a class alone, and beside the others.
fn seen<'a>(
    asked: &ClassAsked,
    alone: &'a Result<Alone, Missing>,
    beside: Result<TcpRate, Missing>,
    datagrams: Result<TrainPart, Missing>,
) -> ClassSeen<'a> {
    let measured = || alone.as_ref().map_err(Clone::clone);
    ClassSeen {
        asked: asked.clone(),
        alone: measured().and_then(Alone::tcp),
        beside,
        datagrams,
        sender: measured().and_then(Alone::sender),
    }
}

/// TCP of a class alone, after that of `earlier` ones. A router that does not report its shaper ends the test before any
/// traffic; later, what was measured is not lost.
async fn of_one(
    request: &ShapingRequest,
    earlier: &[Result<Alone, Missing>],
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
    let before = match earlier {
        [] => router::before(router, request, &mut client).await?.map(Ok),
        _ => router::now(router, request, &mut client).await,
    };
    let measured = measure_whole(&mut client, &plan, interrupt, &mut |_| {}).await;
    let counted = router::since(router, before, request, &mut client).await;
    client.leave().await;
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    let measured = measured?;
    let marked = from_its_port(&measured);
    let record = conclude(measured, &target.text, &request.started)?.record;
    Ok(Alone { record, marked, counted })
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

/// The record of the class that is furthest below its rate, with what all classes show.
fn concluded(
    request: &ShapingRequest,
    alone: Vec<Result<Alone, Missing>>,
    beside: Vec<Result<(Record, TcpRate), Missing>>,
    trains: Vec<Result<Measurement, Missing>>,
) -> Result<Record, EngineError> {
    let trains = trains.into_iter().map(|one| one.and_then(|all| train(&all))).collect();
    let trains = overlapping(trains).into_iter();
    let all = request.classes.iter().zip(&alone).zip(&beside).zip(trains);
    let all = all.map(|(((class, alone), beside), datagrams)| {
        let beside = beside.as_ref().map(|(_, rate)| *rate).map_err(Clone::clone);
        seen(&class.asked, alone, beside, datagrams)
    });
    let test = classes(request.configured, &all.collect::<Vec<_>>());
    let place = test.furthest_below().unwrap_or_default();
    let of_class =
        |(beside, alone): (Result<(Record, TcpRate), Missing>, Result<Alone, Missing>)| {
            let beside = beside.ok().map(|(record, _)| record);
            beside.or_else(|| alone.ok().map(|alone| alone.record))
        };
    let records = beside.into_iter().zip(alone).map(of_class);
    let record = records.skip(place).flatten().next();
    let record = record.ok_or_else(|| EngineError::Flow("there is no class".into()))?;
    Ok(Record { kind: Kind::Shaping, shaping: Some(Box::new(test)), ..record })
}
