//! docs/truth.md: what was planted, what was named, and how often that was right.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;

use super::case::{Came, Planted, Ran, Verdict};
use super::score::{Score, cost_decides_nothing, score};
use crate::part::Part;
use crate::wilson;
use goodput_model::median;
use goodput_tools::shell::machine;

/// One run on one line.
pub fn one_line(ran: &Ran) -> String {
    match &ran.came {
        Came::Skipped(needs) => format!("{}: needs {needs}", ran.case),
        Came::Failed(why) => format!("{}: FAILED {}", ran.case, first_line(why)),
        Came::Verdict(verdict) => {
            let words = score(ran).map_or("", Score::words);
            format!("{}: {words}: {}, {}", ran.case, named(verdict), rate(verdict.goodput))
        }
    }
}

/// The most important shares, one per line.
pub fn summary(runs: &[Ran]) -> String {
    let scores: Vec<Score> = runs.iter().filter_map(score).collect();
    let count = |wanted: &[Score]| scores.iter().filter(|score| wanted.contains(score)).count();
    let one = count(&[Score::First, Score::AmongThree, Score::Wrong, Score::Missed]);
    let several = count(&[Score::AllNamed, Score::SomeNamed, Score::NoneFirst]);
    let healthy = count(&[Score::Quiet, Score::FalseAlarm]);
    let fixes: Vec<_> = runs.iter().filter_map(|ran| verdict(ran)?.fix.as_ref()).collect();
    let better = fixes.iter().filter(|fix| fix.judgement == "better").count();
    let mut lines = vec![
        ("right cause first", wilson::shown(count(&[Score::First]), one)),
        ("right cause among the first three", {
            wilson::shown(count(&[Score::First, Score::AmongThree]), one)
        }),
        ("false alarms on healthy paths", wilson::shown(count(&[Score::FalseAlarm]), healthy)),
        ("all causes of several named", wilson::shown(count(&[Score::AllNamed]), several)),
    ];
    let unclear = runs.iter().filter(|ran| verdict(ran).is_some() && cost_decides_nothing(ran));
    let unclear = unclear.count();
    if unclear > 0 {
        lines.push(("not judged: the cost of the fault is unknown or too small, or that of a path without one too large", unclear.to_string()));
    }
    let disturbed = count(&[Score::Disturbed]);
    if disturbed > 0 {
        let row = "healthy paths not judged: named that other programs took the CPUs, as they did";
        lines.push((row, disturbed.to_string()));
    }
    if !fixes.is_empty() {
        lines.push(("proposed change measurably better", wilson::shown(better, fixes.len())));
    }
    let row = |(what, shown): (&str, String)| format!("| {what} | {shown} |\n");
    lines.into_iter().map(row).collect()
}

/// The whole page. Of runs that are judged again, those held out are counted and not named: rules are changed by what is
/// named, and a case that somebody has looked at is held out no longer.
pub fn page(runs: &[Ran], again: bool) -> Result<String> {
    let is_held_out = |ran: &Ran| part_of(ran) == Some(Part::HeldOut);
    let named: Vec<Ran> = runs.iter().filter(|ran| !again || !is_held_out(ran)).cloned().collect();
    let mut page = head(runs)?;
    page.push_str("\n| | share (95 % interval, Wilson) |\n|---|---|\n");
    page.push_str(&summary(runs));
    by_part(&mut page, runs)?;
    page.push_str("\n## By cause\n\n");
    by_cause(&mut page, runs)?;
    page.push_str("\n## Confidence\n\nHow often a verdict of each confidence was right.\n\n");
    by_confidence(&mut page, runs)?;
    page.push_str("\n## What was not right\n\n");
    faults(&mut page, &named)?;
    fixes(&mut page, &named)?;
    page.push_str("\n## Every case\n\n");
    every_case(&mut page, &named)?;
    could_not(&mut page, runs)?;
    Ok(page)
}

/// The shares of each part of the faults that were drawn at random: a rule that was changed after a look at one part is
/// judged by the other.
fn by_part(page: &mut String, runs: &[Ran]) -> Result<()> {
    for (title, part) in Part::ALL {
        let of_part = runs.iter().filter(|ran| part_of(ran) == Some(part));
        let of_part: Vec<Ran> = of_part.cloned().collect();
        if !of_part.is_empty() {
            writeln!(page, "\n{title}:\n\n| | share (95 % interval, Wilson) |\n|---|---|")?;
            page.push_str(&summary(&of_part));
        }
    }
    Ok(())
}

fn part_of(ran: &Ran) -> Option<Part> {
    ran.drawn.as_deref().and_then(Part::of)
}

fn head(runs: &[Ran]) -> Result<String> {
    let mut times: Vec<&str> =
        runs.iter().filter_map(verdict).map(|verdict| verdict.started.as_str()).collect();
    times.sort_unstable();
    let cases = by_case(runs).len();
    let day = |time: Option<&&str>| {
        time.map_or("never", |time| time.get(..16).unwrap_or(time)).to_owned()
    };
    Ok(format!(
        "# How often the diagnosis is right\n\nWritten by `cargo xtask truth --full`; run it to get your own \
         machine's. Each case plants a known cause between virtual hosts (`goodput lab list`), runs \
         `goodput test` for four seconds, and compares the verdict with what was planted.\n\n\
         - {cases} cases, {} runs, from {} to {} UTC\n- {}\n",
        runs.len(),
        day(times.first()),
        day(times.last()),
        machine()?,
    ))
}

/// One row per planted cause: the verdicts of its runs, and what it was mistaken for.
pub fn by_cause(page: &mut String, runs: &[Ran]) -> Result<()> {
    let mut causes: BTreeMap<String, Vec<(&Ran, Score)>> = BTreeMap::new();
    for (ran, score) in runs.iter().filter_map(|ran| Some((ran, score(ran)?))) {
        causes.entry(cause(&ran.planted)).or_default().push((ran, score));
    }
    writeln!(page, "| planted | runs | first | among three | wrong | missed | taken for |")?;
    writeln!(page, "|---|---|---|---|---|---|---|")?;
    for (cause, scored) in &causes {
        let count = |wanted: &[Score]| scored.iter().filter(|(_, s)| wanted.contains(s)).count();
        let first = count(&[Score::First, Score::AllNamed, Score::Quiet]);
        writeln!(
            page,
            "| {cause} | {} | {first} | {} | {} | {} | {} |",
            scored.len(),
            first + count(&[Score::AmongThree, Score::SomeNamed]),
            count(&[Score::Wrong, Score::NoneFirst, Score::FalseAlarm]),
            count(&[Score::Missed]),
            taken_for(scored),
        )?;
    }
    page.push_str(
        "\nIf several causes were planted, *first* counts runs that name all of them, and *among three* also runs \
         that name one of them first. If nothing was planted, *wrong* counts false alarms.\n",
    );
    Ok(())
}

fn cause(planted: &Planted) -> String {
    match planted {
        Planted::One { rules, .. } => format!("`{}`", rules.first().map_or("", String::as_str)),
        Planted::Several(rules) => {
            rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(" and ")
        }
        Planted::Nothing(_) => "nothing".into(),
    }
}

fn taken_for(scored: &[(&Ran, Score)]) -> String {
    let imperfect = scored.iter().filter(|(_, score)| !score.is_perfect());
    counted(imperfect.filter_map(|(ran, _)| verdict(ran)).map(named))
}

/// "a, b (2)".
fn counted(words: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    let shown = |(word, n): (String, usize)| if n > 1 { format!("{word} ({n})") } else { word };
    counts.into_iter().map(shown).collect::<Vec<_>>().join("; ")
}

fn by_confidence(page: &mut String, runs: &[Ran]) -> Result<()> {
    writeln!(page, "| said | promised | right |\n|---|---|---|")?;
    for (confidence, promised) in
        [("certain", "95 % or more"), ("likely", "80 % or more"), ("possible", "")]
    {
        let said = |ran: &&Ran| {
            verdict(ran).and_then(|v| v.confidence.as_deref()).is_some_and(|c| c == confidence)
        };
        let scores: Vec<_> = runs.iter().filter(said).filter_map(score).collect();
        let right = scores.iter().filter(|score| score.is_right()).count();
        writeln!(page, "| {confidence} | {promised} | {} |", wilson::shown(right, scores.len()))?;
    }
    Ok(())
}

/// Every run with a wrong result, with the evidence for its verdict.
pub fn faults(page: &mut String, runs: &[Ran]) -> Result<()> {
    let mut none = true;
    for ran in runs {
        let (Some(verdict), Some(score)) = (verdict(ran), score(ran)) else { continue };
        if score.is_perfect() && verdict.missed.is_empty() {
            continue;
        }
        none = false;
        writeln!(
            page,
            "- `{}`: {}: {}, {}",
            ran.case,
            score.words(),
            named(verdict),
            rate(verdict.goodput)
        )?;
        for text in verdict.missed.iter().chain(&verdict.evidence) {
            writeln!(page, "  - {text}")?;
        }
    }
    if none {
        writeln!(page, "Nothing.")?;
    }
    Ok(())
}

fn fixes(page: &mut String, runs: &[Ran]) -> Result<()> {
    let tried: Vec<_> =
        runs.iter().filter_map(|ran| Some((ran, verdict(ran)?.fix.as_ref()?))).collect();
    if tried.is_empty() {
        return Ok(());
    }
    page.push_str(
        "\n## The proposed changes\n\nThe first change that the verdict proposes, compared in the same hosts \
         by `goodput compare`.\n\n| case | change | judgement | difference (interval) |\n|---|---|---|---|\n",
    );
    for (ran, fix) in tried {
        let percent = fix.percent.map_or(String::new(), |(middle, low, high)| {
            format!("{middle:+.1} % ({low:+.1} to {high:+.1} %)")
        });
        writeln!(
            page,
            "| {} | `{}` | {} | {percent} |",
            ran.case,
            fix.change,
            first_line(&fix.judgement)
        )?;
    }
    Ok(())
}

fn every_case(page: &mut String, runs: &[Ran]) -> Result<()> {
    writeln!(page, "| case | right | named | goodput |\n|---|---|---|---|")?;
    for (case, runs) in by_case(runs) {
        let verdicts: Vec<_> = runs.iter().filter_map(|ran| verdict(ran)).collect();
        let right = runs.iter().filter_map(|ran| score(ran)).filter(|s| s.is_perfect()).count();
        let Some(goodput) = median(verdicts.iter().map(|verdict| verdict.goodput)) else {
            continue;
        };
        writeln!(
            page,
            "| {case} | {right} of {} | {} | {} |",
            verdicts.len(),
            counted(verdicts.iter().map(|verdict| named(verdict))),
            rate(goodput),
        )?;
    }
    Ok(())
}

fn could_not(page: &mut String, runs: &[Ran]) -> Result<()> {
    let mut lines: Vec<String> = Vec::new();
    for ran in runs {
        match &ran.came {
            Came::Skipped(needs) => {
                lines.push(format!("- `{}` could not run: needs {needs}", ran.case))
            }
            Came::Failed(why) => {
                lines.push(format!("- `{}` failed: {}", ran.case, first_line(why)))
            }
            Came::Verdict(_) => {}
        }
    }
    lines.dedup();
    if !lines.is_empty() {
        write!(page, "\n## What did not run\n\n{}\n", lines.join("\n"))?;
    }
    Ok(())
}

/// The runs of each case, in the order of each case's first run.
fn by_case(runs: &[Ran]) -> Vec<(&str, Vec<&Ran>)> {
    let mut cases: Vec<(&str, Vec<&Ran>)> = Vec::new();
    for ran in runs {
        match cases.iter_mut().find(|(case, _)| *case == ran.case) {
            Some((_, same)) => same.push(ran),
            None => cases.push((&ran.case, vec![ran])),
        }
    }
    cases
}

fn verdict(ran: &Ran) -> Option<&Verdict> {
    match &ran.came {
        Came::Verdict(verdict) => Some(verdict),
        _ => None,
    }
}

/// The verdict and what else was found: "`path-loss` (likely), then `send-buffer`".
fn named(verdict: &Verdict) -> String {
    let confidence =
        verdict.confidence.as_ref().map(|word| format!(" ({word})")).unwrap_or_default();
    let rest: Vec<_> = verdict.found.iter().skip(1).map(|rule| format!("`{rule}`")).collect();
    let rest = if rest.is_empty() { String::new() } else { format!(", then {}", rest.join(", ")) };
    format!("`{}`{confidence}{rest}", verdict.limit)
}

fn rate(bits_per_s: f64) -> String {
    format!("{:.1} Mbit/s", bits_per_s / 1e6)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(case: &str, found: &[&str]) -> Ran {
        let verdict = Verdict {
            limit: found.first().unwrap_or(&"none").to_string(),
            found: found.iter().map(|rule| rule.to_string()).collect(),
            confidence: found.first().map(|_| "likely".into()),
            goodput: 1e6,
            started: "2026-01-01T00:00:00Z".into(),
            ..Verdict::default()
        };
        let planted = Planted::One { rules: vec!["a".into()], end: None };
        Ran {
            case: case.into(),
            planted,
            came: Came::Verdict(Box::new(verdict)),
            cost: None,
            drawn: None,
            others: None,
        }
    }

    #[test]
    fn the_page_counts_what_was_right() {
        let skipped = Ran { came: Came::Skipped("luck".into()), ..ran("s", &[]) };
        let page = page(&[ran("x", &["a"]), ran("x", &["b", "a"]), ran("y", &[]), skipped], false)
            .unwrap();
        assert!(page.contains("| right cause first | 1 of 3 (33 %; 6 to 79 %) |"), "{page}");
        assert!(
            page.contains("| `a` | 3 | 1 | 2 | 0 | 1 | `b` (likely), then `a`; `none` |"),
            "{page}"
        );
        assert!(page.contains("| likely | 80 % or more | 1 of 2 "), "{page}");
        assert!(
            page.contains("| x | 1 of 2 | `a` (likely); `b` (likely), then `a` | 1.0 Mbit/s |"),
            "{page}"
        );
        assert!(page.contains("`s` could not run: needs luck"), "{page}");
    }

    /// A case that is named like its digest.
    fn drawn(digest: &str, cost: f64, found: &[&str]) -> Ran {
        Ran {
            drawn: Some(digest.into()),
            cost: Some(cost),
            ..ran(&format!("case-{digest}"), found)
        }
    }

    #[test]
    fn what_is_held_out_is_counted_and_not_named_if_it_is_judged_again() {
        let runs = [drawn("00", 0.5, &["b"]), drawn("ff", 0.5, &["c"])];
        let named = |again| {
            let page = page(&runs, again).unwrap();
            assert!(page.contains("| right cause first | 0 of 2 "), "{page}");
            ["case-00", "case-ff"].map(|case| page.contains(case))
        };
        assert_eq!((named(false), named(true)), ([true, true], [false, true]));
    }

    #[test]
    fn drawn_faults_are_also_counted_by_part_and_the_cheap_ones_apart() {
        let page = page(
            &[drawn("00", 0.5, &["b"]), drawn("ff", 0.5, &["a"]), drawn("ff", 0.1, &["b"])],
            false,
        );
        let page = page.unwrap();
        let (all, parts) = page.split_once("\nHeld out:\n").unwrap();
        let (held_out, fit) = parts.split_once("\nFitted to:\n").unwrap();
        let cheap = "too large | 1 |";
        assert!(all.contains("| right cause first | 1 of 2 ") && all.contains(cheap), "{all}");
        assert!(held_out.contains("| right cause first | 0 of 1 "), "{held_out}");
        assert!(!held_out.contains(cheap), "{held_out}");
        assert!(fit.contains("| right cause first | 1 of 1 ") && fit.contains(cheap), "{fit}");
    }

    #[test]
    fn a_run_is_one_line() {
        assert_eq!(one_line(&ran("x", &["a"])), "x: right: `a` (likely), 1.0 Mbit/s");
    }
}
