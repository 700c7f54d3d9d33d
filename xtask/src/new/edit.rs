//! Adds an entry to the text of the file that lists a registry.

use anyhow::{Context, Result, bail};

/// Adds `mod module;` among its peers, in order and with their visibility.
pub fn add_module(text: &str, module: &str) -> Result<String> {
    let mut lines: Vec<String> = text.lines().map(Into::into).collect();
    let present: Vec<(usize, &str, &str)> = text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .enumerate()
        .filter_map(|(number, line)| declared(line).map(|(prefix, name)| (number, prefix, name)))
        .collect();
    if present.iter().any(|(_, _, name)| *name == module) {
        bail!("there is a module `{module}` already");
    }
    let (last, prefix, _) = *present.last().context("mod.rs declares no module to stand beside")?;
    let next = present.iter().find(|(_, _, name)| *name > module);
    lines.insert(next.map_or(last + 1, |(number, _, _)| *number), format!("{prefix}{module};"));
    Ok(lines.join("\n") + "\n")
}

/// `("pub mod ", "copy")` of `pub mod copy;`.
fn declared(line: &str) -> Option<(&str, &str)> {
    let (visibility, rest) = line.split_once("mod ")?;
    let visible = visibility.is_empty() || visibility.starts_with("pub");
    let name = rest.strip_suffix(';')?;
    visible.then(|| (&line[..visibility.len() + "mod ".len()], name))
}

/// Adds `entry` to the list `ALL`: in order if the list is sorted, else at the end.
pub fn add_entry(text: &str, entry: &str) -> Result<String> {
    let list = text.find("const ALL: ").or_else(|| text.find("static ALL: "));
    let list = list.context("mod.rs has no list `ALL`")?;
    let value = list + text[list..].find('=').context("`ALL` has no value")?;
    let start = value + text[value..].find('[').context("`ALL` is not written as `&[…]`")? + 1;
    let end = start + text[start..].find(']').context("`ALL` has no end")?;
    let body = &text[start..end];
    let entries: Vec<&str> = body.split(',').map(str::trim).filter(|e| !e.is_empty()).collect();
    let next = entries.iter().find(|other| **other > entry).filter(|_| entries.is_sorted());
    let (before, after) = match next.and_then(|next| body.find(next)) {
        Some(place) => body.split_at(place),
        None => (body.trim_end().trim_end_matches(','), ""),
    };
    let comma = if next.is_some() || entries.is_empty() { "" } else { ", " };
    Ok(format!("{}{before}{comma}{entry}, {after}{}", &text[..start], &text[end..]))
}

/// Adds `"name",` to the names in `builtin!(…)`, one per line, in order.
pub fn add_builtin(text: &str, name: &str) -> Result<String> {
    const OPEN: &str = "\nbuiltin!(\n";
    let start = text.find(OPEN).context("there is no `builtin!(…)`")? + OPEN.len();
    let end = start + text[start..].find(");").context("`builtin!(…)` has no end")?;
    let line = format!("    \"{name}\",\n");
    let mut lines: Vec<&str> = text[start..end].split_inclusive('\n').collect();
    if lines.contains(&line.as_str()) {
        bail!("{name} is listed already");
    }
    let place = lines.iter().position(|other| *other > line.as_str()).unwrap_or(lines.len());
    lines.insert(place, &line);
    Ok(format!("{}{}{}", &text[..start], lines.concat(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOD: &str = "//! x\npub mod a;\npub mod c;\n\n#[cfg(test)]\nmod tests;\n";

    #[test]
    fn a_module_goes_where_it_belongs() {
        assert!(add_module(MOD, "b").unwrap().contains("pub mod a;\npub mod b;\npub mod c;\n"));
        assert!(add_module(MOD, "d").unwrap().contains("pub mod c;\npub mod d;\n\n"));
        assert!(add_module(MOD, "c").is_err());
        assert!(add_module("//! x\n", "c").is_err());
    }

    #[test]
    fn an_entry_keeps_the_order_of_the_list() {
        let added = |list: &str| {
            let text = format!("pub const ALL: &[&X] = &[{list}];\n");
            let added = add_entry(&text, "&m::X").unwrap();
            let words = added.split_once("= &[").unwrap().1.split_once(']').unwrap().0;
            words.split(',').map(str::trim).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(added(""), "&m::X");
        assert_eq!(added("&a::X, &z::X"), "&a::X &m::X &z::X");
        assert_eq!(added("\n    &z::X,\n    &a::X,\n"), "&z::X &a::X &m::X", "its own order");
        assert_eq!(added("\n    &a::X,\n"), "&a::X &m::X");
        let on_two_lines = add_entry("const ALL: &[&X] =\n    &[&a::X];\n", "&m::X").unwrap();
        assert!(on_two_lines.contains("&[&a::X, &m::X"), "{on_two_lines}");
        assert!(add_entry("const OTHER: &[&X] = &[];", "&m::X").is_err());
    }

    #[test]
    fn a_builtin_keeps_the_order() {
        let text = "x!();\n\nbuiltin!(\n    \"a\",\n    \"c\",\n);\n";
        let added = add_builtin(text, "b").unwrap();
        assert_eq!(added, "x!();\n\nbuiltin!(\n    \"a\",\n    \"b\",\n    \"c\",\n);\n");
        assert!(add_builtin(text, "c").is_err());
        assert!(add_builtin("", "c").is_err());
    }
}
