//! `goodput explain`: the page of one name that goodput knows.

use anyhow::{Result, bail};
use goodput_model::{EndName, SettingRef};

use crate::exit::Exit;
use crate::pages::registries;
use crate::screen;

/// Prints every page of this name: a rule, the check for the same cause and the scenario that plants it may share one
/// name.
pub fn run(name: &str) -> Result<Exit> {
    let found = find(name);
    if found.is_empty() {
        bail!("there is no page for {name:?}; {}", suggestion(name));
    }
    print(&found.concat())
}

/// Prints the page of one setting.
pub fn setting(setting: &SettingRef) -> Result<Exit> {
    print_setting(setting, registries::setting_pages(&setting.to_string()))
}

/// Prints the page of one setting of another host, which runs this system, with the line `value` about its value there.
pub fn setting_elsewhere(setting: &SettingRef, value: &str, system: &str) -> Result<Exit> {
    let there = SettingRef { end: EndName::Far, ..setting.clone() };
    print_setting(&there, registries::pages_elsewhere(&there, value, system))
}

fn print_setting(setting: &SettingRef, pages: Vec<String>) -> Result<Exit> {
    if pages.is_empty() {
        goodput_settings::find_for(setting)?;
    }
    print(&with_plain_titles(&pages.concat()))
}

/// The page of a setting, whose titles need no marks: it has one or two.
fn with_plain_titles(page: &str) -> String {
    let plain = |line: &str| match line.strip_prefix("## ") {
        Some(title) => title.replace('`', "") + "\n",
        None => line.to_owned() + "\n",
    };
    page.lines().map(plain).collect()
}

fn print(page: &str) -> Result<Exit> {
    screen::print_fitted(&with_whole_paragraphs(page.trim_start()))?;
    Ok(Exit::Fine)
}

/// The page with each paragraph in one line, for the screen to wrap. The sources have wrapped lines.
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
    let pages = registries::ALL.iter().flat_map(|registry| {
        (registry.pages)(name).into_iter().map(|page| of_kind(registry.kind, &page))
    });
    pages.collect()
}

/// The page with what it is about in its headings: one name may stand for several kinds of things.
fn of_kind(kind: &str, page: &str) -> String {
    page.replace("\n## `", &format!("\n## {kind} `"))
}

fn suggestion(name: &str) -> String {
    let names = registries::ALL.iter().flat_map(|registry| (registry.names)());
    goodput_model::meant(name, names).unwrap_or_else(|| {
        "`goodput list --help` names the lists of everything that has a page".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_may_stand_for_several_things() {
        let pages = find("ack-path").concat();
        for heading in ["## rule `ack-path`", "## scenario `ack-path`"] {
            assert_eq!(pages.matches(heading).count(), 1, "{heading}: {pages}");
        }
        let titles: Vec<_> = find("sysctl")
            .concat()
            .lines()
            .filter(|l| l.starts_with("## "))
            .map(String::from)
            .collect();
        assert_eq!(titles, ["## setting `sysctl`", "## fault `sysctl`", "## source `sysctl`"]);
        assert!(find("far:qdisc.kind@eth0=fq").concat().contains("qdisc.kind"));
    }

    #[test]
    fn paragraphs_are_one_line_and_headings_lists_and_examples_stay() {
        let page = "# Title\n\nOne\ntwo.\n\n- a\n- b\n  goes on\n\n    code\n    more\n";
        let whole = "# Title\n\nOne two.\n\n- a\n- b\n  goes on\n\n    code\n    more\n";
        assert_eq!(with_whole_paragraphs(page), whole);
    }

    #[test]
    fn titles_of_a_setting_have_no_marks() {
        let page = "\n## `link.mtu`\n\nLargest packet. `ip link` shows it.\n";
        let plain = "\nlink.mtu\n\nLargest packet. `ip link` shows it.\n";
        assert_eq!(with_plain_titles(page), plain);
    }

    #[test]
    fn a_name_that_is_close_is_suggested() {
        for (typed, meant) in [("path-los", "path-loss"), ("verdict.limt", "verdict.limit")] {
            let why = run(typed).unwrap_err().to_string();
            assert!(why.contains(&format!("did you mean {meant:?}?")), "{why}");
        }
        assert!(run("Qqqq").unwrap_err().to_string().contains("goodput list --help"));
    }
}
