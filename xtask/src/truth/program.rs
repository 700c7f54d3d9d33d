//! The program whose verdicts are judged, and its lab.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use xtask::shell::capture;

/// The program.
pub struct Program {
    path: PathBuf,
}

/// One case, as `goodput lab list --json` has it.
pub struct Listed {
    /// `scenario/strength/link`.
    pub name: String,
}

impl Program {
    /// The one at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Every case of every scenario.
    pub fn every_case(&self) -> Result<Vec<Listed>> {
        self.list(|_| true)
    }

    /// One case of each scenario.
    pub fn default_cases(&self) -> Result<Vec<Listed>> {
        self.list(|case| case["default"] == true)
    }

    fn list(&self, wanted: impl Fn(&Value) -> bool) -> Result<Vec<Listed>> {
        let said = capture(self.command().args(["lab", "list", "--json"]))?;
        let cases: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let name = |case: &Value| Some(Listed { name: case["case"].as_str()?.into() });
        let names: Option<_> = cases.iter().filter(|case| wanted(case)).map(name).collect();
        names.context("a case of `goodput lab list --json` has no name")
    }

    /// Runs one case; the JSON line that it says. That it did not come out as expected is in the
    /// line, and no error.
    pub fn run(&self, case: &Listed) -> Result<String> {
        self.lab(&["lab", "run", &case.name, "--json"])
    }

    /// Compares a change in the hosts of a case; the JSON line that it says.
    pub fn compare(&self, case: &Listed, setting: &str) -> Result<String> {
        self.lab(&["lab", "compare", &case.name, setting, "--json"])
    }

    fn lab(&self, arguments: &[&str]) -> Result<String> {
        let said = self.command().args(arguments).stderr(Stdio::piped()).output();
        let said = said.with_context(|| format!("can't start {}", self.path.display()))?;
        let out = String::from_utf8_lossy(&said.stdout);
        match out.lines().next() {
            Some(line) => Ok(line.into()),
            None => bail!(
                "`goodput {}` said nothing: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&said.stderr).trim()
            ),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.stdin(Stdio::null());
        command
    }
}
