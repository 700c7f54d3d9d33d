//! One measurement at the server: its flows arrive, payload moves, this end reports.

use std::sync::Arc;
use std::time::Duration;

use goodput_kernel::Context;
use goodput_model::{End, Plan, Sample, Snapshot};
use goodput_mover::LastHeard;
use tokio::sync::mpsc;

use super::OwnFlow;
use super::log_line::{held, in_short, lost};
use super::sample_shedding::SampleShedding;
use crate::error::EngineError;
use crate::run::end_run::{EndRun, Seen};
use crate::run::flow_events::Failure;
use crate::run::length::longest;
use crate::run::prepared::Prepared;
use crate::run::traffic::Connected;
use crate::serve::admit::admission::Place;
use crate::serve::admit::progress::MinProgress;
use crate::serve::session::client::ConnectedClient;
use crate::serve::session::gather::{Awaiting, Gathering};
use crate::serve::session::tickets::Arrival;

/// How long after the plan's end its flows end here at the latest; the session's word comes first.
const END_ALLOWANCE: Duration = Duration::from_secs(4);

/// One measurement at the server.
pub(super) struct FarRun {
    own: Arc<Prepared>,
    stage: Stage,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    shedding: SampleShedding,
    place: Place,
    path: Context,
}

enum Stage {
    /// Data connections are arriving.
    Gathering(Gathering),
    /// All flows are there; payload moves, or will.
    Running { run: Box<EndRun>, progress: Option<MinProgress> },
}

/// What a measurement has to report.
pub(super) enum Reported {
    /// A flow has arrived, or why it can't.
    Arrived(Arrival),
    /// What the flows did.
    Seen(Result<Seen, Failure>),
}

impl FarRun {
    /// A measurement whose flows are awaited.
    pub(super) fn new(awaiting: Awaiting) -> Self {
        let Awaiting { own, gathering, arrivals, place, path } = awaiting;
        let shedding = SampleShedding::of(&own.plan);
        let stage = Stage::Gathering(gathering);
        Self { own: Arc::new(own), stage, arrivals, shedding, place, path }
    }

    /// What was agreed.
    pub(super) fn plan(&self) -> &Plan {
        &self.own.plan
    }

    /// The path of the flows, as this host knows it.
    pub(super) fn context(&self) -> &Context {
        &self.own.context
    }

    /// The path to the client.
    pub(super) fn path(&self) -> &Context {
        &self.path
    }

    /// The client hears now that its flows may come. Returns the port at which they arrive, if it is one of their own.
    pub(super) fn expecting(&mut self) -> Option<u16> {
        self.place.expecting();
        match &self.stage {
            Stage::Gathering(gathering) => gathering.data_port(),
            Stage::Running { .. } => None,
        }
    }

    /// Connects the flows that this end has to connect.
    pub(super) fn connect(&mut self, client: &ConnectedClient) {
        if let Stage::Gathering(gathering) = &mut self.stage {
            gathering.connect(&self.own.plan, &client.info);
        }
    }

    /// Takes the conversation's own connection as the first flow.
    pub(super) fn take_own(&mut self, (socket, early): OwnFlow) -> Result<(), String> {
        match &mut self.stage {
            Stage::Gathering(gathering) => gathering.take_own(socket, early),
            Stage::Running { .. } => Ok(()),
        }
    }

    /// The next thing that it has to report.
    pub(super) async fn next(&mut self) -> Reported {
        match &mut self.stage {
            Stage::Running { run, progress: None } => Reported::Seen(run.next().await),
            Stage::Running { run, progress: Some(progress) } => tokio::select! {
                seen = run.next() => Reported::Seen(seen),
                why = progress.lacking() => Reported::Arrived(Err(why)),
            },
            Stage::Gathering(gathering) => tokio::select! {
                // The sender lives in `gathering`, so there is always a next one.
                Some(arrival) = self.arrivals.recv() => Reported::Arrived(arrival),
                why = gathering.overdue() => Reported::Arrived(Err(why)),
            },
        }
    }

    /// Takes a flow that has arrived. If payload moves already, more have come than were awaited.
    pub(super) fn arrived(&mut self, arrival: Arrival) -> Result<(), String> {
        match (&mut self.stage, arrival?) {
            (Stage::Gathering(gathering), connected) => gathering.add(connected),
            (Stage::Running { .. }, _) => Ok(()),
        }
    }

    /// All flows, once they are there.
    pub(super) fn complete(&mut self, client: &ConnectedClient) -> Option<Vec<Connected>> {
        let Stage::Gathering(gathering) = &mut self.stage else { return None };
        let flows = gathering.complete()?;
        if client.forgeable {
            self.place.begun()
        } else {
            self.place.fulfilled()
        }
        Some(flows)
    }

    /// Looks at this host, and sets the flows up.
    pub(super) async fn look(&self) -> Result<Snapshot, EngineError> {
        self.own.look().await
    }

    /// Sets the flows up, with what this host looked like before. `echoes`: when the client last asked for an echo.
    pub(super) fn start(
        &mut self,
        flows: Vec<Connected>,
        before: Snapshot,
        client: &ConnectedClient,
        echoes: LastHeard,
    ) -> Result<(), EngineError> {
        let control = client.conversation.control();
        let rate_limits = self.place.rate_limits();
        let mut run = EndRun::start(Arc::clone(&self.own), flows, &rate_limits, control, echoes)?;
        run.set_before(before);
        self.stage = Stage::Running { run: Box::new(run), progress: None };
        Ok(())
    }

    /// Lets the payload move, within the plan's or the client's time.
    pub(super) fn begin(&mut self, client: &ConnectedClient) -> Result<(), EngineError> {
        let Stage::Running { run, progress } = &mut self.stage else { return Ok(()) };
        *progress = MinProgress::from_now(client.shared.config.min_progress, run.plan());
        let most = Duration::try_from_secs_f64(client.limits().duration_s);
        // The session ends payload before that, and says why; what may hold the session up does not delay this limit.
        let ends_as_planned = client.info.protocol.far_end.ends_as_planned;
        let planned = longest(run.plan()).filter(|_| ends_as_planned);
        let longest = planned.unwrap_or(most.unwrap_or(Duration::MAX / 2));
        run.begin(Some(longest + END_ALLOWANCE)).map(drop)
    }

    /// Ends the payload: senders stop, receivers read to the end.
    pub(super) fn finish(&mut self, soon: bool) {
        let Stage::Running { run, progress } = &mut self.stage else { return };
        // What is still on its way has its own time limit.
        *progress = None;
        run.finish(soon);
    }

    /// Payload has moved as far as this sample says.
    pub(super) fn moved(&mut self, sample: &Sample) {
        if let Stage::Running { progress: Some(progress), .. } = &mut self.stage {
            progress.sampled(sample.sent_bytes, sample.received_bytes);
        }
    }

    /// A sample, or as much of it as the path to the client can take while `waiting` bytes have not left yet.
    pub(super) fn shed(&mut self, sample: Box<Sample>, waiting: usize) -> Option<Box<Sample>> {
        self.shedding.next(sample, waiting)
    }

    /// What was left out of the last sample.
    pub(super) fn left_out(&self, last: &Sample) -> Vec<Sample> {
        self.shedding.last(last)
    }

    /// What was measured, for the log; which limit held its flows back if one did, and which flows were lost.
    pub(super) fn in_short(&self, last: &Sample) -> (String, String) {
        let more = match &self.stage {
            Stage::Running { run, .. } => {
                held(run.held_to(), self.plan(), last) + &lost(run.lost_flows())
            }
            Stage::Gathering(_) => String::new(),
        };
        (in_short(self.plan()), more)
    }

    /// What this end saw, now that all flows have ended. The place is free when it is there.
    pub(super) async fn into_end(self) -> Result<Option<End>, EngineError> {
        let Stage::Running { run, .. } = self.stage else { return Ok(None) };
        let after = run.look_again().await?;
        Ok(Some(run.into_end(after, Vec::new())))
    }
}
