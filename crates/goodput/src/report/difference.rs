//! Two earlier results side by side.

use goodput_model::answer::{answer, difference, listed_goodput};
use goodput_model::{Known, Record};

use super::table::Table;

/// The differences between two records, with a warning that single runs prove nothing.
pub fn text(a: &Record, b: &Record) -> String {
    let mut table = Table::new(&["", "first", "second"]);
    let mut row = |label: &str, value: fn(&Record) -> String| {
        table.row(&[label, &value(a), &value(b)]);
    };
    row("started", |r| r.started.clone());
    row("target", |r| r.target.clone());
    row("goodput", |r| listed_goodput(r).to_string());
    if [a, b].into_iter().any(|record| answer(record).is_some()) {
        row("answer", |r| answer(r).unwrap_or_default());
    }
    row("limited by", |r| r.verdict.limit.clone());
    row("cpu near", |r| percent(&r.result.near.cpu_percent));
    row("cpu far", |r| percent(&r.result.far.cpu_percent));
    row("mover", |r| match &r.plan.receive_mover {
        Some(receive) => format!("{}, {receive} to receive", r.plan.mover),
        None => r.plan.mover.clone(),
    });
    row("traffic", |r| r.plan.traffic());
    row("flows", |r| r.plan.flows.to_string());
    format!("{}\n{}\n", table.text().trim_end(), difference(a, b))
}

fn percent(value: &Known<f64>) -> String {
    value.value().map_or("unknown".into(), |percent| format!("{percent:.0} %"))
}
