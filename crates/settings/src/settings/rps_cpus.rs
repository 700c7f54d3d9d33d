//! `rps.cpus`: the CPUs that received packets are spread over.

use crate::machine::PacketSteering;
use crate::permanent::udev_rule;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "rps.cpus",
    title: "CPUs that received packets are spread over",
    why: "A device with one queue, or no hardware queues, keeps one CPU busy with everything it receives.",
    scope: Scope::Device,
    values: "a hexadecimal mask of CPUs like f, or 0 for the one that was interrupted",
    example: "rps.cpus@eth0=0,1",
    unset: None,
    permanent: |setting, value| {
        let mask: String = value.chars().filter(char::is_ascii_hexdigit).collect();
        let write = "for q in /sys$env{DEVPATH}/queues/rx-*; do echo";
        let rest = "> $$q/rps_cpus; done";
        vec![udev_rule(setting, &format!("RUN+=\"/bin/sh -c '{write} {mask} {rest}'\""))]
    },
    backend: Backend::Machine(&PacketSteering),
};
