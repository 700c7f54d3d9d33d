//! The resources that this host can lend: memory, descriptors, threads, and the kernel's memory for
//! sockets.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::{PAGE_BYTES, Transport};
use rustix::process::{Resource, getrlimit};

/// The resources of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Memory of the host, or of this process's control group, bytes.
    pub memory_bytes: u64,
    /// File descriptors that this process may have.
    pub descriptors: u64,
    /// Threads that this process may have.
    pub threads: u64,
    /// What the kernel gives to sockets.
    pub buffers: Buffers,
}

/// Bytes that the kernel gives to sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Initial receive buffer of a TCP connection (the second number of `tcp_rmem`, tcp(7)).
    pub tcp_receive: u64,
    /// Initial send buffer of a TCP connection (that of `tcp_wmem`).
    pub tcp_send: u64,
    /// Receive buffer for datagrams (`rmem_default`, socket(7)).
    pub udp_receive: u64,
    /// Send buffer for datagrams (`wmem_default`).
    pub udp_send: u64,
    /// All TCP sockets together (the third number of `tcp_mem`).
    pub tcp_together: u64,
    /// All UDP sockets together (that of `udp_mem`, udp(7)).
    pub udp_together: u64,
}

impl Host {
    /// This host.
    pub fn here() -> Self {
        let system = rustix::system::sysinfo();
        let installed = system.totalram as u64 * u64::from(system.mem_unit);
        let memory_bytes = group_limits("memory.max").fold(installed, u64::min);
        let nofile = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let nproc = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX);
        let kernel = sysctl("kernel/threads-max", 0).unwrap_or(u64::MAX);
        let threads = group_limits("pids.max").fold(nproc.min(kernel), u64::min);
        let buffers = Buffers::here(memory_bytes);
        Self { memory_bytes, descriptors: nofile, threads, buffers }
    }

    /// The host with less memory, because the server keeps this much for itself, bytes.
    pub fn setting_aside(self, bytes: u64) -> Self {
        let memory_bytes = self.memory_bytes.saturating_sub(2 * bytes);
        Self { memory_bytes, ..self }
    }

    /// Memory that is lent to clients: half of the total, less what the kernel may give to all TCP sockets as their
    /// buffers grow. At least a quarter of the total, if the kernel's limit is too high to matter.
    pub fn lent_bytes(&self) -> u64 {
        let half = self.memory_bytes / 2;
        half - self.buffers.tcp_together.min(half / 2)
    }
}

impl Buffers {
    fn here(memory_bytes: u64) -> Self {
        let usual = Self::usual(memory_bytes);
        let pages = |name| sysctl(name, 2).map(|pages| pages.saturating_mul(PAGE_BYTES));
        Self {
            tcp_receive: sysctl("net/ipv4/tcp_rmem", 1).unwrap_or(usual.tcp_receive),
            tcp_send: sysctl("net/ipv4/tcp_wmem", 1).unwrap_or(usual.tcp_send),
            udp_receive: sysctl("net/core/rmem_default", 0).unwrap_or(usual.udp_receive),
            udp_send: sysctl("net/core/wmem_default", 0).unwrap_or(usual.udp_send),
            tcp_together: pages("net/ipv4/tcp_mem").unwrap_or(usual.tcp_together),
            udp_together: pages("net/ipv4/udp_mem").unwrap_or(usual.udp_together),
        }
    }

    /// What Linux chooses on a host with this much memory (`tcp_init_mem`, net/ipv4/tcp.c, and `udp_init`,
    /// net/ipv4/udp.c, of Linux 6.18), if a sysctl can't be read.
    pub fn usual(memory_bytes: u64) -> Self {
        Self {
            tcp_receive: 131_072,
            tcp_send: 16_384,
            udp_receive: 212_992,
            udp_send: 212_992,
            tcp_together: memory_bytes / 16 / 4 * 6,
            udp_together: memory_bytes / 8 / 4 * 6,
        }
    }

    /// What all sockets of a transport get together.
    pub fn together(&self, transport: Transport) -> u64 {
        match transport {
            Transport::Tcp => self.tcp_together,
            Transport::Udp => self.udp_together,
        }
    }
}

/// A number of a sysctl, counted from 0.
fn sysctl(name: &str, number: usize) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
    text.split_whitespace().nth(number)?.parse().ok()
}

/// The limits of this name in this process's control group and in the groups around it (cgroup-v2 of the kernel's
/// documentation). Empty if there are none, or the hierarchy is an older one.
fn group_limits(name: &str) -> impl Iterator<Item = u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).map(PathBuf::from);
    let around: Vec<PathBuf> =
        own.iter().flat_map(|own| own.ancestors()).map(|group| group.join(name)).collect();
    let read = |file: PathBuf| fs::read_to_string(Path::new("/sys/fs/cgroup").join(file)).ok();
    around.into_iter().filter_map(read).filter_map(|text| text.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_something_to_lend() {
        let host = Host::here();
        assert!(host.memory_bytes > 0 && host.descriptors > 0 && host.threads > 0, "{host:?}");
        assert!((host.memory_bytes / 4..=host.memory_bytes / 2).contains(&host.lent_bytes()));
        assert!(host.buffers.tcp_receive > 0 && host.buffers.tcp_together > PAGE_BYTES, "{host:?}");
    }
}
