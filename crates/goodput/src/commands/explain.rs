//! `goodput explain`: the page of one thing that goodput knows.

use anyhow::{Result, bail};

use crate::exit::Exit;
use crate::nearest::nearest;
use crate::pages;
use crate::screen;

/// Prints every page of this name: a rule and the check for the same cause share one.
pub fn run(name: &str) -> Result<Exit> {
    let found = find(name);
    if found.is_empty() {
        bail!(
            "{name:?} is not a rule, check, bound, setting, mover or field of a record{}",
            suggestion(name)
        );
    }
    let page = found.concat();
    match screen::columns() {
        Some(_) => screen::print_fitted(&with_whole_paragraphs(page.trim_start()))?,
        None => screen::print(page.trim_start())?,
    }
    Ok(Exit::Fine)
}

/// The page with each paragraph in one line, for the screen to break. In the sources they are broken already.
fn with_whole_paragraphs(page: &str) -> String {
    let mut out = String::new();
    let mut in_paragraph = false;
    for line in page.lines() {
        let is_prose =
            line.starts_with(|first: char| !first.is_whitespace() && !"#|".contains(first));
        if in_paragraph {
            out.push(if is_prose && !line.starts_with("- ") { ' ' } else { '\n' });
        }
        out += line;
        in_paragraph = is_prose;
        if !is_prose {
            out.push('\n');
        }
    }
    out.trim_end().to_string() + "\n"
}

fn find(name: &str) -> Vec<String> {
    let rules = goodput_diagnose::rules::ALL.iter().filter(|rule| rule.id == name);
    let checks = goodput_diagnose::check::checks::ALL.iter().filter(|check| check.id == name);
    // A setting may be written as in a comparison, with its end, scope and values.
    let bare = name.strip_prefix("far:").unwrap_or(name);
    let bare = bare.split(['@', '=']).next().unwrap_or(bare);
    let settings = goodput_settings::find(bare).ok();
    let movers = goodput_mover::movers::ALL.iter().filter(|mover| mover.id() == name);
    let pages = rules.map(|rule| pages::rule(rule)).chain(checks.map(|check| pages::check(check)));
    let bounds = goodput_ceiling::bounds::find(name).into_iter().map(pages::bound);
    let pages = pages.chain(bounds).chain(settings.map(pages::setting));
    pages.chain(movers.map(|mover| pages::mover(*mover))).chain(pages::field::find(name)).collect()
}

fn suggestion(name: &str) -> String {
    let rules = goodput_diagnose::rules::ALL.iter().map(|rule| rule.id);
    let settings = goodput_settings::settings::ALL.iter().map(|setting| setting.id);
    let movers = goodput_mover::movers::ALL.iter().map(|mover| mover.id());
    let nearest = nearest(name, rules.chain(settings).chain(movers));
    nearest.map_or_else(
        || "; `goodput list` shows the names".into(),
        |nearest| format!("; did you mean {nearest:?}?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_listed_has_a_page() {
        for rule in goodput_diagnose::rules::ALL {
            assert!(!find(rule.id).is_empty(), "{}", rule.id);
        }
        for bound in goodput_ceiling::bounds::ALL {
            assert!(!find(bound.id).is_empty(), "{}", bound.id);
        }
        for setting in goodput_settings::settings::ALL {
            assert!(!find(setting.example).is_empty(), "{}", setting.example);
        }
        assert!(find("far:qdisc.kind@eth0=fq").concat().contains("qdisc.kind"));
    }

    #[test]
    fn paragraphs_are_one_line_and_headings_lists_and_examples_stay() {
        let page = "# Title\n\nOne\ntwo.\n\n- a\n- b\n  goes on\n\n    code\n    more\n";
        let whole = "# Title\n\nOne two.\n\n- a\n- b\n  goes on\n\n    code\n    more\n";
        assert_eq!(with_whole_paragraphs(page), whole);
    }

    #[test]
    fn a_name_that_is_close_is_suggested() {
        assert!(run("path-los").unwrap_err().to_string().contains("path-loss"));
    }
}
