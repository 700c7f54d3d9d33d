//! Which results the user asks for. What no result can be is refused: an empty list would look like an answer.

use anyhow::{Result, bail};
use goodput_model::{Verdict, meant};
use goodput_store::{MAX_NAMES, Store, Wanted};

use crate::args::WantedArgs;

/// The search for what was asked for; at most `last` results.
///
/// # Errors
/// A verdict that no rule has and no result, who measured no result, or a time that ends before it begins.
pub fn checked(store: &Store, args: &WantedArgs, last: u32) -> Result<Wanted> {
    let wanted = args.wanted(last);
    if let (true, Some(from), Some(until)) =
        (wanted.ends_before_it_begins(), &wanted.from, &wanted.until)
    {
        bail!(
            "no result began since {from} and before {until}: give --until a later time than --since"
        );
    }
    if let Some(limit) = &wanted.limited_by {
        check_limit(store, limit)?;
    }
    if let Some(who) = &wanted.measured_by {
        check_who(store, who)?;
    }
    Ok(wanted)
}

/// Another version of goodput may have had other rules: what a result has is no mistake.
fn check_limit(store: &Store, limit: &str) -> Result<()> {
    let rules = goodput_diagnose::rules::ALL.iter().map(|rule| rule.id);
    let known = rules.chain([Verdict::NO_LIMIT]);
    if known.clone().any(|known| known == limit)
        || store.names()?.limits.iter().any(|found| found == limit)
    {
        return Ok(());
    }
    let help = meant(limit, known)
        .unwrap_or_else(|| "write none, or a name that `goodput list rules` lists".into());
    bail!("--limit: there is no rule {limit:?}, and no result has it; {help}")
}

fn check_who(store: &Store, who: &str) -> Result<()> {
    let known = store.names()?.measured_by;
    // Of more, only some are known here.
    if known.len() >= MAX_NAMES || known.iter().any(|known| known == who) {
        return Ok(());
    }
    let names = known.iter().map(String::as_str);
    let help = meant(who, names).unwrap_or_else(|| match &known[..] {
        [] => "no result of this history says who measured it".into(),
        known => format!("write one of {}", known.join(", ")),
    });
    bail!("--by: no result was measured by {who:?}; {help}")
}
