//! All classes of a shaper at the same time.

use goodput_experiment::steady;
use goodput_model::{EndName, Measured, Missing, Plan, Record};
use goodput_shaping::TcpRate;

use super::ShapingRequest;
use super::sender_facts::tcp_rate_of;
use super::together::all;
use super::train::let_fill;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::{agreed, whole};
use crate::near::near_run::NearRun;
use crate::result::conclude::conclude;
use crate::result::measurement::Measurement;

/// TCP of all classes, seconds.
pub(super) const BESIDE_S: f64 = 4.0;
/// What is left out at both ends of TCP of all classes, seconds: they don't begin and end at exactly the same time, and a
/// class that does not send lends its rate to the others. Their beginnings may be this far apart.
const EDGE_S: f64 = 0.5;

/// Measures all plans at the same time, once all buckets are full. After an interrupt, the reason is what is missing.
///
/// All conversations are ready before the first payload: a queue that one class has filled would hold the others up.
pub(super) async fn at_once(
    requests: &[ShapingRequest],
    plans: &[Plan],
    does: &str,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Vec<Result<Measurement, Missing>> {
    listener(Event::Note { text: format!("{does} of all classes at the same time") });
    // An interrupt ends the connections below as well.
    let _ = let_fill(interrupt).await;
    let pairs: Vec<_> = requests.iter().zip(plans).collect();
    run_together(&pairs, interrupt).await
}

/// Measures all plans at the same time, each in a conversation of its own. After an interrupt, the reason is what is missing.
pub(super) async fn run_together(
    pairs: &[(&ShapingRequest, &Plan)],
    interrupt: &Interrupt,
) -> Vec<Result<Measurement, Missing>> {
    let connecting = pairs.iter().map(|(request, plan)| connected(request, plan, interrupt));
    let mut clients = all(connecting).await;
    let pairs = clients.iter_mut().zip(pairs);
    let runs = all(pairs.map(|(client, (_, plan))| ready(client, plan, interrupt))).await;
    let measured = all(runs.into_iter().map(|run| measured(run, interrupt))).await;
    all(clients.into_iter().flatten().map(Client::leave)).await;
    measured
}

async fn connected(
    ShapingRequest { target, credentials, .. }: &ShapingRequest,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<Client, Missing> {
    Client::connect(target, plan, credentials, interrupt, &mut |_| {}).await.map_err(missing)
}

async fn ready<'a>(
    client: &'a mut Result<Client, Missing>,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<NearRun<'a>, Missing> {
    let client = client.as_mut().map_err(|why| why.clone())?;
    agreed(client, plan, interrupt).await.map_err(missing)
}

async fn measured(
    run: Result<NearRun<'_>, Missing>,
    interrupt: &Interrupt,
) -> Result<Measurement, Missing> {
    let measured = run?.run(interrupt, &mut |_| {}).await.and_then(whole).map_err(missing)?;
    from_its_port(&measured)?;
    Ok(measured)
}

fn missing(why: EngineError) -> Missing {
    Missing::because(why.to_string())
}

/// Checks that a flow has the source port that distinguishes its class. If that port is taken, the flow has the next one,
/// which may belong to another class.
pub(super) fn from_its_port(measurement: &Measurement) -> Result<(), Missing> {
    let Some(asked) = measurement.plan.socket.source_port else { return Ok(()) };
    let ports = measurement.connections.iter().map(|flow| flow.local.port());
    its_port(asked, ports)
}

fn its_port(asked: u16, mut ports: impl Iterator<Item = u16>) -> Result<(), Missing> {
    match ports.find(|port| *port != asked) {
        Some(port) => Err(Missing::because(format!(
            "source port {asked} was in use, and port {port} may be of another class"
        ))),
        None => Ok(()),
    }
}

/// TCP of each class beside the others: its record, and its rate without the edges.
pub(super) fn of_beside(
    requests: &[ShapingRequest],
    measured: Vec<Result<Measurement, Missing>>,
) -> Vec<Result<(Record, TcpRate), Missing>> {
    let began: Result<Vec<f64>, Missing> = measured.iter().flatten().map(began_s).collect();
    let together = began.and_then(|began| close(&began));
    let each = requests.iter().zip(measured).map(|(request, measured)| {
        let measured = measured?;
        together.clone()?;
        rate_beside(request, measured)
    });
    each.collect()
}

/// When the receiver's samples begin, seconds on this host's clock.
fn began_s(measurement: &Measurement) -> Result<f64, Missing> {
    let clock = measurement.near.clock.as_ref();
    let clock = clock.ok_or_else(|| Missing::because("this host does not know when it began"))?;
    let later_s = match receiver(measurement) {
        EndName::Far => -measurement.sender_later_s(EndName::Near),
        EndName::Near => 0.0,
    };
    Ok(clock.began_ns as f64 / 1e9 + later_s)
}

/// Checks that the classes began so close to each other that none sent alone between the edges.
fn close(began_s: &[f64]) -> Result<(), Missing> {
    let (first, last) = began_s
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(*at), high.max(*at)));
    match last - first > EDGE_S {
        true => Err(Missing::because(format!(
            "the classes began {:.1} s apart, so each was alone for a part of the time",
            last - first
        ))),
        false => Ok(()),
    }
}

fn receiver(measurement: &Measurement) -> EndName {
    measurement.senders().first().copied().unwrap_or(EndName::Near).other()
}

fn rate_beside(
    request: &ShapingRequest,
    measurement: Measurement,
) -> Result<(Record, TcpRate), Missing> {
    let measured = without_edges(&measurement)?;
    let concluded = conclude(measurement, &request.target.text, &request.started);
    let record = concluded.map_err(missing)?.record;
    let rate = tcp_rate_of(&record, measured.goodput, &measured.precision_percent)?;
    Ok((record, rate))
}

fn without_edges(measurement: &Measurement) -> Result<Measured, Missing> {
    let receiver = measurement.end(receiver(measurement));
    let receiver = receiver.ok_or_else(|| Missing::because("the receiver reports nothing"))?;
    let counted = receiver.samples.iter().map(|sample| (sample.at_s, sample.received_bytes));
    let counted: Vec<_> =
        counted.filter(|(at_s, _)| (EDGE_S..=BESIDE_S - EDGE_S).contains(at_s)).collect();
    steady::measure(&counted, None, 0.0)
        .ok_or_else(|| Missing::because("the receiver reports too little"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_began_one_after_the_other_were_not_beside_each_other() {
        assert_eq!(close(&[7.0, 7.3, 7.4]), Ok(()));
        assert_eq!(close(&[]), Ok(()));
        let why = close(&[7.0, 7.3, 9.0]).unwrap_err().to_string();
        assert!(why.contains("began 2.0 s apart"), "{why}");
    }

    #[test]
    fn another_source_port_is_another_class() {
        assert_eq!(its_port(6000, [6000].into_iter()), Ok(()));
        let why = its_port(6000, [6001].into_iter()).unwrap_err().to_string();
        assert!(
            why.contains("source port 6000 was in use, and port 6001 may be of another class"),
            "{why}"
        );
    }
}
