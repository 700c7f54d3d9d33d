//! One measurement with a greeted peer, from the proposal of a plan to both ends' observations.

use std::time::Duration;

use goodput_model::{Length, Plan};

use super::client::Client;
use super::clocks::IdleSides;
use super::near_run::NearRun;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::{Interrupt, unless_raised};
use crate::result::measurement::{Incomplete, Measurement};

/// Makes one measurement with the peer of `client`. An interrupt ends it early with what was measured so far; dropping the
/// future stops its flows at once.
pub async fn measure(
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    measure_asking(IdleSides::Both, Duration::ZERO, client, plan, interrupt, listener).await
}

async fn measure_asking(
    sides: IdleSides,
    rest: Duration,
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    let run = agreed(client, plan, interrupt).await?.asking_on(sides).resting_for(rest);
    match run.run(interrupt, listener).await {
        Err(EngineError::BrokenOff(why)) => {
            Err(client.refusal().await.unwrap_or(EngineError::BrokenOff(why)))
        }
        outcome => outcome,
    }
}

/// Agrees with the peer of `client` on one measurement, which then only has to run.
pub async fn agreed<'a>(
    client: &'a mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<NearRun<'a>, EngineError> {
    let agreed = async {
        client.be_met().await?;
        NearRun::agree(client, plan).await
    };
    unless_raised(interrupt, agreed).await
}

/// As [`measure`], but an incomplete measurement is an error: a part of it is of no use.
pub async fn measure_whole(
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    whole(measure(client, plan, interrupt, listener).await?)
}

/// The same after a rest, right before the payload, in which this end sends nothing.
pub async fn measure_rested(
    rest: Duration,
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    whole(measure_asking(IdleSides::Both, rest, client, plan, interrupt, listener).await?)
}

/// Longest run in which the clocks may drift uncorrected, seconds: 0.5 ms at a drift of 100 ppm.
const LONGEST_UNCORRECTED_S: f64 = 5.0;

/// The same for one of many runs: if it is short, what bounds the drift of the clocks more closely is left out, because on a
/// long path it takes as long as much of the payload.
pub async fn measure_one_of_many(
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Measurement, EngineError> {
    let sides = match plan.length {
        Length::Seconds(seconds) if seconds <= LONGEST_UNCORRECTED_S => IdleSides::Before,
        _ => IdleSides::Both,
    };
    whole(measure_asking(sides, Duration::ZERO, client, plan, interrupt, listener).await?)
}

/// The measurement, unless it is incomplete.
pub fn whole(measurement: Measurement) -> Result<Measurement, EngineError> {
    match measurement.incomplete {
        Some(Incomplete { why, not_permitted, .. }) => {
            Err(EngineError::Incomplete { why, not_permitted })
        }
        None => Ok(measurement),
    }
}
