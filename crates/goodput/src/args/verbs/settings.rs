//! What `goodput settings` takes.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_model::SettingRef;
use goodput_settings::allowlist::Pattern;

use super::Narrowed;

/// `goodput settings`
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// What can be changed
    List(Narrowed),
    /// Print the effective value
    Get {
        /// NAME[@SCOPE]
        setting: SettingRef,
    },
    /// Change a setting of this host until the next boot
    Set {
        /// NAME[@SCOPE]=VALUE
        #[arg(value_name = "SETTING=VALUE")]
        assignment: String,
    },
    /// Print the files that keep values after a reboot; writes none of them
    #[command(alias = "save")]
    ShowFiles {
        /// [far:]NAME[@SCOPE]=VALUE
        #[arg(required = true, value_name = "SETTING=VALUE")]
        assignments: Vec<String>,
    },
    /// Put back what an interrupted run left changed
    Undo {
        /// Also give up changes in network namespaces that no longer exist
        #[arg(long)]
        forget: bool,
        /// Also give up changes in network namespaces that may or may not exist
        ///
        /// Inside a container, or without root, goodput may not see processes that keep a network namespace alive.
        #[arg(long)]
        forget_unseen: bool,
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
        /// What `serve --allow-settings` names
        allowed: Vec<Pattern>,
    },
}
