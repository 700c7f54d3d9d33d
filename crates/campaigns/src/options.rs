//! Options that campaigns share: which random cases, how many at a time, by which program, and where their results are
//! kept.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::kept::KeptFile;
use crate::lab_program::LabProgram;
use goodput_tools::shell::root;

/// Which cases are drawn, and how many run at the same time.
#[derive(Args)]
pub struct DrawOptions {
    /// Seed of what is random.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Number of the first random case.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub first: u64,
    /// Random paths of at most 100 Mbit/s that are measured at the same time; the others run alone, after them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
}

/// What runs, and what stays of it.
#[derive(Args)]
pub struct RunOptions {
    /// The program to judge instead of the one built here.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keep each result in this file, one JSON line each [default: target/NAME.jsonl]
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Go on with a campaign that was stopped: leave out what its file has, and add to it.
    #[arg(long)]
    go_on: bool,
}

impl RunOptions {
    /// The program to judge.
    pub fn program(&self) -> Result<LabProgram> {
        LabProgram::given_or_built(self.program.as_deref())
    }

    /// The file for the results of the campaign `name`, and what `read` finds in it if the campaign goes on.
    pub fn keep<T>(
        &self,
        name: &str,
        read: impl Fn(&Path) -> Result<Vec<T>>,
    ) -> Result<(KeptFile, Vec<T>)> {
        let usual = || Path::new("target").join(name).with_extension("jsonl");
        let path = root().join(self.keep.clone().unwrap_or_else(usual));
        if self.go_on {
            return Ok((KeptFile::go_on(&path)?, read(&path)?));
        }
        Ok((KeptFile::create(&path)?, Vec::new()))
    }
}
