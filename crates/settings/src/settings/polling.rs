//! `polling`: polling against interrupts, as one choice.

use crate::machine::Polling;
use crate::permanent::{device, interface_option, sysctl, udev_rule};
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "polling",
    title: "polling or interrupts, as a whole",
    why: "interrupts: the device interrupts the CPU. deferred: a timer polls while there is traffic, which saves interrupts and adds up to 20 us. threaded: kernel threads poll, and the scheduler can move them. busy: waiting programs poll, which has the shortest delay but takes a whole CPU.",
    scope: Scope::Device,
    values: "interrupts, deferred, threaded or busy; mixed is read if it is none of them",
    example: "polling@eth2=interrupts,deferred",
    unset: None,
    permanent: |setting, value| {
        let (defer, flush, threaded, busy) = match value {
            "deferred" => (2, 20_000, 0, 0),
            "threaded" => (0, 0, 1, 0),
            "busy" => (2, 200_000, 0, 50),
            _ => (0, 0, 0, 0),
        };
        let rule = format!(
            "ATTR{{napi_defer_hard_irqs}}=\"{defer}\", ATTR{{gro_flush_timeout}}=\"{flush}\", ATTR{{threaded}}=\"{threaded}\""
        );
        let sign = if value == "interrupts" { "-" } else { "" };
        let mut files = vec![udev_rule(setting, &rule)];
        for name in ["sysctl.net.core.busy_poll", "sysctl.net.core.busy_read"] {
            let Ok(parameter) = name.parse() else { continue };
            let linux = sysctl(&parameter, &busy.to_string()).into_iter();
            files.extend(linux.filter(|file| !file.file.starts_with("FreeBSD")));
        }
        files.push(interface_option(&device(setting), &format!("{sign}polling")));
        files
    },
    backend: Backend::Machine(&Polling),
};
