//! Kernel settings that affect goodput (/proc/sys). Tabs between values are recorded as spaces.

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;

const DIRECTORY: &str = "proc/sys";

const NAMES: &[&str] = &[
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_rto_min_us",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

pub(super) struct Sysctl;

impl Source for Sysctl {
    fn id(&self) -> &'static str {
        "sysctl"
    }

    fn summary(&self) -> &'static str {
        "kernel settings of TCP, sockets and packet processing"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(DIRECTORY)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        for name in NAMES {
            let fact = format!("sysctl.{name}");
            let file = format!("{DIRECTORY}/{}", name.replace('.', "/"));
            match context.root.read(&file) {
                Ok(text) => {
                    let words: Vec<&str> = text.split_ascii_whitespace().collect();
                    snapshot.put(fact, words.join(" "));
                }
                Err(why) => snapshot.lacks(fact, reason(context, &file, &why)),
            }
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

/// Some settings exist in the first network namespace only.
fn reason(context: &Context, file: &str, why: &Missing) -> String {
    match context.root.read_if_there(file) {
        Ok(None) => "not in this kernel, or not visible in this network namespace".into(),
        _ => why.to_string(),
    }
}
