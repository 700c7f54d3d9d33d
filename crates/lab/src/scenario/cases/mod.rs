//! One file, several cases: each strength of the fault on each link, with the values of both replacing the file's
//! `{placeholders}`.

use toml::{Table, Value};

use super::placeholder::Values;

/// One case of a file, filled in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    /// `name`, `name/strength`, `name/link` or `name/strength/link`.
    pub(super) name: String,
    /// Which of the strengths; `None` if the file has none.
    pub(super) strength: Option<String>,
    /// The file as if it had been written for this case alone.
    pub(super) table: Table,
}

/// The tables that split a file into several cases, in the order of their place in a case's name.
const AXES: [&str; 2] = ["strength", "on"];

/// One of several strengths or links: its name, and its values for the placeholders.
type Choice = (String, Table);

/// Whether the file contains several cases.
pub(super) fn is_several(file: &Table) -> bool {
    AXES.iter().any(|axis| file.contains_key(*axis))
}

/// All cases, in the file's order, links varying fastest. An error is a phrase that names the placeholder or the table,
/// and the case if only one case is affected.
pub(super) fn expand(mut file: Table) -> Result<Vec<Case>, String> {
    let name = match file.get("name") {
        Some(Value::String(name)) => name.clone(),
        _ => return Err("name = \"...\" is missing".into()),
    };
    let strengths = choices(&mut file, "strength")?;
    let links = choices(&mut file, "on")?;
    let mut cases = Vec::new();
    for strength in optional(&strengths) {
        for link in optional(&links) {
            let chosen = [strength, link];
            let name = chosen.iter().flatten().fold(name.clone(), |n, (c, _)| format!("{n}/{c}"));
            let table = fill(&file, chosen, [&strengths, &links]);
            let table = table.map_err(|problem| format!("case {name}: {problem}"))?;
            cases.push(Case { name, strength: strength.map(|(name, _)| name.clone()), table });
        }
    }
    Ok(cases)
}

/// Index of the default case: the second strength, if there are several, on the first link.
pub(super) fn default_case(cases: &[Case]) -> usize {
    let first = cases.first().and_then(|case| case.strength.as_ref());
    cases.iter().position(|case| case.strength.as_ref() != first).unwrap_or(0)
}

/// Every choice, or `None` as the only one.
fn optional(choices: &[Choice]) -> Vec<Option<&Choice>> {
    if choices.is_empty() { vec![None] } else { choices.iter().map(Some).collect() }
}

fn choices(file: &mut Table, axis: &str) -> Result<Vec<Choice>, String> {
    let Some(value) = file.remove(axis) else { return Ok(Vec::new()) };
    let Value::Table(table) = value else { return Err(format!("[{axis}] must be a table")) };
    if table.is_empty() {
        return Err(format!("[{axis}] is empty: name at least one, or leave it out"));
    }
    table.into_iter().map(|(name, values)| choice(axis, name, values)).collect()
}

fn choice(axis: &str, name: String, values: Value) -> Result<Choice, String> {
    if !super::is_kebab_case(&name) {
        return Err(format!(
            "{axis}.{name:?} must be kebab-case, because it is part of a case's name"
        ));
    }
    match values {
        Value::Table(values) => Ok((name, values)),
        other => Err(format!(
            "{axis}.{name} must give values for placeholders, like {{ loss = \"1%\" }}, and is {other}"
        )),
    }
}

fn fill(file: &Table, chosen: [Option<&Choice>; 2], all: [&[Choice]; 2]) -> Result<Table, String> {
    let link = chosen[1].map(|(name, _)| name.as_str());
    let links: Vec<_> = all[1].iter().map(|(name, _)| name.as_str()).collect();
    let mut values = Values::default();
    for (axis, choice) in AXES.iter().zip(chosen) {
        let Some((name, given)) = choice else { continue };
        for (key, value) in given {
            let value = for_link(value, link, &links);
            values.give(key, value).map_err(|why| format!("{axis}.{name}: {why}"))?;
        }
    }
    let mut table = values.fill_table(file)?;
    values.all_used()?;
    for (index, axis) in AXES.iter().enumerate() {
        let names: Vec<_> = all[index].iter().map(|(name, _)| name.as_str()).collect();
        refine_expect(&mut table, axis, chosen[index].map(|(name, _)| name.as_str()), &names)?;
    }
    Ok(table)
}

/// If a value has one entry per link, the entry of this link.
fn for_link<'a>(value: &'a Value, link: Option<&str>, links: &[&str]) -> &'a Value {
    let per_link = value.as_table().filter(|table| {
        table.len() == links.len() && links.iter().all(|link| table.contains_key(*link))
    });
    per_link.zip(link).and_then(|(table, link)| table.get(link)).unwrap_or(value)
}

/// Lets the keys of `[expect.AXIS.NAME]` replace those of `[expect]`.
fn refine_expect(
    table: &mut Table,
    axis: &str,
    chosen: Option<&str>,
    names: &[&str],
) -> Result<(), String> {
    let Some(Value::Table(expect)) = table.get_mut("expect") else { return Ok(()) };
    let Some(Value::Table(mut refined)) = expect.remove(axis) else { return Ok(()) };
    if let Some(unknown) = refined.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("expect.{axis}.{unknown}: [{axis}] has no {unknown}"));
    }
    if let Some(Value::Table(own)) = chosen.and_then(|name| refined.remove(name)) {
        expect.extend(own);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
