//! The states of a client's conversation.

use goodput_model::Plan;

use super::super::counts::Counts;

/// The state of the conversation.
pub enum State {
    /// The cookie was sent.
    Greeting,
    /// The server awaits parameters.
    Idle,
    /// The server considers the parameters.
    Proposed(Box<Plan>),
    /// Data connections are made; the server reports when it has all of them.
    Opening {
        /// The plan.
        plan: Box<Plan>,
        /// Whether the driver has them.
        opened: bool,
        /// Whether the server has them.
        running: bool,
    },
    /// The driver observes, then begins. The server has already begun.
    Ready(Box<Plan>),
    /// Payload moves.
    Running(Run),
    /// Payload ends.
    Ending {
        /// The measurement that ended.
        run: Run,
        /// Whether the server awaits our results.
        asked: bool,
    },
    /// The server has our results; its own are on their way.
    Listening(Run),
    /// Each end has sent its results; the server has to confirm them.
    ResultsSent,
    /// The server has reported a failure; its number follows.
    Failing,
    /// Nothing more will come.
    Over,
}

/// A measurement that has begun.
pub struct Run {
    /// The plan.
    pub plan: Box<Plan>,
    /// What this end counts.
    pub counts: Counts,
}

impl Run {
    /// It begins.
    pub fn new(plan: Box<Plan>, counts: Counts) -> Self {
        Self { plan, counts }
    }
}

impl State {
    /// Whether the server must be notified when the measurement is aborted.
    pub fn is_measuring(&self) -> bool {
        matches!(self, Self::Proposed(_) | Self::Opening { .. } | Self::Ready(_) | Self::Running(_))
    }

    /// Describes this point of the conversation, for an error after a silence or an end.
    pub fn when(&self) -> &'static str {
        match self {
            Self::Greeting => "no answer to the cookie; it may not be an iperf3 server, or be busy",
            Self::Idle => "before it had the parameters",
            Self::Proposed(_) => "no answer to the parameters",
            Self::Opening { .. } => "the data connections were not made",
            Self::Ready(_) => "before payload moved",
            Self::Running(_) => "in the middle of the measurement",
            Self::Ending { asked: false, .. } => "it did not request the results at the end",
            Self::Ending { .. } => "this end had no results",
            Self::Listening(_) => "it did not send its results",
            Self::ResultsSent => "it did not confirm the results",
            Self::Failing | Self::Over => "after the measurement",
        }
    }
}
