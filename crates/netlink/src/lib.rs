//! A blocking conversation with the kernel about network devices and sockets: netlink messages and
//! ethtool ioctls, in the network namespace of the calling thread.
//!
//! The crates that read the host (`kernel`), change it (`settings`) and build test networks (`lab`) share
//! this one. It decides nothing: they decide what to change, and put it back.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod addresses;
pub mod cake;
pub mod classes;
pub mod error;
pub mod ethtool;
mod ethtool_family;
mod ethtool_ioctl;
pub mod features;
pub mod filters;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod generic;
pub mod header_split;
pub mod htb_root;
mod lasting;
pub mod line_care;
pub mod link_attributes;
pub mod link_modes;
pub mod links;
pub mod namespace;
pub mod napis;
pub mod neighbours;
pub mod object_kind;
pub mod objects;
pub mod offloads;
pub mod packet_filter;
pub mod parameters;
pub mod pause_statistics;
mod psched;
pub mod qdiscs;
pub mod queue_statistics;
mod raw;
pub mod receive_hash;
pub mod receive_rules;
pub mod receive_table;
mod rounded_times;
pub mod route_metrics;
pub mod routes;
mod rtnetlink;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
pub mod size_table;
pub mod sock_diag;
mod socket;
pub mod standard_statistics;
pub mod statistics;
mod strings;
pub mod tbf;
mod two_rates;

pub use addresses::Address;
pub use cake::{Cake, CakeCells};
pub use classes::{Class, HtbClass, handle_text};
pub use error::NetlinkError;
pub use features::Features;
pub use filters::{Filters, Hook};
pub use htb_root::HtbRoot;
pub use lasting::Lasting;
pub use link_attributes::LinkAttributes;
pub use links::{Link, LinkStats};
pub use neighbours::{Neighbour, NeighbourState};
pub use object_kind::ObjectKind;
pub use objects::Object;
pub use offloads::{Offload, get_offload, set_offload};
pub use psched::RateSpec;
pub use qdiscs::{Qdisc, QdiscOptions, QdiscStats};
pub use raw::{attribute, attributes};
pub use rounded_times::kept_time;
pub use route_metrics::{ROUTE_FEATURE_ECN, RouteMetrics};
pub use routes::{Family, Route};
pub use rtnetlink::Netlink;
pub use size_table::{SizeCount, SizeTable};
pub use tbf::Tbf;
