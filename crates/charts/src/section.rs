//! A figure as a part of a page: its title, the picture on a wide sheet and on a phone, and the numbers below it.

use maud::{Markup, PreEscaped, html};

use crate::coded::coded;
use crate::figure::{Figure, Table};
use crate::palette;

/// A figure under its title, as a part of a page that has [`crate::style`].
pub fn section(anchor: &str, figure: &Figure) -> Markup {
    section_at(2, anchor, figure)
}

/// The same, with a heading of this level.
pub fn section_at(level: u8, anchor: &str, figure: &Figure) -> Markup {
    html! {
        section id=(anchor) {
            (heading(level, &figure.title))
            @match &figure.svg {
                Some(svg) => {
                    figure {
                        div.on-sheet { (in_page(&svg.wide)) }
                        div.on-phone { (in_page(&svg.narrow)) }
                        figcaption { (figure.alt) }
                    }
                    @if !figure.table.rows.is_empty() {
                        details { summary { "Numbers" } (numbers(figure)) }
                    }
                }
                None => { p { (coded(&figure.alt)) } @if !figure.table.rows.is_empty() { (numbers(figure)) } }
            }
        }
    }
}

/// A picture in a page that has its style.
fn in_page(svg: &str) -> Markup {
    PreEscaped(svg.replacen(palette::STYLE, "", 1))
}

fn numbers(figure: &Figure) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label=(figure.title) { (rows(&figure.title, &figure.table)) }
    }
}

/// A table with a caption.
pub fn rows(title: &str, Table { columns, rows }: &Table) -> Markup {
    html! {
        table {
            caption { (title) }
            thead { tr { @for column in columns { th scope="col" { (column) } } } }
            @for row in rows { tr { @for cell in row { td { (coded(cell)) } } } }
        }
    }
}

/// A heading of this level, from 1 to 3.
pub fn heading(level: u8, text: &str) -> Markup {
    match level {
        1 => html! { h1 { (text) } },
        2 => html! { h2 { (text) } },
        _ => html! { h3 { (text) } },
    }
}
