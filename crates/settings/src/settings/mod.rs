//! The registry of settings: one file each, and the list of all. Settings that differ only in data are rows
//! of one file.

use crate::setting::Setting;

mod channels_combined;
mod channels_rx;
mod channels_tx;
mod chunk;
mod coalescing_adaptive_rx;
mod coalescing_rx_usecs;
mod coalescing_tx_usecs;
mod cpu_governor;
mod header_more;
mod irq_affinity;
mod link_mtu;
mod link_txqueuelen;
mod mount_direct;
mod mover;
mod mover_receive;
mod napi_defer_hard_irqs;
mod napi_gro_flush_timeout;
mod napi_irq_suspend_timeout;
mod napi_threaded;
mod nfs_nconnect;
mod nfs_rsize;
mod nfs_slots;
mod nfs_wsize;
mod offload;
mod offload_gso_max_segs;
mod offload_gso_max_size;
mod pause_rx;
mod pause_tx;
mod polling;
mod qdisc_fifo_limit;
mod qdisc_htb_burst;
mod qdisc_htb_bursts;
mod qdisc_htb_cburst;
mod qdisc_htb_ceil;
mod qdisc_htb_rate;
mod qdisc_kind;
mod qdisc_parameters;
mod qdisc_tbf_burst;
mod qdisc_tbf_limit;
mod qdisc_tbf_rate;
mod ring_hds_thresh;
mod ring_rx;
mod ring_tcp_data_split;
mod ring_tx;
mod route_advmss;
mod route_congctl;
mod route_ecn;
mod route_initcwnd;
mod route_initrwnd;
mod route_mtu;
mod route_quickack;
mod route_rto_min;
mod route_window;
mod rps_cpus;
mod rps_flow_cnt;
mod socket_busy_poll;
mod socket_congestion;
mod socket_cork;
mod socket_dscp;
mod socket_max_pacing;
mod socket_mss;
mod socket_nodelay;
mod socket_notsent_lowat;
mod socket_priority;
mod socket_quickack;
mod socket_rcvbuf;
mod socket_sndbuf;
mod storage;
mod sysctl;
mod xps_cpus;
mod xps_rxqs;

/// Every setting, in the order in which they are listed.
pub const ALL: &[&Setting] = &[
    &mount_direct::SETTING,
    &mover::SETTING,
    &mover_receive::SETTING,
    &chunk::SETTING,
    &socket_sndbuf::SETTING,
    &socket_rcvbuf::SETTING,
    &socket_congestion::SETTING,
    &socket_nodelay::SETTING,
    &socket_cork::SETTING,
    &header_more::SETTING,
    &storage::SETTING,
    &socket_max_pacing::SETTING,
    &socket_quickack::SETTING,
    &socket_notsent_lowat::SETTING,
    &socket_busy_poll::SETTING,
    &socket_mss::SETTING,
    &socket_dscp::SETTING,
    &socket_priority::SETTING,
    &nfs_nconnect::SETTING,
    &nfs_rsize::SETTING,
    &nfs_slots::SETTING,
    &nfs_wsize::SETTING,
    &route_window::SETTING,
    &route_initcwnd::SETTING,
    &route_initrwnd::SETTING,
    &route_mtu::SETTING,
    &route_advmss::SETTING,
    &route_congctl::SETTING,
    &route_quickack::SETTING,
    &route_rto_min::SETTING,
    &route_ecn::SETTING,
    &offload::TSO,
    &offload::GSO,
    &offload::GRO,
    &offload::LRO,
    &offload::TX_CHECKSUM,
    &offload::RX_CHECKSUM,
    &offload::SG,
    &offload::UDP_SEGMENTATION,
    &offload::UDP_GRO_FORWARDING,
    &offload::GRO_LIST,
    &offload::GRO_HARDWARE,
    &offload::TUNNEL_SEGMENTATION,
    &offload::RX_HASH,
    &offload::NTUPLE,
    &qdisc_kind::SETTING,
    &qdisc_fifo_limit::SETTING,
    &qdisc_parameters::FQ_CODEL_LIMIT,
    &qdisc_parameters::FQ_CODEL_TARGET,
    &qdisc_parameters::FQ_CODEL_INTERVAL,
    &qdisc_parameters::FQ_CODEL_QUANTUM,
    &qdisc_parameters::FQ_CODEL_ECN,
    &qdisc_parameters::FQ_CODEL_MEMORY_LIMIT,
    &qdisc_parameters::FQ_LIMIT,
    &qdisc_parameters::FQ_FLOW_LIMIT,
    &qdisc_parameters::FQ_QUANTUM,
    &qdisc_parameters::FQ_MAXRATE,
    &qdisc_parameters::FQ_INITIAL_QUANTUM,
    &qdisc_parameters::FQ_PACING,
    &qdisc_parameters::FQ_REFILL_DELAY,
    &qdisc_parameters::FQ_ORPHAN_MASK,
    &qdisc_parameters::FQ_LOW_RATE_THRESHOLD,
    &qdisc_parameters::FQ_CE_THRESHOLD,
    &qdisc_parameters::FQ_TIMER_SLACK,
    &qdisc_parameters::FQ_HORIZON,
    &qdisc_parameters::FQ_HORIZON_DROP,
    &qdisc_parameters::CAKE_BANDWIDTH,
    &qdisc_parameters::CAKE_RTT,
    &qdisc_parameters::CAKE_ACK_FILTER,
    &qdisc_parameters::CAKE_DIFFSERV,
    &qdisc_parameters::CAKE_FLOWMODE,
    &qdisc_parameters::CAKE_NAT,
    &qdisc_parameters::CAKE_WASH,
    &qdisc_parameters::CAKE_INGRESS,
    &qdisc_parameters::CAKE_SPLIT_GSO,
    &qdisc_parameters::CAKE_ATM,
    &qdisc_parameters::CAKE_OVERHEAD,
    &qdisc_parameters::CAKE_MPU,
    &qdisc_parameters::CAKE_MEMLIMIT,
    &qdisc_tbf_rate::SETTING,
    &qdisc_tbf_burst::SETTING,
    &qdisc_tbf_limit::SETTING,
    &qdisc_htb_rate::SETTING,
    &qdisc_htb_ceil::SETTING,
    &qdisc_htb_burst::SETTING,
    &qdisc_htb_cburst::SETTING,
    &qdisc_htb_bursts::SETTING,
    &link_mtu::SETTING,
    &link_txqueuelen::SETTING,
    &offload_gso_max_size::SETTING,
    &offload_gso_max_segs::SETTING,
    &ring_rx::SETTING,
    &ring_tx::SETTING,
    &ring_tcp_data_split::SETTING,
    &ring_hds_thresh::SETTING,
    &channels_combined::SETTING,
    &channels_rx::SETTING,
    &channels_tx::SETTING,
    &coalescing_rx_usecs::SETTING,
    &coalescing_tx_usecs::SETTING,
    &coalescing_adaptive_rx::SETTING,
    &pause_rx::SETTING,
    &pause_tx::SETTING,
    &napi_defer_hard_irqs::SETTING,
    &napi_gro_flush_timeout::SETTING,
    &napi_threaded::SETTING,
    &napi_irq_suspend_timeout::SETTING,
    &polling::SETTING,
    &rps_cpus::SETTING,
    &rps_flow_cnt::SETTING,
    &xps_cpus::SETTING,
    &xps_rxqs::SETTING,
    &irq_affinity::SETTING,
    &cpu_governor::SETTING,
    &sysctl::SETTING,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_folder_and_the_list_are_the_same() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/settings");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mod.rs")
            .collect();
        let tables = ["offload.rs", "qdisc_parameters.rs"].map(str::to_owned);
        let file = |s: &&Setting| format!("{}.rs", s.id.replace(['.', '-'], "_"));
        let listed: BTreeSet<String> = ALL.iter().map(file).collect();
        assert_eq!(ALL.len(), listed.len(), "an id is there twice");
        let own: BTreeSet<String> = files.difference(&tables.into()).cloned().collect();
        assert!(own.is_subset(&listed), "{:?}", own.difference(&listed));
        // A setting without its own file is a row.
        let rows = include_str!("offload.rs").to_owned() + include_str!("qdisc_parameters.rs");
        for setting in ALL.iter().filter(|setting| !own.contains(&file(setting))) {
            assert!(rows.contains(&format!("\"{}\"", setting.id)), "{}", setting.id);
        }
    }

    #[test]
    fn ids_are_lower_case_words_joined_by_dots() {
        for setting in ALL {
            let letter = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | '_');
            let word = |w: &str| !w.is_empty() && w.chars().all(letter);
            assert!(setting.id.split('.').all(word), "{}", setting.id);
        }
    }

    #[test]
    fn every_setting_says_why_and_shows_an_example() {
        for setting in ALL {
            assert!(setting.why.ends_with('.'), "{}", setting.id);
            let (name, values) = setting.example.split_once('=').unwrap();
            let name = name.split('@').next().unwrap();
            assert!(name == setting.id || name.starts_with("sysctl."), "{}", setting.id);
            assert!(values.contains(','), "{} shows one value only", setting.id);
        }
    }
}
