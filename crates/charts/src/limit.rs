//! What limited a direction, as a sentence.

use goodput_model::{Record, Verdict};

use crate::words::capital;

/// How the summary of a verdict without a limit begins.
const NOTHING: &str = "nothing found";

/// How it begins if something was found that does not matter.
const NOTHING_THAT_MATTERS: &str = "nothing found that took time";

/// The sentence in its parts: the limit stands out.
pub struct Limited {
    /// What is before it.
    pub before: String,
    /// The limit.
    pub limit: String,
    /// What is behind it, to the end of the sentence.
    pub after: String,
}

impl Limited {
    /// That of a direction.
    pub fn of(record: &Record, verdict: &Verdict) -> Self {
        // Of two directions, which one.
        let direction = record.verdict_reverse.as_ref();
        let direction = direction.map(|_| format!("Sent by the {} host: ", verdict.sender));
        let begin = |words: &str| match &direction {
            Some(direction) => format!("{direction}{words}"),
            None => capital(words),
        };
        if verdict.limit != Verdict::NO_LIMIT {
            let after = format!(" ({}).", verdict.end);
            return Self { before: begin("limited by "), limit: verdict.summary.clone(), after };
        }
        let (limit, after) = without_limit(&verdict.summary);
        match direction {
            Some(before) => Self { before, limit: limit.into(), after },
            None => Self { before: String::new(), limit: capital(limit), after },
        }
    }
}

/// The words for a direction of which nobody knows what limits it, and what is behind them.
pub fn without_limit(summary: &str) -> (&'static str, String) {
    let (what, rest) =
        match (summary.strip_prefix(NOTHING_THAT_MATTERS), summary.strip_prefix(NOTHING)) {
            (Some(rest), _) => (": what was found took no time", rest),
            (None, Some(rest)) => (": no rule names what held the goodput back", rest),
            (None, None) => return ("no limit known", format!(": {summary}.")),
        };
    let rest = rest.trim_start_matches("; ");
    let rest = if rest.is_empty() { String::new() } else { format!(" {}.", capital(rest)) };
    ("no limit found", format!("{what}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(change: impl FnOnce(&mut Record)) -> String {
        let mut record = Record::from_json(include_str!("../tests/records/window.json")).unwrap();
        change(&mut record);
        let Limited { before, limit, after } = Limited::of(&record, &record.verdict);
        [before, limit, after].concat()
    }

    #[test]
    fn a_run_without_a_limit_is_not_limited_by_nothing() {
        let none = |summary: &str| {
            sentence(|record| {
                record.verdict.limit = Verdict::NO_LIMIT.into();
                record.verdict.summary = summary.into();
            })
        };
        assert_eq!(
            none("nothing found; path rate took 62 % of the time; 1 rule could not decide"),
            "No limit found: no rule names what held the goodput back. Path rate took 62 % of the time; 1 rule could not \
             decide."
        );
        assert_eq!(
            none("nothing found that took time; startup took 90 % of the time"),
            "No limit found: what was found took no time. Startup took 90 % of the time."
        );
        assert_eq!(none("not diagnosed"), "No limit known: not diagnosed.");
    }

    #[test]
    fn of_two_directions_the_sentence_names_one() {
        let both = |limit: &'static str| {
            move |record: &mut Record| {
                record.verdict_reverse = Some(record.verdict.clone());
                record.verdict.limit = limit.into();
                record.verdict.summary = "nothing found".into();
            }
        };
        let named = sentence(both("receive-window"));
        assert!(named.starts_with("Sent by the near host: limited by nothing found ("), "{named}");
        let none = sentence(both(Verdict::NO_LIMIT));
        assert!(none.starts_with("Sent by the near host: no limit found: no rule"), "{none}");
    }
}
