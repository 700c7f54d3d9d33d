//! FreeBSD's parameters of device polling: polling(4), and sys/kern/kern_poll.c for what the manual leaves out.

/// One MIB under `kern.polling`.
#[derive(Debug)]
pub(crate) struct Mib {
    /// The last part of its name.
    pub name: &'static str,
    /// What it is, for a person.
    pub meaning: &'static str,
    /// The values that the kernel accepts, if the MIB is settable.
    pub settable: Option<Limits>,
    /// Other MIBs that change along with it.
    pub drags: &'static [&'static str],
}

/// The values that a parameter accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The smallest value.
    pub least: u64,
    /// The largest value.
    pub most: Most,
}

/// The largest value of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Most {
    /// This number.
    Is(u64),
    /// The value of this other parameter.
    Of(&'static str),
    /// Clock ticks per second.
    Hz,
}

impl std::fmt::Display for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to ", self.least)?;
        match self.most {
            Most::Is(number) => write!(f, "{number}"),
            Most::Of(name) => f.write_str(name),
            Most::Hz => f.write_str("HZ"),
        }
    }
}

/// All of them. FreeBSD 9 removed `enable`; `idlepoll_sleeping` is in no manual.
pub(crate) static MIBS: [Mib; 16] = [
    settable(
        ["user_frac", "percent of the CPU kept for programs while there is work for them"],
        [0, 99],
    ),
    Mib {
        // The kernel lowers each_burst if it would be above burst_max.
        drags: &["each_burst"],
        // Until FreeBSD 9 the largest was 1000; such a kernel refuses more.
        ..settable(
            [
                "burst_max",
                "most packets per interface and clock tick: HZ × burst_max packets/s, unless idle_poll is 1",
            ],
            [10, 20_000],
        )
    },
    limited(
        ["each_burst", "packets per interface and turn, while all interfaces take turns"],
        Most::Of("burst_max"),
    ),
    settable(["idle_poll", "1: also poll while the CPU is idle"], [0, 1]),
    limited(
        ["reg_frac", "the card's status registers are read every reg_frac clock ticks"],
        Most::Hz,
    ),
    shown(
        "burst",
        "packets per interface and clock tick now; the kernel adjusts it up to burst_max",
    ),
    shown("handlers", "interfaces that are polled now"),
    shown("enable", "the old switch for all interfaces at once; use polling@INTERFACE"),
    shown("short_ticks", "clock ticks that came too soon"),
    shown("lost_polls", "clock ticks at which the last poll had not ended"),
    shown("pending_polls", "polls that are due"),
    shown("residual_burst", "packets of this clock tick's burst that are still to be taken"),
    shown("phase", "what the poll is doing now, 0: nothing"),
    shown("suspect", "polls that began while another had not ended"),
    shown("stalled", "times that 100 polls were due, so that they were dropped"),
    shown("idlepoll_sleeping", "1: nothing is polled while the CPU is idle"),
];

/// The parent of all of them.
pub(crate) const NODE: &str = "kern.polling";

/// The MIB with this full name, such as `kern.polling.burst_max`.
pub(crate) fn find(oid: &str) -> Option<&'static Mib> {
    let name = oid.strip_prefix(NODE)?.strip_prefix('.')?;
    MIBS.iter().find(|mib| mib.name == name)
}

const fn shown(name: &'static str, meaning: &'static str) -> Mib {
    Mib { name, meaning, settable: None, drags: &[] }
}

const fn settable([name, meaning]: [&'static str; 2], [least, most]: [u64; 2]) -> Mib {
    Mib { settable: Some(Limits { least, most: Most::Is(most) }), ..shown(name, meaning) }
}

const fn limited([name, meaning]: [&'static str; 2], most: Most) -> Mib {
    Mib { settable: Some(Limits { least: 1, most }), ..shown(name, meaning) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_full_name_once() {
        for mib in &MIBS {
            assert!(std::ptr::eq(find(&format!("kern.polling.{}", mib.name)).unwrap(), mib));
            for dragged in mib.drags {
                assert!(find(&format!("kern.polling.{dragged}")).unwrap().settable.is_some());
            }
        }
        assert!(find("kern.polling").is_none() && find("kern.pollingburst").is_none());
        assert!(find("kern.polling.").is_none());
    }
}
