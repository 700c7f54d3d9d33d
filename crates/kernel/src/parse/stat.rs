//! /proc/stat: CPU time by use, and context switches (proc_stat(5)).

use super::ParseError;

const FILE: &str = "/proc/stat";

/// Times of one CPU since boot, in clock ticks (USER_HZ).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Programs.
    pub user: u64,
    /// Programs of low priority.
    pub nice: u64,
    /// The kernel on behalf of programs.
    pub system: u64,
    /// Nothing.
    pub idle: u64,
    /// Nothing, while waiting for a disk.
    pub iowait: u64,
    /// Interrupts.
    pub irq: u64,
    /// Soft interrupts, network receive among them.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// All CPUs together.
    pub total: CpuTicks,
    /// Each online CPU with its number.
    pub cpus: Vec<(u32, CpuTicks)>,
    /// Context switches.
    pub context_switches: u64,
}

/// Reads the file. The line of context switches follows those of the CPUs; if it is missing, the file was cut short.
pub fn parse(text: &str) -> Result<Stat, ParseError> {
    let (mut total, mut cpus, mut context_switches) = (None, Vec::new(), None);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let key = words.next().unwrap_or_default();
        if key == "cpu" {
            total = Some(ticks(key, words)?);
        } else if let Some(number) = key.strip_prefix("cpu") {
            let number = number.parse().map_err(|_| ParseError::new(FILE, format!("{key:?}")))?;
            cpus.push((number, ticks(key, words)?));
        } else if key == "ctxt" {
            context_switches = words.next().and_then(|word| word.parse().ok());
        }
    }
    let total = total.ok_or_else(|| ParseError::new(FILE, "no line \"cpu\""))?;
    if cpus.is_empty() {
        return Err(ParseError::new(FILE, "no line \"cpu0\""));
    }
    let context_switches = context_switches.ok_or_else(|| ParseError::new(FILE, "no \"ctxt\""))?;
    Ok(Stat { total, cpus, context_switches })
}

fn ticks<'a>(key: &str, words: impl Iterator<Item = &'a str>) -> Result<CpuTicks, ParseError> {
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let Some([user, nice, system, idle, iowait, irq, softirq, steal]) = numbers.first_chunk()
    else {
        let why = format!("{key:?} has {} numbers, not at least 8", numbers.len());
        return Err(ParseError::new(FILE, why));
    };
    Ok(CpuTicks {
        user: *user,
        nice: *nice,
        system: *system,
        idle: *idle,
        iowait: *iowait,
        irq: *irq,
        softirq: *softirq,
        steal: *steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_distinguished_and_unknown_lines_passed_over() {
        let text =
            "cpu  3 0 2 9 1 0 5 7 0 0 99\ncpu3 1 0 2 3 4 5 6 7 8 9\nintr 5 5\nctxt 42\nnew 1\n";
        let stat = parse(text).unwrap();
        assert_eq!((stat.total.user, stat.total.softirq, stat.total.steal), (3, 5, 7));
        assert_eq!((stat.cpus[0].0, stat.cpus[0].1.irq), (3, 5));
        assert_eq!(stat.context_switches, 42);
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        for text in ["", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8\nctxt 1\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
