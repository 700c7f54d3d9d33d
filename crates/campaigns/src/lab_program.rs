//! The program under judgement, and its lab.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use goodput_tools::shell::{capture, cargo, root, run};

/// The program.
pub struct LabProgram {
    path: PathBuf,
}

impl LabProgram {
    /// The program at this path; otherwise builds and takes the program of this tree.
    pub fn given_or_built(path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            return Ok(Self { path: path.into() });
        }
        run(&mut cargo(["build", "--quiet", "--package", "goodput"]))?;
        Ok(Self { path: root().join("target/debug/goodput") })
    }

    /// Every case of every scenario.
    pub fn every_case(&self) -> Result<Vec<String>> {
        self.list(|_| true)
    }

    /// One case of each scenario.
    pub fn default_cases(&self) -> Result<Vec<String>> {
        self.list(|case| case["default"] == true)
    }

    fn list(&self, wanted: impl Fn(&Value) -> bool) -> Result<Vec<String>> {
        let said = capture(self.command().args(["lab", "list", "--json"]))?;
        let cases: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let name = |case: &Value| case["case"].as_str().map(Into::into);
        let names: Option<_> = cases.iter().filter(|case| wanted(case)).map(name).collect();
        names.context("a case of `goodput lab list --json` has no name")
    }

    /// Runs one case and returns its JSON line. An unexpected verdict is in the
    /// line, and is not an error.
    pub fn run(&self, case: &str) -> Result<String> {
        self.lab(&["lab", "run", case, "--json"])
    }

    /// Compares a change in the hosts of a case for at most `max_time`, like `2m`, and returns the JSON line.
    pub fn compare(&self, case: &str, setting: &str, max_time: &str) -> Result<String> {
        self.lab(&["lab", "compare", case, setting, "--max-time", max_time, "--json"])
    }

    /// Tunes the path of a case and returns the JSON line.
    pub fn tune(&self, case: &str) -> Result<String> {
        self.lab(&["lab", "tune", case, "--json"])
    }

    /// What a command prints in the near host of a case, whatever its exit code.
    pub fn up(&self, case: &str, command: &[&str]) -> Result<String> {
        let mut lab = self.command();
        lab.args(["lab", "up", case, "--"]).args(command).stderr(Stdio::piped());
        let said = lab.output().with_context(|| format!("can't start {}", self.path.display()))?;
        let out = String::from_utf8_lossy(&said.stdout);
        match out.trim() {
            "" => bail!("{case}: {}", String::from_utf8_lossy(&said.stderr).trim()),
            out => Ok(out.into()),
        }
    }

    /// A case as a file with this case alone.
    pub fn show(&self, case: &str) -> Result<String> {
        capture(self.command().args(["lab", "show", case]))
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
