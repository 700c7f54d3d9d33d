//! What to tune, and for how long.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Change, Length, Plan, Purpose};
use goodput_remote::Hosts;

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;

/// Says why a change can't be kept, if it can't, of a measurement through a mount at this point, if any.
pub type Keepable = Arc<dyn Fn(&Change, Option<&str>) -> Result<(), EngineError> + Send + Sync>;

/// What to tune, and for how long.
#[derive(Clone)]
pub struct TuneRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The measurement before any change.
    pub plan: Plan,
    /// Length of each run of a comparison; if `None`, past slow start, as the first measurement shows it.
    pub run_length: Option<Length>,
    /// What to improve.
    pub purpose: Purpose,
    /// Smallest gain for which a change is kept, percent.
    pub min_gain_percent: f64,
    /// Stop after this time at the latest.
    pub max_time: Duration,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// What can be kept, if only that is to be tried: only all that is proven together is proven.
    pub keepable: Option<Keepable>,
    /// Whether to name what would be tried, without changing anything.
    pub dry_run: bool,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
    /// Which hosts are changed by SSH.
    pub hosts: Hosts,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}
