//! Joins the parts: one test, one comparison, the serving side. An embedder calls this crate; its events
//! and records are the contract, not the terminal's text.
#![forbid(unsafe_code)]
// A library returns its output. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod clock;
mod control;
pub mod error;
pub mod events;
mod interrupt;
mod near;
mod result;
mod run;
pub mod serve;
mod threads;
mod verbs;

pub use control::credentials::{Credentials, OwnKey, Servers};
pub use control::target::{self, FileTarget, MountedTarget, Target};
pub use error::{EngineError, StorageError};
pub use events::{Event, Listener};
pub use goodput_mover::{run_promptly, share_heaps};
pub use interrupt::{Interrupt, Raise, interrupt};
pub use near::captures::{CaptureFiles, CapturedRun, Captures};
pub use near::client::{self, Client};
pub use near::fetch::Meeting;
pub use near::fetch::leftovers::{LeftUpload, undo_uploads};
pub use near::kept_samples;
pub use near::measure::{measure, measure_whole};
pub use result::conclude::{self, Conclusion, conclude, conclude_at_least};
pub use result::measurement::{self, Incomplete, Measurement};
pub use run::rate_limits::RateLimits;
pub use verbs::attach::{AttachRequest, AttachTo, attach};
pub use verbs::ceiling::{CeilingFacts, CeilingRequest, ceiling_facts};
pub use verbs::check::check;
pub use verbs::compare;
pub use verbs::file_parts::file_parts;
pub use verbs::find_rate::{FindRateRequest, find_rate};
pub use verbs::host_limits::HostLimitsWatch;
pub use verbs::probe;
pub use verbs::shaping::{
    ClassMark, ClassRequest, ProveRequest, RouterRequest, ShapingRequest, shaping,
};
pub use verbs::top::{ConnectionWatch, Summary, WantedConnections};
pub use verbs::tune::{Keepable, TuneRequest, reaches_ceiling, tune};
