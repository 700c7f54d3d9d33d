//! Several conversations at the same time, each with a measurement of its own.

use futures_util::future::join_all;
use goodput_model::{Missing, Plan};

use super::ShapingRequest;
use super::train::let_fill;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::{agreed, whole};
use crate::near::near_run::NearRun;
use crate::result::measurement::Measurement;

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
    let mut clients = join_all(connecting).await;
    let pairs = clients.iter_mut().zip(pairs);
    let runs = join_all(pairs.map(|(client, (_, plan))| ready(client, plan, interrupt))).await;
    let measured = join_all(runs.into_iter().map(|run| measured(run, interrupt))).await;
    join_all(clients.into_iter().flatten().map(Client::leave)).await;
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
    if interrupt.is_raised() {
        return Err(Missing::because(interrupt.in_words()));
    }
    from_its_port(&measured)?;
    Ok(measured)
}

/// A failure as the reason for what is missing.
pub(super) fn missing(why: EngineError) -> Missing {
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

#[cfg(test)]
mod tests {
    use super::*;

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
