//! One measurement seen from the near end: agree, open the flows, watch, stop, gather.

pub mod agree;
mod both_ends;
pub mod capture;
pub mod client;
pub mod clocks;
pub mod fetch;
pub mod flows;
mod gather;
pub mod host_before;
pub mod kept_samples;
pub mod latency;
pub mod live_intervals;
pub mod measure;
mod mounted;
mod near_run;
mod notes;
pub mod own_part;
pub mod patience;
mod probes;
pub mod progress;
pub mod reported_totals;
pub mod starts;
