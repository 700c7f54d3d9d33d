//! A scenario: hosts, links, what is wrong, what to run and what to expect; one TOML file.

use std::str::FromStr;

use serde::Deserialize;

mod cases;
mod expect;
mod link;
mod load;
mod needs;
mod payload_path;
mod placeholder;
mod plan;

pub use crate::amount::Switch;
pub use expect::{Expect, GoodputRange};
pub use link::{DEFAULT_MTU, Link, LinkDirection, Links};
pub use payload_path::PayloadPath;
pub use plan::Run;

use crate::error::LabError;
use crate::faults::Planned;
use crate::host_name::HostName;
use load::File;
pub use load::source;

/// One scenario; if its file contains several, one case of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: kebab-case, and the name of its file.
    pub name: String,
    /// Name of the case: `name/strength/link`, without the parts that the file does not have.
    #[serde(skip)]
    pub case: String,
    /// What is wrong, in one sentence for a person.
    pub title: String,
    /// The links; without any, near and far are joined by a cable with nothing wrong.
    #[serde(default)]
    pub link: Links,
    /// What is wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Planned>,
    /// What to run.
    #[serde(default)]
    pub run: Run,
    /// The expected outcome.
    #[serde(default)]
    pub expect: Expect,
}

/// How the hosts are joined.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    /// Near and far by one link.
    Pair(Link),
    /// Near to router, router to far.
    Routed(Link, Link),
}

impl Scenario {
    /// How the hosts are joined.
    pub fn topology(&self) -> Topology {
        let Links { path, near_router, router_far } = self.link.clone();
        if near_router.is_none() && router_far.is_none() {
            return Topology::Pair(path.unwrap_or_default());
        }
        Topology::Routed(near_router.unwrap_or_default(), router_far.unwrap_or_default())
    }

    /// Reads the default case from the text of a file; `origin` names it in errors.
    pub fn parse(origin: &str, text: &str) -> Result<Self, LabError> {
        File::parse(origin, text)?.default_case()
    }

    /// A built-in scenario by its name, or a file by its path; the case may follow, as in `path-loss/mild/far` or
    /// `own.toml/mild`. If several cases match, the default one.
    pub fn load(name: &str) -> Result<Self, LabError> {
        File::find(name)?.default_case()
    }

    /// Like [`Scenario::load`], but all cases that match the name.
    pub fn cases(name: &str) -> Result<Vec<Self>, LabError> {
        File::find(name)?.all_cases()
    }

    fn from_table(case: &str, table: toml::Table) -> Result<Self, String> {
        let read: Result<Self, toml::de::Error> = table.try_into();
        Self::checked(read, case)
    }

    /// For a file with a single case; an error has its line.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::checked(toml::from_str(text), "")
    }

    fn checked(read: Result<Self, toml::de::Error>, case: &str) -> Result<Self, String> {
        let mut scenario = read.map_err(|error| error.to_string())?;
        scenario.case = if case.is_empty() { scenario.name.clone() } else { case.into() };
        scenario.problem().map_or(Ok(scenario), Err)
    }

    /// Problems that the types alone can't exclude.
    fn problem(&self) -> Option<String> {
        if !is_kebab_case(&self.name) {
            return Some(format!("name {:?} must be kebab-case, like path-loss", self.name));
        }
        let routed = self.link.near_router.is_some() || self.link.router_far.is_some();
        if routed && self.link.path.is_some() {
            return Some("link.path joins near and far, link.near-router and link.router-far put a router between them: choose one".into());
        }
        let on_router = |planned: &Planned| planned.fault.host() == HostName::Router;
        if !routed && self.faults.iter().any(on_router) {
            return Some("a fault is on the router, but there is none: name link.near-router and link.router-far".into());
        }
        self.link_problem().or_else(|| self.expect.problem())
    }

    fn link_problem(&self) -> Option<String> {
        let Links { path, near_router, router_far } = &self.link;
        let named = [("path", path), ("near-router", near_router), ("router-far", router_far)];
        named.into_iter().find_map(|(name, link)| {
            let problem = link.as_ref()?.problem()?;
            Some(format!("link.{name}: {problem}"))
        })
    }
}

/// Whether a text can be a part of a case's name.
fn is_kebab_case(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(plain)
}

impl FromStr for Scenario {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        Self::parse("(text)", text)
    }
}

#[cfg(test)]
mod tests;
