//! The display while a measurement runs.

use std::time::Duration;

use goodput_engine::Event;
use goodput_model::{EndName, Host, Interval, Known, Plan, Record, Trial};

use super::status_line::StatusLine;
use super::{rate_search, style, transfers, tune};
use crate::args::OutputArgs;
use crate::dashboard::Dashboard;
use crate::json_text;
use crate::running::Announced;
use crate::screen;
use goodput_compat::formats::Writer;

/// Shows events as they arrive: lines for a person, JSON lines for a program, or nothing.
pub struct Live {
    shows: LiveDisplay,
    both: bool,
    intervals: bool,
    /// Who was met, until anything happens there: an error stands alone.
    met: Option<String>,
    /// Below the lines, on a terminal.
    status: Option<StatusLine>,
    /// In place of both, on the whole terminal.
    dashboard: Option<Dashboard>,
    /// For those who follow from elsewhere, until this is dropped: the result is then kept.
    announced: Option<Announced>,
}

enum LiveDisplay {
    Lines,
    Json,
    Foreign(Box<dyn Writer>),
    Nothing,
}

impl Live {
    /// As the options request.
    pub fn new(output: &OutputArgs, plan: &Plan, target: &str) -> Self {
        let shows = match (output.json, output.json_stream) {
            (true, _) => LiveDisplay::Nothing,
            (_, true) => LiveDisplay::Json,
            _ => LiveDisplay::Lines,
        };
        let both = plan.direction == goodput_model::Direction::Both;
        let dashboard = output.live.then(|| Dashboard::open(plan, target)).flatten();
        Self { shows, both, intervals: true, met: None, status: None, dashboard, announced: None }
    }

    /// In the format of another program.
    pub fn foreign(writer: Box<dyn Writer>) -> Self {
        let shows = LiveDisplay::Foreign(writer);
        let (met, status, dashboard, announced) = (None, None, None, None);
        Self { shows, both: false, intervals: true, met, status, dashboard, announced }
    }

    /// With an announcement, so that the run can be followed from elsewhere.
    pub fn announced(self, announced: Option<Announced>) -> Self {
        Self { announced, ..self }
    }

    /// Announces the run now, of which only now is known what it measures.
    pub fn announce(&mut self, announced: Option<Announced>) {
        self.announced = announced;
    }

    /// With or without the intervals, for a person.
    pub fn with_intervals(self, intervals: bool) -> Self {
        Self { intervals, ..self }
    }

    /// With a progress line, for a person at a terminal. `at_most` is the longest time of the whole, if known; `plan` is
    /// the measurement that runs by itself, if any does.
    pub fn with_status(self, plan: &Plan, at_most: Option<Duration>) -> Self {
        if let Some(dashboard) = &self.dashboard {
            dashboard.show_progress(at_most);
            return self;
        }
        let lines = matches!(self.shows, LiveDisplay::Lines);
        Self { status: if lines { StatusLine::new(plan, at_most) } else { None }, ..self }
    }

    /// Gives the terminal back, so that a report can be printed.
    pub fn close(&mut self) {
        self.dashboard = None;
        self.status = None;
    }

    /// The rest of the output, in another program's format. This format has no place for doubts, such as a buffer that
    /// the kernel reduced; like the programs' own warnings they go to standard error.
    pub fn rest(&mut self, record: &Record) -> Option<String> {
        let LiveDisplay::Foreign(writer) = &mut self.shows else { return None };
        for doubt in &record.doubts {
            screen::say(format_args!("warning: {doubt}"));
        }
        Some(writer.finish(record))
    }

    /// Tells followers why there is no result, and prints what another program would print on standard output after a
    /// failure.
    pub fn fail(&mut self, why: &str) {
        if let Some(announced) = &self.announced {
            announced.fail(why);
        }
        if let LiveDisplay::Foreign(writer) = &mut self.shows {
            screen::later(&writer.fail(why).unwrap_or_default());
        }
    }

    /// Shows one event. A closed reader is noticed when the result is printed.
    pub fn show(&mut self, event: &Event) {
        if let Some(announced) = &self.announced {
            announced.enter(event);
        }
        let line = match &mut self.shows {
            LiveDisplay::Foreign(writer) => return screen::later(&writer.event(event)),
            LiveDisplay::Nothing => None,
            // Ten lines a second would bury the rest of the stream; the record has all samples.
            LiveDisplay::Json if matches!(event, Event::Sampled { .. }) => None,
            LiveDisplay::Json => json_text::one_line(event).ok(),
            LiveDisplay::Lines => self.lines(event),
        };
        if let Some(dashboard) = &self.dashboard {
            dashboard.enter(event, line.as_deref());
        }
        match (&mut self.status, line) {
            (Some(status), Some(line)) => status.print(&line),
            (_, line) => screen::later(&line.map(|line| line + "\n").unwrap_or_default()),
        }
        if let Some(status) = &mut self.status {
            status.note(event);
        }
    }

    /// The line of an event, below that of who was met.
    fn lines(&mut self, event: &Event) -> Option<String> {
        if let Event::Connected { peer, secured } = event {
            self.met = Some(style::faint(connected(peer, *secured)));
            return None;
        }
        let lines: Vec<_> = self.met.take().into_iter().chain(self.line(event)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn line(&self, event: &Event) -> Option<String> {
        match event {
            Event::Interval(_) if !self.intervals => None,
            Event::Interval(interval) => Some(self.interval(interval)),
            Event::Note { text } => Some(style::faint(format!("note        {text}"))),
            Event::RateTried { datagram_bytes, trial } => {
                Some(rate_search::trial(*datagram_bytes, trial))
            }
            Event::TransfersBegan { size_bytes, clients } => {
                Some(style::strong(transfers::title(*size_bytes, *clients)))
            }
            Event::ChangeBegan { change, rule, .. } => Some(format!(
                "tries {} ({rule})",
                style::strong(format!("{}={}", change.setting, change.to))
            )),
            Event::ProofBegan { changes } => {
                let these = if *changes == 1 { "the change" } else { "all changes" };
                Some(format!("compares {these} that helped with the start"))
            }
            Event::ChangeEnded { step } => Some(style::faint(tune::ended(step))),
            Event::TrialEnded { values, trial } => Some(trial_line(values, trial)),
            Event::BlockBegan(_) | Event::TrialBegan { .. } | Event::RateBegan { .. } => None,
            Event::Connected { .. }
            | Event::Found { .. }
            | Event::Opened { .. }
            | Event::Began
            | Event::Sampled { .. }
            | Event::Ended => None,
        }
    }

    fn interval(&self, interval: &Interval) -> String {
        let direction = match (self.both, interval.sender) {
            (false, _) => "",
            (_, EndName::Near) => "  near → far",
            (_, EndName::Far) => "  far → near",
        };
        let span = format!("{:.1}–{:.1} s", interval.from_s, interval.to_s);
        let rate = match (&interval.goodput_bits_per_s, interval.sent_bits_per_s) {
            (Known::Value(goodput), _) => format!("{goodput:>14}"),
            (Known::Missing(_), Some(sent)) => format!("{sent:>14} sent"),
            (Known::Missing(why), None) => format!("unknown: {why}"),
        };
        format!("{span:11} {rate}{direction}")
    }
}

fn connected(peer: &Host, secured: bool) -> String {
    if !peer.is_goodput() {
        // Only the other program's name is known.
        return format!("peer        {}", peer.name);
    }
    let encrypted = if secured { ", encrypted" } else { "" };
    format!("connected   {}, {}, goodput {}{encrypted}", peer.name, peer.kernel, peer.goodput)
}

fn trial_line(values: &[String], trial: &Trial) -> String {
    let goodput = trial.goodput_bits_per_s.value();
    let discarded = trial.discarded.as_deref().map(|why| match goodput {
        // The column already says so.
        None => why.strip_prefix("failed: ").unwrap_or(why),
        Some(_) => why,
    });
    format!(
        "run {:>2}  {:>14}   {}{}",
        trial.block,
        goodput.map_or_else(|| "failed".into(), ToString::to_string),
        values.join("  "),
        discarded.map(|why| style::faint(format!("  ({why})"))).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;

    fn trial(goodput: Known<BitRate>, discarded: Option<&str>) -> Trial {
        Trial { discarded: discarded.map(Into::into), ..Trial::new(1, 0, goodput) }
    }

    #[test]
    fn a_run_that_failed_says_so_once() {
        let failed = trial(Known::missing("the run failed: reset"), Some("failed: reset"));
        let line = trial_line(&["copy".into()], &failed);
        assert_eq!(line.matches("failed").count(), 1, "{line}");
        assert!(line.contains("(reset)"), "{line}");
        let warm_up = trial(Known::Value(BitRate(1e9)), Some("warm-up"));
        assert!(trial_line(&["copy".into()], &warm_up).contains("(warm-up)"));
    }
}
