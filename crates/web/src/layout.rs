//! What all pages have around them.

use goodput_model::{Verdict, is_plain};
use maud::{DOCTYPE, Markup, html};

use crate::gate::{FORM_FIELD, Gate};
use crate::program::Program;

/// A page that the navigation leads to.
pub struct Link {
    /// What the navigation calls it.
    pub name: &'static str,
    /// Where it is.
    pub path: &'static str,
}

/// What a document is made of.
pub struct Document<'a> {
    /// Its title, and the heading above it.
    pub title: &'a str,
    /// What is below the heading.
    pub body: &'a Markup,
    /// The page's own path, which the navigation marks.
    pub path: &'a str,
    /// The links of the navigation.
    pub links: &'a [Link],
    /// Who looks at it.
    pub who: &'a Who,
}

/// The whole document, as HTML.
pub fn document(made_of: &Document) -> String {
    let Document { title, body, path, links, who } = *made_of;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – goodput" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/icon.svg";
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header { p.brand { a href="/" { "goodput" } } (navigation(links, path)) (session(who)) }
                main #content tabindex="-1" { h1 { (plain(title)) } (body) }
                footer { "goodput " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string()
}

/// Who looks at a page.
pub struct Who {
    /// Whether they have logged in.
    pub known: bool,
    /// What their forms contain.
    form: String,
}

impl Who {
    /// A person whom the gate knows, or not.
    pub fn new(gate: &Gate, known: bool) -> Self {
        Self { known, form: if known { gate.form() } else { String::new() } }
    }

    /// A form that changes something. `label` is on its button.
    pub fn form(&self, action: &str, label: &str, fields: &Markup) -> Markup {
        html! {
            form method="post" action=(action) {
                input type="hidden" name=(FORM_FIELD) value=(self.form);
                (fields)
                button type="submit" { (label) }
            }
        }
    }
}

fn navigation(links: &[Link], path: &str) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for link in links {
                    li { a href=(link.path) aria-current=[(link.path == path).then_some("page")] { (link.name) } }
                }
            }
        }
    }
}

fn session(who: &Who) -> Markup {
    html! {
        div.session {
            @if who.known { (who.form("/logout", "Log out", &html! {})) }
            @else { a href="/login" { "Log in" } }
        }
    }
}

/// Text without characters that control the direction of writing; a peer may have chosen it.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect()
}

/// Instead of an empty list of results.
pub const NONE_YET: &str = "No results are kept yet; `goodput test HOST` makes one.";

/// A name of any length, such as that of a target. A long one is clipped, and pointing at it shows all of it.
pub fn name(text: &str) -> Markup {
    let shown = plain(text);
    let is_long = shown.chars().nth(LONG_NAME).is_some();
    html! { @if is_long { span.name title=(shown) { (shown) } } @else { (shown) } }
}

/// Characters that have room in three lines of a column.
const LONG_NAME: usize = 60;

/// A sentence of the program, or of a peer: [`plain`], with commands in backticks as code.
pub fn words(text: &str) -> Markup {
    goodput_charts::coded(&plain(text))
}

/// A time of a record, RFC 3339, UTC, to the second.
pub fn time(started: &str) -> Markup {
    let shown = plain(started.trim_end_matches('Z'));
    // Where there is little room, a line ends between the parts and not at a hyphen.
    let parts = shown.split('T');
    html! { time datetime=(started) { @for part in parts { span { (part) } " " } } }
}

/// What limited a result, in words, from the id of its rule. An id that this program does not know stays an id.
pub fn limit(rule: &str, program: &dyn Program) -> String {
    match program.cause(rule) {
        Some(cause) => cause.into(),
        None if rule == Verdict::NO_LIMIT => "No limit found".into(),
        None => plain(rule),
    }
}

/// A table under its caption, which scrolls by itself if it is too wide.
pub fn table(caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    table_of("wide", caption, columns, rows)
}

/// A table of results, whose cells say by themselves what they are: on a narrow screen, those of a row follow each other
/// without the headings, and nothing scrolls sideways.
pub fn list(caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    table_of("wide list", caption, columns, rows)
}

fn table_of(class: &str, caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div class=(class) tabindex="0" role="group" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}
