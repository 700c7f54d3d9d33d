//! A measurement with a third party: from the parameters that name it to `DONE`.

use std::time::Instant;

use super::super::parameters::{Parameters, ThirdParty};
use super::super::third_party::third_party_test;
use super::super::{ACCEPT_TIMEOUT, DRAIN_TIMEOUT, GRACE_TIME, OURS};
use super::{ServerSession, State, complaint};
use crate::check;
use crate::plain::phrase;
use crate::protocols::goodput::times::after_s;
use crate::session::Action;

/// The stages.
pub enum Stage {
    /// The host has not decided yet.
    ClientRequest {
        /// Whether this end sends to the third party.
        sends: bool,
        /// How long it may take, seconds.
        limit_s: f64,
    },
    /// The client received OK.
    Under {
        /// Whether this end sends to the third party.
        sends: bool,
    },
}

impl Stage {
    /// The message to the client if the measurement ends early.
    pub fn refusal(&self, why: &str) -> String {
        match self {
            Self::ClientRequest { sends, .. } => format!("KO\n{}KO\n", complaint(!sends, why)),
            Self::Under { sends } => complaint(!sends, &format!("Error: {why}")) + "DONE\n",
        }
    }
}

impl ServerSession {
    pub(super) fn ask_third_party(&mut self, now: Instant, asked: &Parameters, other: &ThirdParty) {
        let limits = &self.config.limits;
        match third_party_test(asked, other, limits) {
            Err(why) => self.turn_away(&why, !asked.client_sends),
            Ok(test) => {
                // A plan of bytes has no duration.
                let limit_s = check::duration_s(&test.plan).unwrap_or(limits.duration_s);
                let stage = Stage::ClientRequest { sends: asked.client_sends, limit_s };
                self.out.act(Action::MeasureWithThirdParty(Box::new(test)));
                self.enter(State::ThirdParty(stage), now + ACCEPT_TIMEOUT);
            }
        }
    }

    /// The host has begun the measurement.
    pub(super) fn third_party_begun(&mut self, now: Instant) {
        if let State::ThirdParty(Stage::ClientRequest { sends, limit_s }) = self.state {
            self.out.send(format!("OK v{OURS}\n"));
            // The other conversation has its own time limits; this one outlasts them.
            let until = after_s(now, limit_s) + 4 * DRAIN_TIMEOUT + GRACE_TIME;
            self.enter(State::ThirdParty(Stage::Under { sends }), until);
        }
    }

    /// Passes on the measurement's output, some of which may come from the third party.
    pub(super) fn told(&mut self, lines: &str) {
        if matches!(self.state, State::ThirdParty(Stage::Under { .. })) {
            self.out.send(lines.lines().map(|line| phrase(line) + "\n").collect::<String>());
        }
    }

    pub(super) fn third_party_done(&mut self, outcome: Result<(), String>) {
        match outcome {
            Err(why) => self.refuse(&why),
            Ok(()) if matches!(self.state, State::ThirdParty(_)) => {
                self.out.send("DONE\n");
                self.end();
            }
            Ok(()) => {}
        }
    }
}
