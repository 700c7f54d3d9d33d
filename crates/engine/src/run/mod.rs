//! One end of a measurement while it runs: its flows, their movers, their CPUs, and what is read meanwhile.

pub mod affinity;
pub mod cadence;
pub mod end_run;
pub mod flow_events;
pub mod host_load;
pub mod length;
pub mod lost_flows;
pub mod movers;
pub mod observe;
pub mod prepared;
pub mod rate_limits;
pub mod sampler;
pub mod source_ports;
pub mod storage;
pub mod stuck_flows;
pub mod traffic;
pub mod unsent;
