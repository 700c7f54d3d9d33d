//! Which connections to list.

use goodput_kernel::ForeignSocket;
use goodput_model::ConnectionActivity;
use ipnet::IpNet;

/// Which connections to list: those that fit everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedConnections {
    /// The network in which the peer is; of one address, all of its bits count.
    pub peer: Option<IpNet>,
    /// Port at either end.
    pub port: Option<u16>,
    /// Id or name of the process.
    pub process: Option<String>,
}

impl WantedConnections {
    pub(super) fn takes_socket(&self, socket: &ForeignSocket) -> bool {
        self.peer.is_none_or(|peer| peer.contains(&socket.peer.ip()))
    }

    pub(super) fn takes(&self, connection: &ConnectionActivity) -> bool {
        let Some(process) = &self.process else { return true };
        let program = connection.program.value();
        program.is_some_and(|own| own.name == cut(process) || own.pid.to_string() == *process)
    }
}

/// A name as the kernel keeps it (`TASK_COMM_LEN` less its NUL, include/linux/sched.h).
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(15)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_compared_as_far_as_the_kernel_keeps_it() {
        assert_eq!([cut("systemd-resolved"), cut("sshd")], ["systemd-resolve", "sshd"]);
    }
}
