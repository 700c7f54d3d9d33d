//! Why packets can't be captured.

use std::io;
use std::path::PathBuf;

/// What went wrong before anything was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The kernel shows packets only to programs with a privilege (packet(7)).
    #[error(
        "capture packets on {device}: that takes CAP_NET_RAW; run goodput as root, or give it the capability: \
         setcap cap_net_raw+ep $(command -v goodput)"
    )]
    NotPermitted {
        /// The device.
        device: String,
    },
    /// The kernel refuses a step.
    #[error("capture packets on {device}: {step}: {cause}; or measure without a capture")]
    Refused {
        /// The device.
        device: String,
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        cause: io::Error,
    },
    /// The process that captures for a server does not.
    #[error("the capture helper of the server: {0}")]
    Helper(String),
    /// The file can't be written.
    #[error("can't write the capture to {}: {cause}; choose another file", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}
