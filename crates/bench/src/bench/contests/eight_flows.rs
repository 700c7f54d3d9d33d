//! TCP, 8 flows at once.

use super::*;
use crate::bench::contest::Length;
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE};
use crate::bench::watch::Watch;

/// Who can send many flows.
pub(super) const ENTRIES: &[Entry] =
    &[with("goodput", &GOODPUT, COPY), peer(&IPERF3), peer(&IPERF), peer(&NUTTCP), peer(&NEPER)];

pub static CONTEST: Contest = Contest {
    id: "eight-flows",
    title: "TCP, 8 flows, 128 KiB a write",
    about: "qperf and sockperf send one flow only.",
    places: BOTH,
    load: Load::tcp(128 << 10).flows(8),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: ENTRIES,
    columns: &[&RATE, &CPU],
    goals: &[AHEAD, AS_CHEAP],
};
