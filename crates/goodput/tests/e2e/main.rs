//! The program as a user would run it, on loopback.

#[path = "../common/mod.rs"]
mod common;

mod activation;
mod attach;
mod bad_file_servers;
mod bad_input;
mod by_ssh;
mod ceiling;
mod check;
mod clocks;
mod file_logins;
mod file_server_limits;
mod file_servers;
mod files;
mod fleet;
mod fleet_agents;
mod freebsd;
mod help;
mod history;
mod hostile;
mod keys;
mod killed_by_ssh;
mod latency;
mod live;
mod measures;
mod mounted;
mod movers;
#[path = "../common/namespace.rs"]
mod namespace;
mod nfs_servers;
mod old_names;
mod packaging;
mod placement;
mod privilege;
mod progress;
mod prometheus;
mod records;
mod router;
mod server_limit;
mod serving;
mod settings;
mod silent_far;
mod sockets;
mod stalled;
mod terminal;
mod top;
mod transfer;
mod unread;
mod uploads;
mod watching;
mod web;
mod without_credential;
