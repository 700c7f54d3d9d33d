//! A goodput server in the far namespace, and its resource use.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};

use crate::bench::net::{Net, address, wait_for};
use crate::bench::place::Place;

/// The server; it ends with this process.
pub struct Server(Child);

impl Server {
    /// Starts a server at a port.
    pub fn start(net: &Net, program: &Path, port: u16, more: &[&str]) -> Result<Self> {
        let mut server = net.at_server(Place::Veth, &program.to_string_lossy());
        server.args(["serve", "--bind", address(Place::Veth), "--port", &port.to_string()]);
        server.args(more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(server.spawn().context("can't start the server")?))
    }

    /// Its process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// A line of proc_pid_status(5), bytes.
    pub fn memory(&self, line: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let found = status.lines().find_map(|text| text.strip_prefix(line))?;
        Some(found.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.0.kill();
        let _ = wait_for("the server to end", || Ok(self.0.try_wait()?.is_some()));
    }
}
