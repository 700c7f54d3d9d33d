//! Parameters of modules (modprobe.d(5)), for kernel parameters that do not exist before their module is loaded: sysctl.d
//! is read too early for them.

use goodput_model::Permanent;

use super::entry;

/// Our file.
pub(crate) const MODULES: &str = "/etc/modprobe.d/90-goodput.conf";

/// Kernel parameters that are also parameters of a module (net/sunrpc/xprtsock.c).
const PARAMETERS: [(&str, &str, &str); 5] = [
    ("sunrpc.tcp_slot_table_entries", "sunrpc", "tcp_slot_table_entries"),
    ("sunrpc.tcp_max_slot_table_entries", "sunrpc", "tcp_max_slot_table_entries"),
    ("sunrpc.udp_slot_table_entries", "sunrpc", "udp_slot_table_entries"),
    ("sunrpc.min_resvport", "sunrpc", "min_resvport"),
    ("sunrpc.max_resvport", "sunrpc", "max_resvport"),
];

/// The option that a module takes for a kernel parameter, if there is one.
pub(crate) fn module_option(parameter: &str, value: &str) -> Option<Permanent> {
    let (_, module, option) = PARAMETERS.iter().find(|(name, ..)| *name == parameter)?;
    Some(entry(MODULES, format!("options {module} {option}={value}")))
}
