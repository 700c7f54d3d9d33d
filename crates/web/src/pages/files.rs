//! What pages load: their style, the script of the live page, and the icon.

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};

/// Style of all pages.
pub const STYLE: Page = Page { open: true, ..Page::of("/style.css", style) };

/// Draws a running test.
pub const SCRIPT: Page = Page { open: true, ..Page::of("/live.js", script) };

/// The icon of a tab.
pub const ICON: Page = Page { open: true, ..Page::of("/icon.svg", icon) };

fn style(_: &Visit) -> Result<Answer, Trouble> {
    let content = [&goodput_charts::style(), include_str!("../web.css")].concat();
    Ok(Answer::File { kind: "text/css; charset=utf-8", content })
}

fn script(_: &Visit) -> Result<Answer, Trouble> {
    let content = include_str!("../live.js").into();
    Ok(Answer::File { kind: "text/javascript; charset=utf-8", content })
}

fn icon(_: &Visit) -> Result<Answer, Trouble> {
    let content = include_str!("../icon.svg").into();
    Ok(Answer::File { kind: "image/svg+xml", content })
}
