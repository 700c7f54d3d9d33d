//! TCP, 64 flows at once.

use super::eight_flows::ENTRIES;
use super::*;
use crate::bench::contest::Length;
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "sixty-four-flows",
    title: "TCP, 64 flows, 128 KiB a write",
    about: "qperf and sockperf send one flow only.",
    places: VETH,
    load: Load::tcp(128 << 10).flows(64),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: ENTRIES,
    columns: &[&RATE, &CPU],
    goals: &[AHEAD, AS_CHEAP],
};
