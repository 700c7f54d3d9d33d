//! The test binaries of the workspace, as the step `build` left them. Cargo builds a target that is asked for alone with
//! other features of its dependencies, and so once more.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use goodput_tools::shell::{capture, cargo};

/// Every test binary with the source of its root module; builds missing binaries.
pub fn all() -> Result<Vec<(PathBuf, String)>> {
    let mut build = cargo(["test", "--workspace", "--no-run", "--message-format=json", "--quiet"]);
    let said = capture(&mut build)?;
    let messages = said.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let binary = |message: &Value| {
        let source = message["target"]["src_path"].as_str()?;
        Some((source.into(), message["executable"].as_str()?.into()))
    };
    Ok(messages
        .iter()
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(binary)
        .collect())
}
