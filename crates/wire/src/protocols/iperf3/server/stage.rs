//! The states of a server's conversation.

use std::net::SocketAddr;

use goodput_model::{EndName, Sample};

use super::super::PROGRAM;
use super::super::agree::Agreed;
use super::super::counts::Counts;
use super::super::errors::number;
use super::super::output::Printout;
use super::super::params::Params;
use super::super::results::Results;

/// The state of the conversation.
pub enum Stage {
    /// The cookie is awaited.
    Greeting,
    /// The parameters are awaited.
    Awaiting,
    /// The host checks the login.
    Judging(Box<Params>),
    /// The client may not measure; the refusal is sent after a delay.
    Denied,
    /// The host prepares for the data connections.
    Preparing(Box<Run>),
    /// The data connections are awaited.
    Gathering(Box<Run>),
    /// Payload moves.
    Running(Box<Run>),
    /// The client has ended the test; our flows have not ended yet.
    Ending(Box<Run>),
    /// The client's results are awaited.
    Asking(Box<Run>),
    /// The client's goodbye is awaited.
    Parting,
}

/// The plan, and this end's counts.
pub struct Run {
    /// The client's request.
    pub agreed: Agreed,
    counts: Counts,
    output: Option<Printout>,
}

impl Run {
    /// No counts yet.
    pub fn new(agreed: Agreed, peer: SocketAddr) -> Self {
        let output = agreed.wants_output.then(|| Printout::new(&agreed, peer));
        let counts = Counts::new(EndName::Far, agreed.omit_s);
        Self { agreed, counts, output }
    }

    /// The client's program, as reported by the client.
    pub fn program(&self) -> String {
        match &self.agreed.client_version {
            Some(version) => format!("{PROGRAM} {version}"),
            None => PROGRAM.into(),
        }
    }

    /// Takes a sample of this end.
    pub fn sampled(&mut self, sample: &Sample) {
        self.counts.sampled(sample);
        if let Some(output) = &mut self.output {
            output.sampled(sample);
        }
    }

    /// Takes the last sample of this end.
    pub fn ended(&mut self, last: Sample) {
        if let Some(output) = &mut self.output {
            output.ended(&last);
        }
        self.counts.ended(last);
    }

    /// Whether the last sample is there.
    pub fn is_complete(&self) -> bool {
        self.counts.is_complete()
    }

    /// This end's results for the client.
    pub fn results(&self) -> Results {
        let results = self.counts.results(&self.agreed.plan, None);
        let text = self.output.as_ref().map(|output| output.text(&results));
        Results { server_output_text: text, ..results }
    }
}

impl Stage {
    /// The measurement while this end counts.
    pub fn run(&mut self) -> Option<&mut Run> {
        match self {
            Self::Running(run) | Self::Ending(run) => Some(run),
            _ => None,
        }
    }

    /// Whether the host is busy with a measurement.
    pub fn is_measuring(&self) -> bool {
        matches!(
            self,
            Self::Preparing(_)
                | Self::Gathering(_)
                | Self::Running(_)
                | Self::Ending(_)
                | Self::Asking(_)
        )
    }

    /// iperf3's number for nonsensical bytes at this point, if a client listens for one.
    pub fn number_of_nonsense(&self) -> Option<u32> {
        match self {
            Self::Greeting | Self::Denied | Self::Parting => None,
            Self::Awaiting => Some(number::RECEIVE_PARAMS),
            Self::Judging(_) => Some(number::AUTH),
            Self::Asking(_) => Some(number::RECEIVE_RESULTS),
            _ => Some(number::MESSAGE),
        }
    }

    /// Describes this point of the conversation, for an error after a silence or an end.
    pub fn when(&self) -> &'static str {
        match self {
            Self::Greeting => "before it showed a cookie",
            Self::Awaiting => "before it sent its parameters",
            Self::Judging(_) => "before its login was checked",
            Self::Denied => "before its refusal was sent",
            Self::Preparing(_) => "while this end got ready",
            Self::Gathering(_) => "before all its data connections had arrived",
            Self::Running(_) => "in the middle of the measurement",
            Self::Ending(_) | Self::Asking(_) => "before it sent its results",
            Self::Parting => "without a goodbye",
        }
    }
}
