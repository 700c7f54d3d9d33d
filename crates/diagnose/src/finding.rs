//! Builds a finding, one piece of evidence at a time.

use std::fmt::Display;

use crate::remedy::{Again, WHY};
use goodput_model::{
    BitRate, Bytes, Change, Confidence, Finding, Known, Missing, Permanent, Place, Seconds, Witness,
};

/// A finding under construction.
pub struct Draft(Finding);

impl Draft {
    /// A cause that `rule` found at `end`; `summary` follows "limited by".
    pub fn new(rule: &str, end: Place, confidence: Confidence, summary: impl Into<String>) -> Self {
        Self(Finding::new(rule, end, confidence, summary))
    }

    /// Share of the time in which the cause held the flow back, 0 to 1.
    pub fn share(mut self, share: f64) -> Self {
        self.0.share_percent = Known::Value(share * 100.0);
        self
    }

    /// The range in which this share lies with 95 % confidence, percent, if that is known.
    pub fn share_between(mut self, percent: Option<[f64; 2]>) -> Self {
        self.0.share_between_percent = percent;
        self
    }

    /// A piece of evidence.
    pub fn saw(mut self, end: Place, name: &str, value: f64, text: impl Into<String>) -> Self {
        self.0.evidence.push(Witness { end, name: name.into(), value, text: text.into() });
        self
    }

    /// A piece of evidence, if it could be read and is a number.
    pub fn saw_if(
        self,
        end: Place,
        name: &str,
        value: Result<f64, Missing>,
        text: impl FnOnce(f64) -> String,
    ) -> Self {
        match value {
            Ok(value) if value.is_finite() => self.saw(end, name, value, text(value)),
            _ => self,
        }
    }

    /// The rate that the next limit would allow.
    pub fn predicted(mut self, rate: Known<BitRate>) -> Self {
        self.0.predicted_bits_per_s = rate;
        self
    }

    /// What to try, best first. The present value is nothing to try.
    pub fn changes(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.0.changes.extend(changes.into_iter().filter(Change::changes_something));
        self
    }

    /// What to do if none of goodput's settings can change it.
    pub fn advice(mut self, text: impl Into<String>) -> Self {
        self.0.advice.push(text.into());
        self
    }

    /// A command to paste at `end`, and why. What is to be done at both ends, or on the path, is said to the near one.
    pub fn command(self, end: Place, command: impl Display, why: impl Display) -> Self {
        let place = if end == Place::Far { "on the far host: " } else { "" };
        self.advice(format!("{command}{WHY}{place}{why}"))
    }

    /// The same test with other options, and why.
    pub fn again(self, again: &Again<'_>, why: impl Display) -> Self {
        self.advice(format!("{again}{WHY}{why}"))
    }

    /// The permanent form of the advice: the lines of a file that survives a reboot. Changes of our own
    /// settings need none: the settings know their own permanent form.
    pub fn permanent(mut self, file: &str, lines: impl Into<String>) -> Self {
        self.0.permanent.push(Permanent { file: file.into(), lines: lines.into() });
        self
    }

    /// The finding; missing if it contains a value that is not a number, because its evidence then makes
    /// no sense (a rate that is not a number, a counter out of range).
    pub fn found(self) -> Result<Option<Finding>, Missing> {
        let Finding { evidence, share_percent, predicted_bits_per_s, .. } = &self.0;
        let seen = evidence.iter().map(|witness| (witness.name.as_str(), witness.value));
        let share = share_percent.value().map(|share| ("its share of the time", *share));
        let gain = predicted_bits_per_s.value().map(|rate| ("the predicted goodput", rate.0));
        match seen.chain(share).chain(gain).find(|(_, value)| !value.is_finite()) {
            Some((name, value)) => Err(Missing::because(format!("{name} is {value}"))),
            None => Ok(Some(self.0)),
        }
    }
}

/// A share for a person: `96 %`, and with one decimal below 10 %.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = match percent {
        p if p >= 9.95 || p == 0.0 => 0,
        p if p >= 0.1 => 1,
        _ => 4,
    };
    format!("{percent:.places$} %")
}

/// A time for a person.
pub fn time(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

/// Bytes for a person.
pub fn bytes(count: f64) -> impl Display {
    Bytes(count.round() as u64)
}

/// Bits per second for a person.
pub fn rate(bits_per_s: f64) -> impl Display {
    BitRate(bits_per_s)
}

/// Bits per second as an argument of a command, ours or tc's: `50mbit`.
pub fn rate_argument(bits_per_s: f64) -> String {
    let text = BitRate(bits_per_s).to_string();
    text.replace(' ', "").trim_end_matches("/s").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_argument_that_is_read_back() {
        for (rate, text) in [(5e7, "50mbit"), (9.41e9, "9.41gbit"), (800.0, "800bit")] {
            assert_eq!(rate_argument(rate), text);
            assert_eq!(text.parse::<BitRate>().unwrap().0, rate);
        }
    }

    #[test]
    fn a_finding_that_rests_on_no_number_is_none() {
        let draft = || Draft::new("rule", Place::Near, Confidence::Certain, "a cause");
        let seen = draft().saw(Place::Near, "rtt_ms", f64::NAN, "");
        assert_eq!(seen.found().unwrap_err().missing, "rtt_ms is NaN");
        assert!(draft().share(f64::INFINITY).found().is_err());
        let gain = Known::Value(BitRate(f64::INFINITY));
        assert!(draft().predicted(gain).found().is_err());
        assert!(draft().saw(Place::Near, "rtt_ms", 1.0, "").found().unwrap().is_some());
    }

    #[test]
    fn small_shares_keep_their_digits() {
        let read = [0.96, 0.062, 0.0001, 0.0].map(percent);
        assert_eq!(read, ["96 %", "6.2 %", "0.0100 %", "0 %"]);
    }
}
