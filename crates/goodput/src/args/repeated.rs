//! Every option that changes a plan is among the words that repeat it, unless a comparison chooses it.

use clap::error::ErrorKind;
use clap::{Args, FromArgMatches};
use goodput_model::{Direction, Length, Plan};

use super::MeasureArgs;

/// Values, of which each option takes one.
const VALUES: &[&str] = &[
    "2",
    "1200",
    "64K",
    "192.0.2.1",
    "500mbit",
    "50us",
    "44.21mbit/flow",
    "auto",
    "far:2,4-7",
    "spread:4000",
    "nas:443:192.0.2.7",
    "x25519:CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
];

/// Options that another option may require.
const CONTEXTS: &[&str] = &[
    "",
    "--udp",
    "--udp --rate 500mbit",
    "--source a",
    "--sink a",
    "--header 512",
    "--time 10",
    "--rsa-public-key a",
    "--username a",
    "--username a --rsa-public-key a",
];

/// A plan without what a comparison chooses itself: its length, and what is observed.
fn repeated(plan: Plan) -> Plan {
    let Plan { length, interval_s, omit_s, fetches, latency, observe, peer_output, .. } =
        Plan::standard();
    Plan { length, interval_s, omit_s, fetches, latency, observe, peer_output, ..plan }
}

/// The options of a measurement.
struct Options(clap::Command);

impl Options {
    fn new() -> Self {
        Self(MeasureArgs::augment_args(clap::Command::new("test").no_binary_name(true)))
    }

    /// The plan of a line of options, without what is not repeated.
    fn plan(&self, line: &str) -> Result<Plan, ErrorKind> {
        let matches = self.0.clone().try_get_matches_from(line.split_whitespace());
        let args = matches.and_then(|matches| MeasureArgs::from_arg_matches(&matches));
        args.map(|args| repeated(args.plan(Length::Source))).map_err(|error| error.kind())
    }

    /// The plan with this option and value, and with what it requires; and the plan with only the latter.
    fn with(&self, name: &str, value: &str) -> Option<(Plan, Result<Plan, ErrorKind>)> {
        let own = format!("--{name} ");
        for context in CONTEXTS.iter().filter(|context| !context.contains(&own)) {
            match self.plan(&format!("{context} --{name} {value}")) {
                Ok(plan) => return Some((plan, self.plan(context))),
                Err(ErrorKind::MissingRequiredArgument) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

#[test]
fn every_option_that_changes_the_plan_is_repeated() {
    let options = Options::new();
    let mut changing = 0;
    for option in options.0.get_arguments() {
        let name = option.get_long().expect("every option has a long name");
        let values = if option.get_action().takes_values() { VALUES } else { &[""] };
        let plans: Vec<_> = values.iter().filter_map(|value| options.with(name, value)).collect();
        assert!(!plans.is_empty(), "--{name} takes none of VALUES: add a value that it takes");
        for (plan, without) in plans {
            let words = MeasureArgs::words(&plan, false).to_string();
            assert_eq!(options.plan(&words).as_ref(), Ok(&plan), "--{name} became {words}");
            changing += usize::from(without != Ok(plan));
        }
    }
    assert!(changing > 40, "only {changing} values changed the plan");
}

#[test]
fn a_standard_plan_takes_no_words_and_a_file_is_read_or_written() {
    let words = |direction, file| {
        MeasureArgs::words(&Plan { direction, ..Plan::standard() }, file).to_string()
    };
    assert_eq!(words(Direction::Send, false), "");
    assert_eq!(words(Direction::Reverse, true), "");
    assert_eq!(words(Direction::Send, true), " --write");
}
