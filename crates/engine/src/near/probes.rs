//! Latency probes and exchanges of the clocks, before the flows and beside them.

use std::time::Duration;

use goodput_model::{Exchange, Missing};

use super::both_ends::BothEnds;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;
use crate::near::clocks::{CLOCK_PINGS, Comparing, IdleSides};
use crate::near::latency::{Phase, Prober, Probing};

/// How long clock comparisons after the payload may take over the control connection.
const MAX_LAST_PINGS_TIME: Duration = Duration::from_secs(1);

/// What is asked of the far end beside the flows.
pub struct Probes {
    /// Round trips, if the plan asks for them.
    prober: Option<Prober>,
    /// Its clock; `None` once the last questions are asked.
    comparing: Option<Comparing>,
    /// When its clock is asked while the path is idle.
    pub idle_sides: IdleSides,
}

impl Probes {
    /// Probes that are set up, and a comparison of the clocks that has begun.
    pub fn new(prober: Option<Prober>, comparing: Comparing) -> Self {
        Self { prober, comparing: Some(comparing), idle_sides: IdleSides::Both }
    }

    /// Begins to probe under load, if the plan asks for it.
    pub fn start(&self) -> Option<Probing> {
        self.prober.as_ref().map(Prober::start)
    }

    /// Results of the probes before the flows begin, if the plan asks for them.
    pub async fn idle(
        &self,
        ends: &mut BothEnds<'_>,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Option<Phase>, EngineError> {
        let Some(prober) = self.prober.as_ref() else { return Ok(None) };
        let (probing, over) = (prober.start(), tokio::time::sleep(prober.idles()));
        let mut over = std::pin::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                () = interrupt.raised() => break,
                heard = ends.hear(listener) => heard?,
            }
        }
        probing.finish();
        probed(ends, Some(probing), listener).await
    }

    /// Compares the clocks while nothing else is on the path: by datagrams, and over the control connection in case
    /// that no datagram gets through.
    pub async fn first_exchanges(
        &mut self,
        ends: &mut BothEnds<'_>,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let Some(comparing) = self.comparing.take() else { return Ok(()) };
        ends.client.pings.take();
        if comparing.is_asking() {
            ends.client.compare_clocks(CLOCK_PINGS);
        }
        let outcome = {
            let mut first = std::pin::pin!(comparing.first());
            loop {
                tokio::select! {
                    biased;
                    () = &mut first => break Ok(()),
                    heard = ends.hear(listener) => {
                        if heard.is_err() {
                            break heard;
                        }
                    }
                }
            }
        };
        ends.client.compare_clocks(0);
        self.comparing = Some(comparing);
        outcome
    }

    /// The same once more, now that the flows have ended, if the clock is asked then.
    pub fn last_exchanges(&mut self) -> Option<Comparing> {
        self.comparing.take().inspect(|comparing| comparing.finish(self.idle_sides))
    }
}

/// Results of the probes after they were asked to finish. The conversation goes on meanwhile.
pub async fn probed(
    ends: &mut BothEnds<'_>,
    probing: Option<Probing>,
    listener: &mut Listener<'_>,
) -> Result<Option<Phase>, EngineError> {
    let Some(probing) = probing else { return Ok(None) };
    let mut probed = std::pin::pin!(probing.collect());
    loop {
        tokio::select! {
            // Another program's server closes after its report; the results by then count.
            biased;
            phase = &mut probed => return phase.map(Some),
            heard = ends.hear(listener), if ends.hears => heard?,
        }
    }
}

/// The answers about the far end's clock. The conversation goes on meanwhile.
pub async fn compared(
    ends: &mut BothEnds<'_>,
    comparing: Option<Comparing>,
    sides: IdleSides,
    listener: &mut Listener<'_>,
) -> Result<Result<Vec<Exchange>, Missing>, EngineError> {
    let Some(comparing) = comparing else {
        return Ok(Err(Missing::because("they were not compared")));
    };
    let mut collected = std::pin::pin!(comparing.collect());
    let asked = loop {
        tokio::select! {
            // Another program's server closes after its report.
            biased;
            asked = &mut collected => break asked?,
            heard = ends.hear(listener), if ends.hears => heard?,
        }
    };
    let pinged = ends.client.pings.take();
    if asked.is_ok() || pinged.is_empty() {
        return Ok(asked);
    }
    match sides {
        IdleSides::Both => Ok(Ok(pinged_again(ends, pinged, listener).await)),
        IdleSides::Before => Ok(Ok(pinged)),
    }
}

/// The exchanges over the control connection, in place of datagrams: those before the payload, and those after it.
/// Does not wait long, because the first are useful alone.
async fn pinged_again(
    ends: &mut BothEnds<'_>,
    before: Vec<Exchange>,
    listener: &mut Listener<'_>,
) -> Vec<Exchange> {
    if ends.hears {
        ends.client.compare_clocks(CLOCK_PINGS);
    }
    let mut over = std::pin::pin!(tokio::time::sleep(MAX_LAST_PINGS_TIME));
    while ends.hears && ends.client.pings.is_wanting() {
        tokio::select! {
            () = &mut over => break,
            heard = ends.hear(listener) => {
                if heard.is_err() {
                    break;
                }
            }
        }
    }
    before.into_iter().chain(ends.client.pings.take()).collect()
}
