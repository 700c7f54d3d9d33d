//! Hosts reached by SSH, whose settings are changed, or where a server is started.

use std::path::PathBuf;

use clap::Args;
use goodput_remote::{Access, Address, Hosts};

use crate::args::values::path::path;

/// Which hosts are changed by SSH in the place of the two ends.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hosts by SSH")]
pub struct SshHostArgs {
    /// Change settings without far: on this host by SSH, like ssh://root@a
    ///
    /// goodput still measures from here, but changes the settings of another host on this side of the path, such as a
    /// router or the host of a virtual machine.
    #[arg(long, value_name = "ssh://[USER@]HOST[:PORT]", hide_short_help = true)]
    pub near: Option<Address>,
    /// Change settings with far: on this host by SSH, like ssh://root@b
    ///
    /// The host needs no goodput, only a login with a key and its own programs: ip, ethtool, tc and sysctl on Linux,
    /// ifconfig and sysctl on FreeBSD. If the connection breaks, a process on that host puts everything back.
    #[arg(long, value_name = "ssh://[USER@]HOST[:PORT]")]
    pub far: Option<Address>,
    #[command(flatten)]
    pub access: AccessArgs,
}

impl SshHostArgs {
    /// The hosts.
    pub fn hosts(&self) -> Hosts {
        Hosts::new(self.near.clone(), self.far.clone(), self.access.access())
    }
}

/// How hosts are reached by SSH.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hosts by SSH")]
pub struct AccessArgs {
    /// Configuration file of ssh for these hosts (ssh -F)
    ///
    /// ssh then ignores your own configuration and that of this host.
    #[arg(long, value_name = "FILE", env = "GOODPUT_SSH_CONFIG", value_parser = path("GOODPUT_SSH_CONFIG"), hide_short_help = true)]
    pub ssh_config: Option<PathBuf>,
}

impl AccessArgs {
    /// The same for the crate that logs in.
    pub fn access(&self) -> Access {
        // It is noted for `settings undo`, which may be called from elsewhere.
        let config = self.ssh_config.as_ref();
        let config = config.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
        Access { config }
    }
}
