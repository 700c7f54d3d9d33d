//! Latency probes and exchanges of the clocks before the flows and beside them.

use goodput_model::{Exchange, Missing};

use super::NearRun;
use crate::clock::Comparing;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;
use crate::latency::{Phase, Probing};

impl NearRun<'_> {
    /// What probes find before the flows begin, where they are asked for.
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

    /// What probes found that were told to finish. The conversation goes on meanwhile.
    pub(super) async fn probed(
        &mut self,
        probing: Option<Probing>,
        listener: &mut Listener<'_>,
    ) -> Result<Option<Phase>, EngineError> {
        let Some(probing) = probing else { return Ok(None) };
        let mut probed = std::pin::pin!(probing.collect());
        loop {
            tokio::select! {
                // Another program's server closes when it has reported; what was found by then counts.
                biased;
                phase = &mut probed => return phase.map(Some),
                action = self.client.next(), if self.hears => self.acted(action?, listener)?,
            }
        }
    }

    /// Lets the clocks be compared while nothing else is on the path.
    pub(super) async fn first_exchanges(&self) {
        if let Some(comparing) = &self.comparing {
            comparing.first().await;
        }
    }

    /// The same once more, now that the flows have ended.
    pub(super) fn last_exchanges(&mut self) -> Option<Comparing> {
        self.comparing.take().inspect(Comparing::finish)
    }

    /// What the far end told of its clock. The conversation goes on meanwhile.
    pub(super) async fn compared(
        &mut self,
        comparing: Option<Comparing>,
        listener: &mut Listener<'_>,
    ) -> Result<Result<Vec<Exchange>, Missing>, EngineError> {
        let Some(comparing) = comparing else {
            return Ok(Err(Missing::because("they were not compared")));
        };
        let mut collected = std::pin::pin!(comparing.collect());
        loop {
            tokio::select! {
                // Another program's server closes when it has reported.
                biased;
                asked = &mut collected => return asked,
                action = self.client.next(), if self.hears => self.acted(action?, listener)?,
            }
        }
    }
}
