//! One end of a measurement while it runs: its flows, their movers, their CPUs, and what is read meanwhile.

pub mod affinity;
pub mod cap;
pub mod end_run;
pub mod left_behind;
pub mod length;
pub mod movers;
pub mod observe;
pub mod prepared;
pub mod sampler;
pub mod source_ports;
pub mod storage;
pub mod traffic;
pub mod watched;
