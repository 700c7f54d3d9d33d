//! How a device is polled as a whole, in words: by presets, or by all its numbers
//! (Documentation/networking/napi.rst).

use std::fmt::Write;

/// Most polls that may find nothing before interrupts are enabled again.
pub const MOST_EMPTY_POLLS: u64 = i32::MAX as u64;

/// Longest time from one poll to the next, and longest suspension of interrupts, nanoseconds: an hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// The parts of a preset: the names that `mixed:` prints, and where each is.
pub const PARTS: [(&str, Place); 5] = [
    ("defer_hard_irqs", Place::Device("napi_defer_hard_irqs")),
    ("gro_flush_timeout", Place::Device("gro_flush_timeout")),
    ("threaded", Place::Device("threaded")),
    ("busy_poll", Place::Host("/proc/sys/net/core/busy_poll")),
    ("busy_read", Place::Host("/proc/sys/net/core/busy_read")),
];

/// Where a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An attribute of the device in /sys.
    Device(&'static str),
    /// A parameter of the whole host, which only its first network namespace has (`net_core_table`,
    /// net/core/sysctl_net_core.c).
    Host(&'static str),
}

/// The presets, each with its numbers in the order of [`PARTS`]: times without packets, nanoseconds, 1 for on,
/// microseconds and microseconds.
const PRESETS: [(&str, [u64; 5]); 4] = [
    ("interrupts", [0, 0, 0, 0, 0]),
    // A timer polls every 20 us while there is traffic.
    ("deferred", [2, 20_000, 0, 0, 0]),
    ("threaded", [0, 0, 1, 0, 0]),
    // The timer only matters when no program polls (Documentation/networking/af_xdp.rst), and
    // Documentation/admin-guide/sysctl/net.rst recommends 50 us.
    ("busy", [2, 200_000, 0, 50, 50]),
];

/// Prefix of a state that matches no preset.
const MIXED: &str = "mixed:";

/// How a device is polled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Polled {
    /// In the order of [`PARTS`]; `None`: this host does not have it.
    pub numbers: [Option<u64>; 5],
    /// The numbers of each NAPI instance, if one differs from the device.
    pub instances: Vec<Instance>,
}

/// Empty polls, flush time-out, suspension and threads of a NAPI instance. `None`: not reported, which is only possible
/// for the last, by a kernel before 6.17.
pub type Instance = [Option<u64>; 4];

impl Polled {
    /// The state that a preset makes.
    ///
    /// # Errors
    /// With what is wrong: there is no such preset, or a device that is polled like `now` lacks a part of it.
    pub fn preset(name: &str, now: &Self) -> Result<Self, String> {
        let Some((_, numbers)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let names = PRESETS.map(|(name, _)| name).join(", ");
            return Err(format!("it must be one of {names}"));
        };
        for ((part, at), (is, wanted)) in PARTS.iter().zip(now.numbers.iter().zip(numbers)) {
            if is.is_none() && *wanted != 0 {
                return Err(match at {
                    Place::Device(_) => format!("this kernel has no {part} for devices"),
                    Place::Host(_) => format!(
                        "net.core.{part} belongs to the whole host, and this network namespace can't set it"
                    ),
                });
            }
        }
        Ok(Self { numbers: numbers.map(Some), instances: Vec::new() })
    }

    /// The numbers of a NAPI instance.
    pub fn instance(&self, place: usize) -> Instance {
        let [defer, flush, threaded, ..] = self.numbers;
        let common = [defer.or(Some(0)), flush.or(Some(0)), Some(0), threaded.or(Some(0))];
        self.instances.get(place).copied().unwrap_or(common)
    }

    /// The matching preset, as far as this host has its parts; otherwise all numbers.
    pub fn text(&self) -> String {
        let is = |(_, numbers): &&(&str, [u64; 5])| {
            let mut pairs = self.numbers.iter().zip(numbers);
            self.instances.is_empty() && pairs.all(|(is, wanted)| is.unwrap_or(0) == *wanted)
        };
        if let Some((name, _)) = PRESETS.iter().find(is) {
            return (*name).into();
        }
        let mut text = MIXED.to_owned();
        for ((part, _), number) in PARTS.iter().zip(self.numbers) {
            if let Some(number) = number {
                let _ = write!(text, "{part}={number},");
            }
        }
        for instance in &self.instances {
            let numbers: Vec<_> = instance.iter().flatten().map(u64::to_string).collect();
            let _ = write!(text, "napi={},", numbers.join("/"));
        }
        text.trim_end_matches(',').into()
    }

    /// Parses the output of [`Polled::text`].
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((_, numbers)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Some(Self { numbers: numbers.map(Some), instances: Vec::new() });
        }
        let mut state = Self::default();
        for part in text.strip_prefix(MIXED)?.split(',') {
            let (name, value) = part.split_once('=')?;
            if name == "napi" {
                state.instances.push(parse_instance(value)?);
                continue;
            }
            let place = PARTS.iter().position(|(part, _)| *part == name)?;
            state.numbers[place] = Some(value.parse().ok()?);
        }
        Some(state)
    }
}

fn parse_instance(text: &str) -> Option<Instance> {
    let numbers: Vec<u64> =
        text.split('/').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [defer, flush, suspend] => Some([Some(defer), Some(flush), Some(suspend), None]),
        [defer, flush, suspend, threaded] => Some([defer, flush, suspend, threaded].map(Some)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_preset_says_all_its_numbers_and_is_read_again() {
        for numbers in [[Some(3), Some(0), Some(1), None, None], [Some(0); 5], [None; 5]] {
            let older = [Some(4), Some(5), Some(6), None];
            for instances in [Vec::new(), vec![[1, 2, 3, 1].map(Some), older]] {
                let state = Polled { numbers, instances };
                let again = Polled::parse(&state.text()).unwrap();
                assert_eq!(again.text(), state.text());
            }
        }
        let mixed =
            Polled { numbers: [Some(3), Some(9), Some(0), None, None], ..Polled::default() };
        assert_eq!(mixed.text(), "mixed:defer_hard_irqs=3,gro_flush_timeout=9,threaded=0");
        for text in [
            "",
            "mixed:",
            "mixed:x=1",
            "mixed:threaded=x",
            "mixed:napi=1/2",
            "mixed:napi=1/2/3/0/4",
        ] {
            assert!(Polled::parse(text).is_none(), "{text:?}");
        }
    }
}
