//! The report of a search for the highest rate without loss: a table by size, and a sentence for each.

use std::fmt::Write;

use goodput_model::{Bytes, RateOutcome, RateSearch, RateTrial, Record, Seconds};

use super::style;
use super::table::Table;

/// The whole report.
pub fn text(record: &Record) -> String {
    let mut table =
        Table::new(&["datagram", "highest rate", "datagrams/s", "lost", "held by", "trials"]);
    for search in &record.rate_searches {
        table.row(&row(search).each_ref().map(String::as_str));
    }
    let mut out = format!("\n{}", table.text());
    for search in &record.rate_searches {
        let _ = writeln!(out, "{}: {}", size(search.datagram_bytes), sentence(search));
        for doubt in &search.doubts {
            let _ = writeln!(out, "{}{doubt}", style::faint("note        "));
        }
    }
    for doubt in &record.doubts {
        let _ = writeln!(out, "{}{doubt}", style::faint("note        "));
    }
    out
}

/// One trial, as it ends.
pub fn trial(datagram: Bytes, trial: &RateTrial) -> String {
    let asked = match trial.asked_bits_per_s {
        Some(rate) => rate.to_string(),
        None => "all it can".into(),
    };
    let verdict = match (trial.passed, trial.confirms) {
        (true, true) => style::good("confirmed").to_string(),
        (true, false) => style::good("passed").to_string(),
        (false, _) if trial.spoilt => "receiver too late".into(),
        (false, _) => "too much".into(),
    };
    format!(
        "{:>7}  asked {asked:>13}  sent {:>13}  lost {:>9}   {verdict}",
        size(datagram),
        trial.sent_bits_per_s.to_string(),
        percent(trial.lost_percent)
    )
}

fn row(search: &RateSearch) -> [String; 6] {
    let none = || "–".to_string();
    let held = match search.outcome {
        RateOutcome::Path => "path",
        RateOutcome::Receiver => "receiver",
        RateOutcome::Sender => "sender",
        RateOutcome::LossEverywhere => "loss at any rate",
        RateOutcome::Unsteady => "unsteady",
        RateOutcome::Unfinished => "unfinished",
    };
    let confirming = search.trials.iter().rfind(|trial| trial.confirms && trial.passed);
    let lost = confirming.filter(|_| search.rate_bits_per_s.is_some());
    [
        size(search.datagram_bytes),
        search.rate_bits_per_s.map_or_else(none, |rate| rate.to_string()),
        search.datagrams_per_s.map_or_else(none, |rate| format!("{rate:.0}")),
        lost.map_or_else(none, |trial| percent(trial.lost_percent)),
        held.into(),
        search.trials.len().to_string(),
    ]
}

fn sentence(search: &RateSearch) -> String {
    let allowed = match search.max_loss_percent {
        0.0 => "no loss".to_string(),
        percent => format!("at most {percent} % loss"),
    };
    let confirming = search.trials.iter().rfind(|trial| trial.confirms && trial.passed);
    let time = Seconds(confirming.map_or(0.0, |trial| trial.duration_s));
    match (search.outcome, search.rate_bits_per_s) {
        (RateOutcome::Path, Some(rate)) => format!(
            "{} is the highest rate with {allowed}, held for {time}; above it: {}",
            style::strong(rate),
            search.limit
        ),
        (RateOutcome::Sender, Some(rate)) => format!(
            "{} arrived with {allowed}, for {time}, and the sender {}; the path may carry more. Limit of the sender: {}",
            style::strong(rate),
            no_faster(search),
            search.limit
        ),
        (RateOutcome::Receiver, Some(rate)) => format!(
            "{} is the highest rate that the receiver handles with {allowed}, held for {time}; above it the socket overflows, and the path may carry more; {}",
            style::strong(rate),
            search.limit
        ),
        (RateOutcome::LossEverywhere, _) => {
            let last = search.trials.last();
            let (rate, lost) = last.map_or((String::new(), 0.0), |trial| {
                (trial.sent_bits_per_s.to_string(), trial.lost_percent)
            });
            format!(
                "no rate has {allowed}: even at {rate}, {} is lost, so the rate is not the cause; {}",
                percent(lost),
                search.limit
            )
        }
        (RateOutcome::Unsteady, _) => format!(
            "there is no steady rate with {allowed}: a rate that passed once failed when repeated; other traffic uses the path, or longer trials (-t) are needed"
        ),
        _ => format!("the search for the highest rate with {allowed} was not finished"),
    }
}

/// The rate that the sender could not reach, and the rate above which the path would not carry more either.
fn no_faster(search: &RateSearch) -> String {
    let failed = search.trials.iter().filter(|trial| !trial.passed);
    let rate = |trial: &RateTrial| trial.asked_bits_per_s.unwrap_or(trial.sent_bits_per_s);
    match failed.map(rate).reduce(|a, b| if a.0 <= b.0 { a } else { b }) {
        None => "sends no faster".into(),
        Some(rate) => format!("held no rate between that and {rate}, at which too much is lost"),
    }
}

fn size(bytes: Bytes) -> String {
    format!("{} B", bytes.0)
}

/// Small shares matter here: three digits.
fn percent(percent: f64) -> String {
    match percent {
        0.0 => "0 %".into(),
        percent if percent < 0.001 => format!("{percent:.1e} %"),
        percent if percent < 1.0 => format!("{percent:.3} %"),
        percent => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Known};

    fn search(outcome: RateOutcome, rate: Option<f64>) -> RateSearch {
        let trial = RateTrial {
            asked_bits_per_s: Some(BitRate(48.6e6)),
            sent_bits_per_s: BitRate(48.6e6),
            sent_datagrams: 24_762,
            lost_percent: 0.004,
            dropped_by_receiver_percent: Known::Value(0.0),
            duration_s: 6.0,
            confirms: true,
            passed: rate.is_some(),
            spoilt: false,
        };
        RateSearch {
            datagram_bytes: Bytes(1472),
            max_loss_percent: 0.1,
            outcome,
            rate_bits_per_s: rate.map(BitRate),
            datagrams_per_s: rate.map(|rate| rate / 8.0 / 1472.0),
            limit: "a policer".into(),
            trials: vec![trial],
            doubts: Vec::new(),
        }
    }

    #[test]
    fn the_sentence_says_whose_limit_it_is() {
        let said = |outcome, rate| sentence(&search(outcome, rate));
        let path = said(RateOutcome::Path, Some(48.6e6));
        assert!(path.ends_with("held for 6 s; above it: a policer"), "{path}");
        let sender = said(RateOutcome::Sender, Some(48.6e6));
        assert!(sender.contains("the path may carry more"), "{sender}");
        let everywhere = said(RateOutcome::LossEverywhere, None);
        assert!(everywhere.contains("even at 48.6 Mbit/s, 0.004 % is lost"), "{everywhere}");
    }

    #[test]
    fn what_was_not_found_has_no_number() {
        assert_eq!(row(&search(RateOutcome::Unsteady, None))[1..4], ["–", "–", "–"]);
        let found = row(&search(RateOutcome::Path, Some(48.6e6)));
        assert_eq!(found[..4], ["1472 B", "48.6 Mbit/s", "4127", "0.004 %"]);
    }
}
