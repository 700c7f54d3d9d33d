//! One measurement seen from the near end: agree, open the flows, watch, stop, gather.

pub mod agree;
mod await_reports;
mod both_ends;
mod capture;
pub mod captures;
pub mod client;
pub mod clocks;
pub mod far_start;
pub mod fetch;
pub mod flows;
pub mod host_before;
pub mod kept_samples;
pub mod latency;
pub mod live_intervals;
pub mod measure;
mod mounted;
pub(crate) mod near_run;
pub mod own_check;
mod probes;
pub mod progress;
pub mod reported_totals;
mod storage_notes;
