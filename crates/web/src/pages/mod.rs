//! The pages: one file each, and the list.

mod changes;
mod check;
mod compare;
mod files;
mod history;
mod login;
mod matrix;
mod path;
mod result;
mod settings;
mod start;
mod tests;

use std::sync::Arc;

use hyper::Method;

use crate::answer::{Answer, Trouble};
use crate::asked::Asked;
use crate::gate::Gate;
use crate::layout::{Link, Who};
use crate::program::Program;
use crate::runs::Runs;

/// A page, or a change that a form of one asks for.
pub struct Page {
    /// `GET`, or `POST` for a change.
    pub method: &'static str,
    /// Where it is; `{}` is one part that may be anything.
    pub path: &'static str,
    /// What the navigation calls it, if it is there.
    pub in_navigation: Option<&'static str>,
    /// Whether everyone may see it, without a login.
    pub open: bool,
    /// Makes it.
    pub show: fn(&Visit) -> Result<Answer, Trouble>,
}

impl Page {
    /// A page to read.
    const fn of(path: &'static str, show: fn(&Visit) -> Result<Answer, Trouble>) -> Self {
        Self { method: "GET", path, in_navigation: None, open: false, show }
    }

    /// A change.
    const fn change(path: &'static str, show: fn(&Visit) -> Result<Answer, Trouble>) -> Self {
        Self { method: "POST", ..Self::of(path, show) }
    }
}

/// Every page, in the order of the navigation.
pub const ALL: &[Page] = &[
    history::PAGE,
    path::PAGE,
    matrix::PAGE,
    check::PAGE,
    settings::PAGE,
    changes::PAGE,
    changes::UNDO,
    changes::UNDO_AT_HOSTS,
    changes::TAKE_BACK,
    changes::REMOVE_SAVED,
    tests::PAGE,
    start::START,
    tests::RUN,
    tests::EVENTS,
    tests::STOP,
    result::PAGE,
    result::RECORD,
    compare::PAGE,
    login::PAGE,
    login::LOGIN,
    login::LOGOUT,
    files::STYLE,
    files::SCRIPT,
    files::ICON,
];

/// The links of the navigation.
pub fn links() -> Vec<Link> {
    let named = |page: &Page| page.in_navigation.map(|name| Link { name, path: page.path });
    ALL.iter().filter_map(named).collect()
}

/// A request for a page, and what the page is made of.
pub struct Visit<'a> {
    /// The request.
    pub asked: &'a Asked,
    /// What the program knows and does.
    pub program: &'a Arc<dyn Program>,
    /// The tests that pages have started or follow.
    pub runs: &'a Runs,
    /// Who may do what.
    pub gate: &'a Gate,
    /// Who asks.
    pub who: &'a Who,
    /// The part of the path that may be anything.
    pub part: Option<String>,
}

impl Visit<'_> {
    /// The number in the path.
    ///
    /// # Errors
    /// When it is none.
    pub fn number<T: std::str::FromStr>(&self) -> Result<T, Trouble> {
        let part = self.part.as_deref().unwrap_or_default();
        part.parse().map_err(|_| Trouble::unknown(format!("{part:?} is no number")))
    }
}

/// A page for a request.
pub struct Found {
    /// The page.
    pub page: &'static Page,
    /// What the path has in place of `{}`.
    pub part: Option<String>,
}

/// The page at `path`.
///
/// # Errors
/// When there is none, or it can't be used in this way.
pub fn find(method: &Method, path: &str) -> Result<Found, Trouble> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let fitting = ALL.iter().filter_map(|page| Some((page, part(page.path, path)?)));
    let mut fitting = fitting.peekable();
    if fitting.peek().is_none() {
        return Err(Trouble::unknown("there is no such page; the links above lead to all pages"));
    }
    let found = fitting.find(|(page, _)| page.method == method);
    let found = found.map(|(page, part)| Found { page, part });
    found.ok_or_else(|| Trouble {
        status: hyper::StatusCode::METHOD_NOT_ALLOWED,
        why: format!("nothing here takes {method}"),
    })
}

/// Whether a path fits a pattern, and its part in place of `{}`.
fn part(pattern: &str, path: &str) -> Option<Option<String>> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == path).then_some(None);
    };
    let part = path.strip_prefix(before)?.strip_suffix(after)?;
    let is_one = !part.is_empty() && !part.contains('/');
    is_one.then(|| Some(part.to_owned()))
}

#[cfg(test)]
mod for_all {
    use super::*;

    #[test]
    fn paths_are_unique_and_the_navigation_leads_to_plain_pages() {
        let mut seen = std::collections::BTreeSet::new();
        for page in ALL {
            assert!(seen.insert((page.method, page.path)), "{}", page.path);
            let leads = page.in_navigation.is_some();
            assert!(!leads || page.method == "GET" && !page.path.contains("{}"));
        }
    }

    #[test]
    fn a_path_fits_one_pattern_or_none() {
        assert_eq!(part("/results/{}", "/results/7"), Some(Some("7".into())));
        assert_eq!(part("/results/{}/json", "/results/7/json"), Some(Some("7".into())));
        for other in ["/results/", "/results/7/8", "/results", "/results/../etc", "/results/7/"] {
            assert_eq!(part("/results/{}", other), None, "{other}");
        }
        assert!(find(&Method::GET, "/../../etc/passwd").is_err());
        assert!(find(&Method::DELETE, "/").is_err_and(|why| why.status == 405));
        assert!(find(&Method::HEAD, "/").is_ok());
    }
}
