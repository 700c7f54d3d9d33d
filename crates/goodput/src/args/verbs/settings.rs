//! What `goodput settings` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use goodput_model::SettingRef;
use goodput_remote::Address;
use goodput_settings::allowlist::Pattern;

use super::Narrowed;
use crate::args::options::AccessArgs;

/// Which host it is about.
#[derive(Debug, Args)]
pub struct AtArgs {
    /// Work on another host by SSH, like ssh://root@b [default: this host]
    ///
    /// The host needs no goodput, only a login with a key and its own programs: ip, ethtool, tc and sysctl on Linux,
    /// ifconfig and sysctl on FreeBSD.
    #[arg(long, value_name = "ssh://[USER@]HOST[:PORT]")]
    pub on: Option<Address>,
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `goodput settings`
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// List what can be changed
    List {
        #[command(flatten)]
        narrowed: Narrowed,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Print the current value of a setting
    Get {
        /// NAME[@SCOPE], like offload.tso@eth0
        ///
        /// `goodput settings list` has the names.
        setting: SettingRef,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Print what a setting does and which values it takes
    Show {
        /// NAME[@SCOPE], like coalescing.rx_usecs@eth0
        ///
        /// With its @SCOPE, goodput also prints the current value. `goodput settings list` has the names.
        setting: SettingRef,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Change a setting of a host until the next boot
    Set {
        /// NAME[@SCOPE]=VALUE, like coalescing.rx_usecs@eth0=50us
        ///
        /// `goodput settings list` has the names, `goodput settings show NAME` the values.
        #[arg(value_name = "SETTING=VALUE")]
        assignment: String,
        /// Also keep the value after a reboot
        ///
        /// goodput writes a file of its own in sysctl.d, modprobe.d or systemd/network, or a unit that sets the value at
        /// boot. With --on, it writes the same files on that host, or on FreeBSD marked lines in rc.conf and
        /// sysctl.conf.
        #[arg(long)]
        save: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// List the files that goodput wrote to keep values after a reboot
    Saved {
        #[command(flatten)]
        at: AtArgs,
    },
    /// Print the files that would keep values after a reboot
    #[command(alias = "save")]
    ShowFiles {
        /// [far:]NAME[@SCOPE]=VALUE, like offload.tso@eth0=off
        ///
        /// far: means a setting of the far end.
        #[arg(required = true, value_name = "SETTING=VALUE")]
        assignments: Vec<String>,
    },
    /// Put back what an interrupted run left changed
    Undo {
        /// Also forget changes and uploads that can no longer be undone
        ///
        /// This concerns network namespaces that no longer exist, and uploads that can't be removed.
        #[arg(long)]
        forget: bool,
        /// Also forget changes that may still be in effect
        ///
        /// Use this if goodput can't find out whether a network namespace still exists: without root, or inside a
        /// container, it can overlook a process that keeps the namespace alive. Use it also if a host can't be reached by
        /// SSH, or refuses to put a value back; such a host stays changed.
        #[arg(long)]
        forget_unseen: bool,
        /// Also put back what the whole lines of a damaged journal say
        ///
        /// The journal is then set aside under another name. Without this option, what is known of it is shown, and
        /// nothing is changed.
        #[arg(long)]
        damaged: bool,
        /// Remove the files that keep settings after a reboot, nothing else
        ///
        /// Files that someone has edited stay.
        #[arg(long, conflicts_with_all = ["forget", "forget_unseen", "damaged"])]
        saved: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Wait for the parent's end and put back what it left (started by goodput itself)
    #[command(hide = true)]
    Guard {
        /// The journal to watch over
        journal: PathBuf,
    },
    /// Change settings for the clients of a server (started by goodput itself)
    #[command(hide = true)]
    Helper {
        /// Where its journals are
        state_dir: PathBuf,
        /// What `serve --allow-settings PATTERN` names
        allowed: Vec<Pattern>,
    },
}
