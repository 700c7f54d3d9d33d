//! The best methods again with a congestion control that does not pace: the cost of the host's own congestion control.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE, TIMERS};
use crate::bench::watch::Watch;

const OURS: &str = "goodput, splice and discard, reno";

const AS_THE_HOST: &str = "goodput, splice and discard";

pub static CONTEST: Contest = Contest {
    id: "unpaced-best-method",
    title: "TCP, one flow, best method against best method, reno",
    about: "The same with reno, which does not pace, in the programs that can choose the congestion control; \
            every user may choose reno. The last row has the host's own. If that is bbr, a timer of the kernel \
            sends each packet of at most 64 KiB, and a congestion window of a few packets waits for their \
            acknowledgement. The third column counts the timers of the whole machine. This is the kernel's own \
            cost, and no program can avoid it. No CPU need be busy during the wait: Gbit/s / 8 × CPU s/GB is how many \
            were. The last ratio shows how large this cost is.",
    places: VETH,
    load: Load::tcp(128 << 10),
    length: Length::Asked,
    watch: Watch::Timers,
    entries: &[
        with(
            OURS,
            &GOODPUT,
            &["--mover", "splice", "--receive-mover", "discard", "--congestion", "reno"],
        ),
        with("iperf3 --zerocopy, reno", &IPERF3, &["--zerocopy", "--congestion", "reno"]),
        newest(
            "iperf3 --zerocopy --skip-rx-copy, reno",
            &IPERF3,
            &["--zerocopy", "--skip-rx-copy", "--congestion", "reno"],
        ),
        with("iperf, reno", &IPERF, &["--linux-congestion", "reno"]),
        with(AS_THE_HOST, &GOODPUT, UNTOUCHED),
    ],
    columns: &[&RATE, &CPU, &TIMERS],
    goals: &[
        over_best_peer(OURS, Bound::AtLeast(1.5)),
        cpu_over_that_peer(OURS, Bound::AtMost(1.0)),
        Goal {
            what: "throughput / that with the host's congestion control",
            of: OURS,
            measure: &RATE,
            against: Against::Entry(AS_THE_HOST),
            bound: Bound::None,
        },
    ],
};
