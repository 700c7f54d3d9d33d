//! The days of deleted results, comma-separated (RFC 4180) or for another history.

use anyhow::{Result, bail};
use goodput_store::{Day, Spread, Store, Wanted};

use super::fields::{field, measured_with};
use crate::exit::Exit;
use crate::screen;

/// The columns of a day of deleted results.
const OF_A_DAY: &str = "day,kind,target,transport,direction,flows,results,\
    goodput_bits_per_s_median,goodput_bits_per_s_least,goodput_bits_per_s_most,\
    round_trip_s_results,round_trip_s_median,round_trip_s_least,round_trip_s_most,\
    lost_ratio_results,lost_ratio_median,lost_ratio_least,lost_ratio_most,limit,limit_results";

/// A line for each day, the oldest first.
pub fn run(store: &Store, wanted: &Wanted) -> Result<Exit> {
    check(wanted)?;
    let days = store.days(wanted)?;
    let lines = days.iter().rev().map(day_line);
    let text: String = std::iter::once(format!("{OF_A_DAY}\r\n")).chain(lines).collect();
    screen::print_data(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Fine)
}

/// Refuses to look for days that there can't be.
fn check(wanted: &Wanted) -> Result<()> {
    if wanted.watched {
        bail!("--kind watch: a day does not know which of its results were tests of watches");
    }
    let kinds = Day::kinds();
    if let Some(kind) = wanted.kind.as_ref().filter(|kind| !kinds.contains(&kind.as_str())) {
        bail!(
            "--kind {kind}: days are only of results of one run; name the kind {}, or none",
            kinds.join(" or ")
        );
    }
    Ok(())
}

/// A line of JSON for each day, for another history.
pub fn counts(store: &Store, wanted: &Wanted) -> Result<Exit> {
    check(wanted)?;
    store.day_counts(wanted, |days| -> Result<()> {
        let lines = days.iter().rev().map(serde_json::to_string);
        let text: String = lines.map(|line| Ok(line? + "\n")).collect::<serde_json::Result<_>>()?;
        Ok(screen::print_data(|out| out.write_all(text.as_bytes()))?)
    })?;
    Ok(Exit::Fine)
}

fn day_line(day: &Day) -> String {
    let values = |Spread { least, median, most, .. }: Spread| format!("{median},{least},{most}");
    let known = |spread: Option<Spread>| match spread {
        Some(spread) => format!("{},{}", spread.results, values(spread)),
        None => "0,,,".into(),
    };
    let [date, kind, target, limit] =
        [&day.day, &day.kind, &day.target, &day.limit].map(|text| field(text));
    let [transport, direction, flows] =
        measured_with(day.traffic.as_ref()).map(|text| field(&text));
    let (goodput, round_trip, lost) =
        (values(day.goodput), known(day.round_trip_s), known(day.lost_share));
    let Day { results, limited, .. } = day;
    format!(
        "{date},{kind},{target},{transport},{direction},{flows},{results},{goodput},{round_trip},{lost},{limit},{limited}\r\n"
    )
}
