//! Whether a thousand flows work.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, FAR_PEAK, NEAR_PEAK, RATE};
use crate::bench::watch::Watch;

pub static CONTEST: Contest = Contest {
    id: "thousand-flows",
    title: "TCP, 1000 flows",
    about: "That it ends well, and moves payload.",
    places: VETH,
    load: Load::tcp(128 << 10).flows(1000),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[with("goodput", &GOODPUT, COPY)],
    columns: &[&RATE, &CPU, &NEAR_PEAK, &FAR_PEAK],
    goals: &[Goal {
        what: "throughput, Gbit/s",
        of: "goodput",
        measure: &RATE,
        against: Against::Nothing,
        bound: Bound::Above(0.0),
    }],
};
