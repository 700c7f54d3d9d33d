//! Latency probes and exchanges of the clocks, before the flows and beside them.

use std::time::Duration;

use goodput_model::{Exchange, Missing};

use super::near_run::NearRun;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;
use crate::near::clocks::{CLOCK_PINGS, Comparing};
use crate::near::latency::{Phase, Probing};

/// How long clock comparisons after the payload may take over the control connection.
const MAX_LAST_PINGS_TIME: Duration = Duration::from_secs(1);

impl NearRun<'_> {
    /// Results of the probes before the flows begin, if the plan asks for them.
    pub(super) async fn idle(
        &mut self,
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
                action = self.client.next() => self.acted(action?, listener)?,
            }
        }
        probing.finish();
        self.probed(Some(probing), listener).await
    }

    /// Results of the probes after they were asked to finish. The conversation goes on meanwhile.
    pub(super) async fn probed(
        &mut self,
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
                action = self.client.next(), if self.hears => self.acted(action?, listener)?,
            }
        }
    }

    /// Compares the clocks while nothing else is on the path: by datagrams, and over the control connection in case
    /// that no datagram gets through.
    pub(super) async fn first_exchanges(
        &mut self,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let Some(comparing) = self.comparing.take() else { return Ok(()) };
        self.client.pings.take();
        if comparing.is_asking() {
            self.client.compare_clocks(CLOCK_PINGS);
        }
        let outcome = {
            let mut first = std::pin::pin!(comparing.first());
            loop {
                tokio::select! {
                    biased;
                    () = &mut first => break Ok(()),
                    action = self.client.next() => {
                        let acted = action.and_then(|action| self.acted(action, listener));
                        if acted.is_err() {
                            break acted;
                        }
                    }
                }
            }
        };
        self.client.compare_clocks(0);
        self.comparing = Some(comparing);
        outcome
    }

    /// The same once more, now that the flows have ended.
    pub(super) fn last_exchanges(&mut self) -> Option<Comparing> {
        self.comparing.take().inspect(Comparing::finish)
    }

    /// The answers about the far end's clock. The conversation goes on meanwhile.
    pub(super) async fn compared(
        &mut self,
        comparing: Option<Comparing>,
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
                action = self.client.next(), if self.hears => self.acted(action?, listener)?,
            }
        };
        let pinged = self.client.pings.take();
        if asked.is_ok() || pinged.is_empty() {
            return Ok(asked);
        }
        Ok(Ok(self.pinged_again(pinged, listener).await))
    }

    /// The exchanges over the control connection, in place of datagrams: those before the payload, and those after it.
    /// Does not wait long, because the first are useful alone.
    async fn pinged_again(
        &mut self,
        before: Vec<Exchange>,
        listener: &mut Listener<'_>,
    ) -> Vec<Exchange> {
        if self.hears {
            self.client.compare_clocks(CLOCK_PINGS);
        }
        let mut over = std::pin::pin!(tokio::time::sleep(MAX_LAST_PINGS_TIME));
        while self.hears && self.client.pings.is_wanting() {
            tokio::select! {
                () = &mut over => break,
                action = self.client.next() => {
                    if action.and_then(|action| self.acted(action, listener)).is_err() {
                        break;
                    }
                }
            }
        }
        before.into_iter().chain(self.client.pings.take()).collect()
    }
}
