//! How results are shown to a person.

mod again;
pub mod bar;
pub mod ceiling;
pub mod check;
pub mod compare;
mod datagrams;
mod delay;
pub mod difference;
mod effect;
mod fetches;
mod labelled;
pub mod latency;
pub mod live;
mod micros;
pub mod movers;
mod mptcp;
mod peer;
mod permanent;
mod placement;
pub mod rate_search;
mod storage;
pub mod style;
pub mod table;
pub mod test;
mod thinned;
pub mod transfers;
mod way;
