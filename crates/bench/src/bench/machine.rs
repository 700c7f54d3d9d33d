//! The machine and the programs of a bench.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::peers::GivenPeer;
use super::programs::{ALL, GOODPUT};
use super::version::{first_line, version};
use goodput_tools::shell::{capture, command};

/// The facts at the head of the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Day of the first run, UTC.
    pub date: String,
    /// Model of the processor.
    pub processor: String,
    /// How many CPUs we may use.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Peers that were given.
    #[serde(default)]
    pub peers: Vec<GivenPeer>,
    /// Congestion control of new sockets.
    pub congestion_control: String,
    /// Load of 1, 5 and 15 minutes before the first run.
    pub load: String,
    /// First line of each program's and the compiler's version output.
    pub versions: Vec<String>,
    /// Which build of goodput was measured.
    pub build: String,
    /// Seconds of a run.
    pub seconds: u32,
}

/// What the bench was asked for.
pub struct Asked<'a> {
    /// Seconds of a run.
    pub seconds: u32,
    /// Peers given.
    pub peers: &'a [GivenPeer],
    /// The congestion control of the paths, if it is not the host's.
    pub congestion: Option<&'a str>,
}

impl Machine {
    /// Reads them all.
    pub fn read(goodput: &Path, build: &str, asked: &Asked<'_>) -> Result<Self> {
        let cpu = fs::read_to_string("/proc/cpuinfo")?;
        let model =
            cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        let load = fs::read_to_string("/proc/loadavg")?;
        let mut versions: Vec<String> = ALL
            .iter()
            .filter(|program| program.in_debian)
            .map(|program| {
                let ours = program.name == GOODPUT.name;
                let file = if ours { goodput.as_os_str() } else { program.name.as_ref() };
                version(program.name, file.as_ref(), program.version)
            })
            .collect();
        let own =
            || read("/proc/sys/net/ipv4/tcp_congestion_control").map(|name| first_line(&name));
        versions.extend(asked.peers.iter().map(|peer| {
            let program = peer.program.as_str();
            format!("{program} {} (given by --peer)", peer.version)
        }));
        versions.push(first_line(&capture(command("rustc").arg("--version"))?));
        Ok(Self {
            date: first_line(&capture(command("date").args(["--utc", "+%Y-%m-%d"]))?),
            processor: model.unwrap_or("unknown processor").into(),
            cpus: std::thread::available_parallelism()?.get(),
            kernel: first_line(&read("/proc/sys/kernel/osrelease")?),
            peers: asked.peers.to_vec(),
            congestion_control: asked.congestion.map_or_else(own, |name| Ok(name.to_owned()))?,
            load: load.split(' ').take(3).collect::<Vec<_>>().join(", "),
            versions,
            build: build.into(),
            seconds: asked.seconds,
        })
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {path}"))
}
