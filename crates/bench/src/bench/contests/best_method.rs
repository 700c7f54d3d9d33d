//! TCP, one flow, each program with its fastest method.

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::{CPU, RATE};
use crate::bench::watch::Watch;

const OURS: &str = "goodput, splice and discard";

const AUTO: &str = "goodput, auto";

pub static CONTEST: Contest = Contest {
    id: "best-method",
    title: "TCP, one flow, best method against best method",
    about: "goodput sends pages without a copy, and the receiver's kernel drops the payload. `auto` takes the \
            best way that the program knows for each end; the best single choice is goodput's entry with the \
            best median of all rounds. iperf3 sends with `--zerocopy`; from 3.19 on it drops with \
            `--skip-rx-copy`. netperf also sends with sendfile. The other programs have one way only. All use \
            the congestion control of the host; the next contest shows what that costs.",
    places: BOTH,
    load: Load::tcp(128 << 10),
    length: Length::Asked,
    watch: Watch::Nothing,
    entries: &[
        with(OURS, &GOODPUT, UNTOUCHED),
        with(AUTO, &GOODPUT, &["--mover", "auto"]),
        with(
            "goodput, splice and splice-null",
            &GOODPUT,
            &["--mover", "splice", "--receive-mover", "splice-null"],
        ),
        with(
            "goodput, zerocopy and discard",
            &GOODPUT,
            &["--mover", "zerocopy", "--receive-mover", "discard"],
        ),
        with(
            "goodput, uring and discard",
            &GOODPUT,
            &["--mover", "uring", "--receive-mover", "discard"],
        ),
        with(
            "goodput, copy and discard",
            &GOODPUT,
            &["--mover", "copy", "--receive-mover", "discard"],
        ),
        with("iperf3 --zerocopy", &IPERF3, &["--zerocopy"]),
        newest("iperf3 --zerocopy --skip-rx-copy", &IPERF3, &["--zerocopy", "--skip-rx-copy"]),
        peer(&IPERF),
        peer(&NUTTCP),
        peer(&NETPERF),
        with("netperf, sendfile", &NETPERF_SENDFILE, &[]),
        reference::COPY_IN_CACHE,
    ],
    columns: &[&RATE, &CPU],
    goals: &[
        over_best_peer(OURS, Bound::AtLeastAt { veth: 1.5, loopback: 2.0 }),
        cpu_over_that_peer(OURS, Bound::AtMost(1.0)),
        over_best_peer(AUTO, Bound::None),
        auto_over_best_choice(AUTO, &RATE),
        Goal {
            what: "% of what copying alone allows, in cache",
            of: OURS,
            measure: &RATE,
            against: Against::PercentOf(reference::COPY_IN_CACHE.name),
            bound: Bound::None,
        },
    ],
};
