//! How far several runs have got, on the page that follows them: what runs, what is decided, and how long it may take.

use goodput_model::{
    BitRate, Bytes, Change, Difference, Event, Outlook, Trial, TuningStep, counted, median,
};
use maud::{Markup, html};

use crate::layout::{plain, table};

/// The state by the events so far. No clock is read: the times are those of the last event.
#[derive(Debug, Default)]
pub struct Progress {
    /// What goes on, unless it is one comparison.
    now: Option<String>,
    outlook: Option<Outlook>,
    /// The values of the arm that runs.
    running: Vec<String>,
    /// The arms of the present comparison, each found by its values: the numbers change once some no longer run.
    arms: Vec<Arm>,
    /// What was tried, with its outcome, the newest last.
    tried: Vec<[String; 2]>,
}

#[derive(Debug, Default)]
struct Arm {
    values: Vec<String>,
    is_baseline: bool,
    /// Of the runs that count, bit/s.
    rates: Vec<f64>,
    /// The newest run.
    last: String,
}

impl Progress {
    /// Takes an event. Returns whether it is about several runs, and the display changes.
    pub fn enter(&mut self, event: Event) -> bool {
        match event {
            Event::TransfersBegan { size_bytes, clients } => {
                self.begin(format!("Compares sending {}.", to_clients(size_bytes, clients)));
            }
            Event::BlockBegan(outlook) => self.outlook = Some(outlook),
            Event::TrialBegan { values } => self.running = values,
            Event::TrialEnded { values, trial } => self.ran(values, *trial),
            Event::ChangeBegan { change, waiting, .. } => {
                let waiting =
                    if waiting > 0 { format!("; {waiting} more to try") } else { String::new() };
                self.begin(format!("Tries {}{waiting}.", shown(&change)));
            }
            Event::ChangeEnded { step } => {
                let TuningStep { change, outcome, .. } = *step;
                self.tried.push([shown(&change), outcome.to_string()]);
            }
            Event::ProofBegan { changes } => {
                let changes = counted(changes, "change");
                self.begin(format!("Compares {changes} with the start."));
            }
            Event::RateBegan { rate_bits_per_s, confirms, .. } => {
                let rate = rate_bits_per_s.map_or("all it can".into(), |rate| rate.to_string());
                self.now = Some(format!("{} {rate}.", if confirms { "Confirms" } else { "Tries" }));
            }
            Event::RateTried { trial, .. } => {
                let outcome = if trial.passed { "enough arrived" } else { "too much was lost" };
                let outcome = format!("{outcome}: {:.2} % lost", trial.lost_percent);
                self.tried.push([trial.sent_bits_per_s.to_string(), outcome]);
            }
            _ => return false,
        }
        true
    }

    /// No more events come, although the run goes on.
    pub fn lose(&mut self) {
        self.now = Some("This page no longer follows it; what it shows may be old.".into());
        (self.outlook, self.running) = (None, Vec::new());
    }

    /// Another comparison begins.
    fn begin(&mut self, now: String) {
        *self = Self { now: Some(now), tried: std::mem::take(&mut self.tried), ..Self::default() };
    }

    fn ran(&mut self, values: Vec<String>, trial: Trial) {
        let rate = trial.goodput_bits_per_s.get().map_err(|why| why.to_string());
        let arm = self.arm(values);
        arm.is_baseline = trial.arm == 0;
        arm.last = match (rate, trial.discarded) {
            (Ok(rate), Some(why)) => format!("{rate} (not counted: {why})"),
            (Err(why), _) => why,
            (Ok(rate), None) => {
                arm.rates.push(rate.0);
                rate.to_string()
            }
        };
        self.running.clear();
    }

    fn arm(&mut self, values: Vec<String>) -> &mut Arm {
        let known = self.arms.iter().position(|arm| arm.values == values);
        let number = known.unwrap_or(self.arms.len());
        if known.is_none() {
            self.arms.push(Arm { values, ..Arm::default() });
        }
        &mut self.arms[number]
    }

    /// What a page shows; nothing before an event of several runs.
    pub fn markup(&self) -> Markup {
        html! {
            @if let Some(now) = &self.now { p { (plain(now)) } }
            @if let Some(outlook) = &self.outlook { p { (how_far(outlook)) } }
            @if !self.running.is_empty() { p { "Now: " (plain(&self.running.join(" "))) "." } }
            @if !self.arms.is_empty() { (table("The runs so far", &["Arm", "Runs that count", "Median", "Against the baseline", "Newest run", "Judged"], &self.rows())) }
            @if !self.tried.is_empty() { (table("Tried so far", &["What", "Outcome"], &html! {
                @for row in &self.tried { tr { @for cell in row { td { (plain(cell)) } } } }
            })) }
        }
    }

    fn rows(&self) -> Markup {
        html! {
            @for arm in &self.arms {
                tr {
                    th scope="row" { (plain(&arm.values.join(" "))) }
                    td { (arm.rates.len()) }
                    td.rate { (arm.median().map_or("none yet".into(), |rate| BitRate(rate).to_string())) }
                    td { (self.against(arm)) }
                    td { (plain(&arm.last)) }
                    td { (self.judged(arm)) }
                }
            }
        }
    }

    /// The difference of the medians so far.
    fn against(&self, arm: &Arm) -> String {
        let base = self.arms.iter().find(|arm| arm.is_baseline);
        let base = base.and_then(Arm::median).filter(|base| *base > 0.0);
        match (arm.is_baseline, base, arm.median()) {
            (true, ..) => "the baseline".into(),
            (_, Some(base), Some(rate)) => Difference((rate / base - 1.0) * 100.0).to_string(),
            _ => "not yet".into(),
        }
    }

    fn judged(&self, arm: &Arm) -> String {
        let decided = self.outlook.iter().flat_map(|outlook| &outlook.decided);
        let mut decided = decided.filter(|decided| decided.values == arm.values);
        match (arm.is_baseline, decided.next()) {
            (true, _) => String::new(),
            (_, Some(decided)) => decided.judgement.in_words(["better", "worse"]),
            _ => "not yet".into(),
        }
    }
}

impl Arm {
    fn median(&self) -> Option<f64> {
        median(self.rates.iter().copied())
    }
}

/// `1 MB to 16 clients at once`.
fn to_clients(size_bytes: Option<u64>, clients: u16) -> String {
    let size = size_bytes.map(|bytes| format!("{} ", Bytes(bytes))).unwrap_or_default();
    match clients {
        1 => format!("{size}to 1 client"),
        many => format!("{size}to {many} clients at once"),
    }
}

fn shown(change: &Change) -> String {
    format!("{}={}", change.setting, change.to)
}

/// `Block 2 of 6; then the arms are judged, in about 1:05 min. It takes at most 3:20 min more.`
fn how_far(outlook: &Outlook) -> String {
    let Outlook { block, judged_after_block, judged_in_s, at_most_s, .. } = outlook;
    let block = match (block, judged_after_block) {
        (0, _) => "The warm-up".into(),
        (block, Some(last)) => format!("Block {block} of {last}"),
        (block, None) => format!("Block {block}"),
    };
    let judged = judged_in_s.map(|s| format!("; the arms are judged in about {}", minutes(s)));
    let judged = judged.unwrap_or_default();
    format!("{block} began{judged}. From then on it takes at most {}.", minutes(*at_most_s))
}

fn minutes(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{}:{:02} min", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use goodput_model::{BitRate, Decided, Judgement, Known, RateTrial, SettingRef, TuningOutcome};

    use super::*;

    fn after(events: impl IntoIterator<Item = Event>) -> Progress {
        let mut progress = Progress::default();
        for event in events {
            assert!(progress.enter(event.clone()), "{event:?}");
        }
        progress
    }

    fn text(events: impl IntoIterator<Item = Event>) -> String {
        after(events).markup().into_string()
    }

    fn block() -> Event {
        let decided = Decided { values: vec!["<b>".into()], judgement: Judgement::Better };
        Event::BlockBegan(Outlook {
            block: 2,
            judged_after_block: Some(6),
            judged_in_s: Some(65.2),
            at_most_s: 200.0,
            open: 1,
            decided: vec![decided],
        })
    }

    fn ran(values: &str, arm: usize, rate: f64, discarded: Option<&str>) -> Event {
        let trial = Trial::new(1, arm, Known::Value(BitRate(rate)));
        let trial = Box::new(Trial { discarded: discarded.map(Into::into), ..trial });
        Event::TrialEnded { values: vec![values.into()], trial }
    }

    fn runs(values: &str) -> Event {
        Event::TrialBegan { values: vec![values.into()] }
    }

    #[test]
    fn a_comparison_says_what_runs_what_is_decided_and_how_long_it_may_take() {
        let warm_up = || ran("4K", 0, 5e8, Some("warm-up"));
        let shown = text([warm_up()]);
        assert!(shown.contains("500 Mbit/s (not counted: warm-up)"), "{shown}");
        let counted = [ran("4K", 0, 1e9, None), ran("<b>", 1, 2e9, None)];
        let shown = text([warm_up()].into_iter().chain(counted).chain([block(), runs("4K")]));
        for part in [
            "Block 2 of 6 began; the arms are judged in about 1:05 min. From then on it takes at most 3:20 min.",
            "Now: 4K.",
            "the baseline",
            "+100.0 %",
            "<td>better</td>",
            "&lt;b&gt;",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("<b>"), "{shown}");
    }

    #[test]
    fn an_arm_has_one_row_when_arms_before_it_no_longer_run() {
        let shown = text([
            ran("4K", 0, 1e9, None),
            ran("8K", 1, 1e6, Some("warm-up")),
            ran("16K", 2, 2e9, Some("warm-up")),
            ran("16K", 1, 3e9, None),
        ]);
        for arm in ["4K", "8K", "16K"] {
            let row = format!("<th scope=\"row\">{arm}</th>");
            assert_eq!(shown.matches(&row).count(), 1, "{arm}: {shown}");
        }
        assert_eq!(shown.matches("<td>the baseline</td>").count(), 1, "{shown}");
        assert!(shown.contains("+200.0 %"), "{shown}");
    }

    #[test]
    fn each_table_of_ways_to_send_begins_anew() {
        let began = |size_bytes, clients| Event::TransfersBegan { size_bytes, clients };
        let (slow, fast) = (ran("copy", 0, 1e6, None), ran("copy", 0, 9e9, None));
        let shown = text([began(Some(1000), 1), slow, block(), began(Some(1_000_000), 16), fast]);
        assert!(shown.contains("Compares sending 1 MB to 16 clients at once."), "{shown}");
        assert!(shown.contains("<td>1</td>") && shown.contains("9 Gbit/s"), "{shown}");
        assert!(!shown.contains("1 Mbit/s") && !shown.contains("Block"), "{shown}");
        assert!(text([began(None, 1)]).contains("Compares sending to 1 client."));
    }

    #[test]
    fn what_is_no_longer_followed_has_nothing_that_goes_on_now() {
        let mut progress = after([block(), runs("4K")]);
        progress.lose();
        let shown = progress.markup().into_string();
        assert!(shown.contains("no longer follows it"), "{shown}");
        assert!(!shown.contains("Now: ") && !shown.contains("Block"), "{shown}");
    }

    #[test]
    fn a_tuning_and_a_search_list_what_was_tried() {
        let setting: SettingRef = "chunk".parse().unwrap();
        let change = Change { setting, from: None, to: "1M".into(), why: "x".into() };
        let rule = String::from("r");
        let began =
            || Event::ChangeBegan { change: change.clone(), rule: rule.clone(), waiting: 2 };
        let outcome = TuningOutcome::Kept;
        let comparison = Known::missing("none");
        let step = TuningStep { change: change.clone(), rule: rule.clone(), outcome, comparison };
        let ended = Event::ChangeEnded { step: Box::new(step) };
        let shown = text([began(), ended, Event::ProofBegan { changes: 1 }]);
        assert!(shown.contains("chunk=1M") && shown.contains("<td>kept</td>"), "{shown}");
        assert!(shown.contains("Compares 1 change with the start."), "{shown}");
        assert!(text([began()]).contains("Tries chunk=1M; 2 more to try."));
        let datagram_bytes = Bytes(1400);
        let began = Event::RateBegan { datagram_bytes, rate_bits_per_s: None, confirms: false };
        let trial = RateTrial {
            asked_bits_per_s: None,
            sent_bits_per_s: BitRate(1e9),
            sent_datagrams: 1000,
            lost_percent: 1.5,
            dropped_by_receiver_percent: Known::Value(0.0),
            duration_s: 1.0,
            confirms: false,
            passed: false,
            spoilt: false,
        };
        let shown = text([began, Event::RateTried { datagram_bytes, trial }]);
        assert!(shown.contains("Tries all it can.") && shown.contains("1.50 % lost"), "{shown}");
    }

    #[test]
    fn what_is_of_one_run_changes_nothing() {
        let mut progress = Progress::default();
        let note = Event::Note { text: "x".into() };
        assert!([Event::Began, Event::Ended, note].into_iter().all(|event| !progress.enter(event)));
        assert_eq!(progress.markup().into_string(), "");
    }
}
