//! The line below a comparison, a rate search or tuning while it runs: what runs, how far it is, what is decided so far,
//! and the longest time left.

use goodput_engine::Event;
use goodput_engine::events::{Decided, Outlook};
use goodput_model::{BitRate, Change, Judgement, Plan, RateTrial, TuningOutcome};

use super::effect;
use crate::fit::{shortened, width};

/// The state according to the events. No clock is read: the times are those of the last event.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    tuning: Option<Tuned>,
    search: Option<Search>,
    outlook: Option<Outlook>,
    /// The values of the running arm.
    running: Vec<String>,
    /// Longest time that the measurement of the start takes, seconds, if time ends it.
    start_takes_s: Option<f64>,
    /// How far that measurement is, seconds, if it is the present activity.
    start_is_at_s: Option<f64>,
}

/// The results of the changes so far.
#[derive(Debug, Clone, Default)]
struct Tuned {
    /// The present comparison.
    now: String,
    kept: usize,
    others: usize,
    waiting: usize,
}

#[derive(Debug, Clone, Default)]
struct Search {
    now: String,
    /// Rates at which enough arrived, and too little.
    passed: Option<BitRate>,
    failed: Option<BitRate>,
}

/// Parts of a bar: done, and total.
pub type Parts = (u64, u64);

impl Progress {
    /// Before the first event of a run that first measures by `plan`, if it measures anything by itself.
    pub fn of(plan: &Plan) -> Self {
        Self { start_takes_s: plan.length.longest_s(), ..Self::default() }
    }

    /// Takes an event. Returns whether the display changes.
    pub fn note(&mut self, event: &Event) -> bool {
        match event {
            // Only tuning measures outside comparisons and trials.
            Event::Began => {
                self.tuning.get_or_insert_default().now = "measures the start".into();
                self.start_is_at_s = Some(0.0);
            }
            Event::Interval(interval) if self.start_is_at_s.is_some() => {
                self.start_is_at_s = Some(interval.to_s);
            }
            Event::BlockBegan(outlook) => self.outlook = Some(outlook.clone()),
            Event::TrialBegan { values } => self.running.clone_from(values),
            Event::ChangeBegan { change: Change { setting, to, .. }, waiting, .. } => {
                let tuning = self.tuning.get_or_insert_default();
                (tuning.now, tuning.waiting) = (format!("tries {setting}={to}"), *waiting);
                (self.outlook, self.start_is_at_s) = (None, None);
                self.running.clear();
            }
            Event::ChangeEnded { step } => {
                let tuning = self.tuning.get_or_insert_default();
                match step.outcome {
                    TuningOutcome::Kept => tuning.kept += 1,
                    TuningOutcome::Confirmed => {}
                    TuningOutcome::Dropped => {
                        (tuning.kept, tuning.others) =
                            (tuning.kept.saturating_sub(1), tuning.others + 1);
                    }
                    _ => tuning.others += 1,
                }
            }
            Event::ProofBegan { .. } => {
                let tuning = self.tuning.get_or_insert_default();
                (tuning.now, tuning.waiting) =
                    ("compares all that helped with the start".into(), 0);
                (self.outlook, self.start_is_at_s) = (None, None);
            }
            Event::RateBegan { rate_bits_per_s, confirms, .. } => {
                let rate =
                    rate_bits_per_s.map_or_else(|| "all it can".into(), |rate| rate.to_string());
                let tries = if *confirms { "confirms" } else { "tries" };
                self.search.get_or_insert_default().now = format!("{tries} {rate}");
            }
            Event::RateTried { trial, .. } => self.search.get_or_insert_default().enter(trial),
            _ => return false,
        }
        true
    }

    /// The longest time left, seconds, if known for the whole.
    pub fn at_most_s(&self) -> Option<f64> {
        let alone = self.outlook.as_ref().filter(|_| self.tuning.is_none());
        alone.map(|outlook| outlook.at_most_s)
    }

    /// The time of the first measurement that has passed; later the running block, of those up to the next judgement.
    pub fn parts(&self) -> Option<Parts> {
        if let Some(at_s) = self.start_is_at_s {
            let ms = |seconds: f64| (1e3 * seconds) as u64;
            return self.start_takes_s.map(|takes_s| (ms(at_s), ms(takes_s)));
        }
        let outlook = self.outlook.as_ref()?;
        Some((outlook.block.into(), outlook.judged_after_block?.into()))
    }

    /// The present activity and the results so far, the most important first.
    pub fn texts(&self) -> Vec<String> {
        let mut texts: Vec<_> = self.tuning.iter().map(|tuning| tuning.now.clone()).collect();
        texts.extend(self.outlook.as_ref().map(block));
        texts.extend(self.tuning.iter().flat_map(Tuned::counts));
        texts.extend(self.search.iter().flat_map(Search::texts));
        texts.extend(self.outlook.iter().flat_map(|outlook| self.arms(outlook)));
        texts
    }

    /// Which arms are decided, which one runs, and when they are judged again.
    fn arms(&self, Outlook { judged_in_s, open, decided, .. }: &Outlook) -> Vec<String> {
        let mut texts = Vec::new();
        // With a single arm, its decision ends the comparison.
        if open + decided.len() > 1 {
            texts.push(match &decided[..] {
                [] => format!("{open} arms open"),
                arms => format!(
                    "{open} open, {}",
                    arms.iter().map(decision).collect::<Vec<_>>().join(", ")
                ),
            });
        }
        let running = self.running.join(" ");
        texts.extend((!running.is_empty()).then(|| format!("runs {running}")));
        texts.extend(judged_in_s.map(|seconds| format!("judged in {}", time(seconds))));
        texts
    }
}

/// `block 2 of 6`.
fn block(Outlook { block, judged_after_block, .. }: &Outlook) -> String {
    match (block, judged_after_block) {
        (0, _) => "warm-up".into(),
        (block, Some(last)) => format!("block {block} of {last}"),
        (block, None) => format!("block {block}"),
    }
}

/// Separates two texts.
const BETWEEN: &str = " · ";

/// The texts in one line of at most `columns`. Texts that don't fit are left out; only the first is shortened, and to no less
/// than half of the line.
pub fn in_line(texts: &[String], columns: usize) -> String {
    let Some((first, others)) = texts.split_first() else { return String::new() };
    let mut room = columns - width(first).min(columns / 2);
    let mut rest = String::new();
    for text in others {
        let needed = width(BETWEEN) + width(text);
        if needed <= room {
            rest += BETWEEN;
            rest += text;
            room -= needed;
        }
    }
    shortened(first, columns - width(&rest)) + &rest
}

impl Tuned {
    fn counts(&self) -> Vec<String> {
        let Self { kept, others, waiting, .. } = self;
        let mut texts = Vec::new();
        if kept + others > 0 {
            texts.push(format!("{kept} kept, {others} not"));
        }
        if *waiting > 0 {
            texts.push(format!("{waiting} to try"));
        }
        texts
    }
}

impl Search {
    fn enter(&mut self, trial: &RateTrial) {
        let sent = trial.sent_bits_per_s;
        if trial.passed {
            self.passed = self.passed.filter(|passed| passed.0 > sent.0).or(Some(sent));
        } else if !trial.spoilt {
            self.failed = self.failed.filter(|failed| failed.0 < sent.0).or(Some(sent));
        }
    }

    fn texts(&self) -> Vec<String> {
        let known = |words: &str, rate: Option<BitRate>| rate.map(|rate| format!("{words} {rate}"));
        let mut texts = vec![self.now.clone()];
        texts.extend(known("passed so far:", self.passed));
        texts.extend(known("too much:", self.failed));
        texts
    }
}

/// `splice better`.
fn decision(Decided { values, judgement }: &Decided) -> String {
    let word = match judgement {
        Judgement::Inconclusive => "undecided".into(),
        decided => effect::named(*decided, ["better", "worse"]),
    };
    format!("{} {word}", values.join(" "))
}

/// `1:05`, minutes and seconds.
pub fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    format!("{}:{:02}", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, EndName, Interval, Known, TuningStep};

    fn outlook(block: u32) -> Event {
        Event::BlockBegan(Outlook {
            block,
            judged_after_block: Some(6),
            judged_in_s: Some(65.2),
            at_most_s: 110.0,
            open: 1,
            decided: vec![Decided {
                values: vec!["splice".into()],
                judgement: Judgement::NoDifference,
            }],
        })
    }

    fn second_interval() -> Event {
        Event::Interval(Interval {
            sender: EndName::Near,
            from_s: 1.0,
            to_s: 2.0,
            received_bytes: Known::Value(1_000_000),
            goodput_bits_per_s: Known::Value(BitRate(8e6)),
            sent_bits_per_s: None,
        })
    }

    fn text(progress: &Progress) -> String {
        in_line(&progress.texts(), usize::MAX)
    }

    #[test]
    fn a_narrow_line_leaves_out_what_matters_least() {
        let texts = ["tries chunk=1M", "block 2 of 6", "10 kept, 22 not", "judged in 1:05"]
            .map(String::from);
        assert_eq!(
            in_line(&texts, 64),
            "tries chunk=1M · block 2 of 6 · 10 kept, 22 not · judged in 1:05"
        );
        assert_eq!(in_line(&texts, 63), "tries chunk=1M · block 2 of 6 · 10 kept, 22 not");
        assert_eq!(in_line(&texts, 46), "tries chunk=1M · block 2 of 6 · judged in 1:05");
        assert_eq!(in_line(&texts, 13), "tries chunk=…");
        for columns in 0..70 {
            assert!(width(&in_line(&texts, columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn a_long_setting_is_shortened_before_anything_is_left_out() {
        let change = Change {
            setting: "sysctl.net.ipv4.tcp_wmem".parse().unwrap(),
            from: None,
            to: "4096 16384 16777216".into(),
            why: String::new(),
        };
        let mut progress = Progress::default();
        assert!(progress.note(&Event::ChangeBegan { change, rule: "x".into(), waiting: 0 }));
        progress.note(&outlook(0));
        let line = in_line(&progress.texts(), 60);
        assert!(line.contains(" · warm-up · ") && line.ends_with("judged in 1:05"), "{line}");
        assert!(width(&line) == 60 && !line.contains("runs"), "{line}");
        progress.note(&Event::TrialBegan { values: vec!["4M".into()] });
        assert!(in_line(&progress.texts(), 120).contains(" · runs 4M · judged in"), "{line}");
    }

    #[test]
    fn a_comparison_shows_what_runs_and_what_is_decided() {
        let mut progress = Progress::default();
        assert!(!progress.note(&Event::Ended) && progress.note(&outlook(2)));
        assert!(progress.note(&Event::TrialBegan { values: vec!["copy".into()] }));
        assert_eq!(
            text(&progress),
            "block 2 of 6 · 1 open, splice no difference · runs copy · judged in 1:05"
        );
        assert_eq!((progress.parts(), progress.at_most_s()), (Some((2, 6)), Some(110.0)));
    }

    #[test]
    fn tuning_counts_what_it_kept_and_knows_its_own_end() {
        let change = Change {
            setting: "chunk".parse().unwrap(),
            from: None,
            to: "1M".into(),
            why: String::new(),
        };
        let mut progress = Progress::of(&Plan::standard());
        let rule = "small-writes".to_string();
        assert_eq!(progress.parts(), None, "nothing is measured yet");
        progress.note(&Event::Began);
        assert_eq!(text(&progress), "measures the start");
        assert_eq!(progress.parts(), Some((0, 10_000)));
        progress.note(&second_interval());
        assert_eq!(progress.parts(), Some((2_000, 10_000)));
        progress.note(&Event::ChangeBegan {
            change: change.clone(),
            rule: rule.clone(),
            waiting: 2,
        });
        assert_eq!(text(&progress), "tries chunk=1M · 2 to try");
        assert_eq!(progress.parts(), None, "the start is measured");
        progress.note(&outlook(0));
        assert_eq!(progress.at_most_s(), None);
        let outcome = TuningOutcome::Kept;
        let step = TuningStep { change, rule, outcome, comparison: Known::missing("none") };
        progress.note(&Event::ChangeEnded { step: Box::new(step) });
        progress.note(&Event::ProofBegan { changes: 1 });
        assert_eq!(text(&progress), "compares all that helped with the start · 1 kept, 0 not");
    }

    #[test]
    fn a_search_for_a_rate_shows_between_which_rates_it_lies() {
        let tried = |rate: f64, passed| Event::RateTried {
            datagram_bytes: Bytes(1400),
            trial: RateTrial {
                asked_bits_per_s: None,
                sent_bits_per_s: BitRate(rate),
                sent_datagrams: 1000,
                lost_percent: 0.0,
                dropped_by_receiver_percent: Known::Value(0.0),
                duration_s: 1.0,
                confirms: false,
                passed,
                spoilt: false,
            },
        };
        let mut progress = Progress::default();
        for (rate, passed) in [(9e8, false), (4e8, true), (5e8, true), (3e8, true), (8e8, false)] {
            progress.note(&tried(rate, passed));
        }
        progress.note(&Event::RateBegan {
            datagram_bytes: Bytes(1400),
            rate_bits_per_s: Some(BitRate(6e8)),
            confirms: false,
        });
        assert_eq!(
            text(&progress),
            "tries 600 Mbit/s · passed so far: 500 Mbit/s · too much: 800 Mbit/s"
        );
    }
}
