//! Every rule, one file each. To add one: write its file, add its line to [`ALL`].

mod ack_path;
mod cached_metrics;
mod calls_in_flight;
mod congestion_control;
mod connection_breaks;
mod cpu_contention;
mod cpu_frequency;
mod cpu_placement;
mod cpu_quota;
mod cpu_steal;
mod credit_bucket;
mod duplex_mismatch;
mod ecn_marking;
mod fragmentation;
mod frame_errors;
mod gro_off;
mod host_interconnect;
mod interrupt_coalescing;
mod legacy_bus;
mod line_rate;
mod link_flap;
mod link_speed;
mod local_drop;
mod middlebox;
mod mtu_mismatch;
mod napi_budget;
mod notsent_lowat;
mod offload_off;
mod own_firewall;
mod pacing_cap;
mod path_loss;
mod path_rate;
mod pause_frames;
mod pcie_link;
mod pmtu_black_hole;
mod policer;
mod queue_imbalance;
mod queue_too_long;
pub(crate) mod queue_too_short;
mod receive_prune;
mod receive_window;
mod receiver_application;
mod receiver_cpu;
mod reordering;
mod ring_overrun;
mod route_window;
mod rpc_queue;
mod rto_bound;
mod sack_off;
mod send_buffer;
mod sender_application;
mod sender_cpu;
mod server_limit;
mod server_or_path;
mod server_stalls;
mod server_storage;
pub(crate) mod shaper_burst;
mod shaper_rate;
mod small_mss;
mod small_writes;
mod softirq_saturation;
mod softnet_backlog;
mod startup;
mod storage_read;
mod storage_write;
mod tcp_memory;
mod tso_oversize;
mod udp_receive_buffer;
mod waiting_for_answers;
mod window_scaling_off;
mod wrong_class;

use crate::rule::Rule;

/// Every rule.
pub const ALL: &[&Rule] = &[
    &line_rate::RULE,
    &small_mss::RULE,
    &link_speed::RULE,
    &pcie_link::RULE,
    &legacy_bus::RULE,
    &shaper_rate::RULE,
    &cpu_quota::RULE,
    &wrong_class::RULE,
    &shaper_burst::RULE,
    &local_drop::RULE,
    &own_firewall::RULE,
    &queue_too_short::RULE,
    &duplex_mismatch::RULE,
    &frame_errors::RULE,
    &pause_frames::RULE,
    &ring_overrun::RULE,
    &host_interconnect::RULE,
    &napi_budget::RULE,
    &softnet_backlog::RULE,
    &small_writes::RULE,
    &pacing_cap::RULE,
    &server_limit::RULE,
    &startup::RULE,
    &storage_read::RULE,
    &storage_write::RULE,
    &waiting_for_answers::RULE,
    &server_stalls::RULE,
    &calls_in_flight::RULE,
    &connection_breaks::RULE,
    &rpc_queue::RULE,
    &sender_application::RULE,
    &receiver_application::RULE,
    &receive_window::RULE,
    &window_scaling_off::RULE,
    &route_window::RULE,
    &sack_off::RULE,
    &middlebox::RULE,
    &cached_metrics::RULE,
    &send_buffer::RULE,
    &notsent_lowat::RULE,
    &sender_cpu::RULE,
    &cpu_contention::RULE,
    &cpu_frequency::RULE,
    &queue_imbalance::RULE,
    &interrupt_coalescing::RULE,
    &softirq_saturation::RULE,
    &cpu_placement::RULE,
    &receiver_cpu::RULE,
    &congestion_control::RULE,
    &pmtu_black_hole::RULE,
    &mtu_mismatch::RULE,
    &fragmentation::RULE,
    &link_flap::RULE,
    &rto_bound::RULE,
    &reordering::RULE,
    &ecn_marking::RULE,
    &path_loss::RULE,
    &path_rate::RULE,
    &credit_bucket::RULE,
    &queue_too_long::RULE,
    &policer::RULE,
    &tso_oversize::RULE,
    &offload_off::RULE,
    &gro_off::RULE,
    &udp_receive_buffer::RULE,
    &receive_prune::RULE,
    &cpu_steal::RULE,
    &tcp_memory::RULE,
    &ack_path::RULE,
    &server_or_path::RULE,
    &server_storage::RULE,
];

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod conformance;
