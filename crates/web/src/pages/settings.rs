//! The settings of this host.

use goodput_model::counted;
use maud::html;

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::layout::{plain, table, words};

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Settings"), ..Page::of("/settings", show) };

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let settings = visit.program.settings();
    let (known, unknown): (Vec<_>, Vec<_>) =
        settings.iter().partition(|setting| setting.value.is_ok());
    let rows = |lines: &[&crate::SettingLine]| {
        html! {
            @for line in lines {
                tr {
                    td { code { (plain(&line.name)) } }
                    td { (words(line.value.as_ref().unwrap_or_else(|why| why))) }
                    td { (line.title) }
                }
            }
        }
    };
    Ok(Answer::page(
        "Settings of this host",
        html! {
            (table("Values now", &["Setting", "Value", "What it does"], &rows(&known)))
            p { code { "goodput settings set NAME=VALUE" } " changes one; " code { "goodput compare" } " proves what a change does." }
            @if !unknown.is_empty() {
                details {
                    summary { (counted(unknown.len(), "setting")) " without a value here" }
                    (table("Settings without a value", &["Setting", "Why", "What it does"], &rows(&unknown)))
                }
            }
        },
    ))
}
