//! Counts of a Linux host: CPU time, interrupts, and the packets of a device.

use goodput_model::Known;
use serde_json::Value;

use super::row::misread;
use crate::command::Command;
use crate::counters::{Counters, CpuTime, Packets, known};
use crate::error::RemoteError;
use crate::shell::Shell;

/// Prints the numbers of a device's interrupts: its own, or those of the bus device behind a virtio device (sysfs ABI,
/// `msi_irqs` and `irq`).
const NUMBERS: &str = "cd /sys/class/net/\"$1\"/device/ 2>/dev/null || exit 0; \
    ls msi_irqs 2>/dev/null || ls ../msi_irqs 2>/dev/null || cat irq 2>/dev/null || :";

/// Ticks of /proc/stat in a second: USER_HZ of the kernel (include/asm-generic/param.h), 100 wherever goodput runs.
const USER_HZ: u64 = 100;

/// Reads all counts. Counts that can't be read are missing; only a lost connection is an error.
pub(super) fn counters(
    shell: &mut dyn Shell,
    device: Option<&str>,
) -> Result<Counters, RemoteError> {
    let mut counters = Counters::missing("no device of this host was named");
    counters.cpu = known(cpu(shell))?;
    counters.cpu_ticks_per_s = Known::Value(USER_HZ);
    let Some(device) = device else { return Ok(counters) };
    counters.interrupts = match known(interrupts(shell, device))? {
        Known::Value(Some(count)) => Known::Value(count),
        Known::Value(None) => Known::missing("the device has no interrupts of its own"),
        Known::Missing(why) => Known::Missing(why),
    };
    counters.packets = known(packets(shell, device))?;
    Ok(counters)
}

fn cpu(shell: &mut dyn Shell) -> Result<CpuTime, RemoteError> {
    let command = Command::new("cat", ["/proc/stat"]);
    let printed = shell.output(&command)?;
    let line = printed.lines().next().unwrap_or_default();
    cpu_time(line).ok_or_else(|| misread(shell.host(), &command, line, "the time of all CPUs"))
}

/// Reads the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guests'
/// time is part of user and nice.
fn cpu_time(line: &str) -> Option<CpuTime> {
    let mut words = line.split_whitespace();
    if words.next() != Some("cpu") {
        return None;
    }
    let ticks: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (idle, iowait) = (*ticks.get(3)?, *ticks.get(4)?);
    Some(CpuTime { total: ticks.iter().take(8).sum(), idle: idle + iowait })
}

/// Prints the numbers of the device's interrupts.
fn numbers(device: &str) -> Command {
    Command::script(format!("list the interrupts of {device}"), NUMBERS, [device])
}

/// `None` if the device has none, as with virtual devices.
fn interrupts(shell: &mut dyn Shell, device: &str) -> Result<Option<u64>, RemoteError> {
    let numbers = shell.output(&numbers(device))?;
    let numbers: Vec<&str> = numbers.split_whitespace().filter(|number| *number != "0").collect();
    if numbers.is_empty() {
        return Ok(None);
    }
    let command = Command::new("cat", ["/proc/interrupts"]);
    let printed = shell.output(&command)?;
    let sum = sum(&printed, &numbers);
    sum.map(Some).ok_or_else(|| {
        let wanted = format!("a row for each of the interrupts {}", numbers.join(", "));
        misread(shell.host(), &command, printed.lines().next().unwrap_or_default(), &wanted)
    })
}

/// The rows of these interrupts in /proc/interrupts (proc_interrupts(5)): a number, a count for each CPU of the head,
/// and the owner. An interrupt that nobody has requested has no row.
fn sum(printed: &str, numbers: &[&str]) -> Option<u64> {
    let cpus = printed.lines().next()?.split_whitespace().count();
    let mut rows = 0;
    let mut total = 0_u64;
    for line in printed.lines().skip(1) {
        let (number, rest) = line.trim_start().split_once(':')?;
        if numbers.contains(&number) {
            rows += 1;
            for count in rest.split_whitespace().take(cpus) {
                total = total.checked_add(count.parse().ok()?)?;
            }
        }
    }
    (rows > 0).then_some(total)
}

fn packets(shell: &mut dyn Shell, device: &str) -> Result<Packets, RemoteError> {
    let command = Command::new("ip", ["-s", "-s", "-j", "link", "show", "dev", device]);
    let printed = shell.output(&command)?;
    let links: Option<Vec<Value>> = serde_json::from_str(&printed).ok();
    let counted = links.as_deref().and_then(|links| match links {
        [link] => counted(link),
        _ => None,
    });
    counted.ok_or_else(|| misread(shell.host(), &command, printed.trim(), "one device's counters"))
}

/// ip-link(8), `print_stats64` of ip/ipaddress.c.
fn counted(link: &Value) -> Option<Packets> {
    let [rx, tx] = [&link["stats64"]["rx"], &link["stats64"]["tx"]];
    let needed = [rx, tx].map(|way| Some(way["errors"].as_u64()? + way["dropped"].as_u64()?));
    // Packets for which the card had no room; ip prints them since version 4.
    let missed = rx["missed_errors"].as_u64().unwrap_or(0);
    let [rx_lost, tx_lost] = needed;
    Some(Packets { received: rx["packets"].as_u64()?, dropped: rx_lost? + tx_lost? + missed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use proptest::prelude::*;

    #[test]
    fn cpu_time_is_that_of_all_cpus_without_counting_guests_twice() {
        let time = cpu_time("cpu  100 1 50 800 40 2 3 4 90 9").unwrap();
        assert_eq!(time, CpuTime { total: 1000, idle: 840 });
        assert!(cpu_time("cpu0 1 2 3 4 5").is_none() && cpu_time("cpu 1 2 3").is_none());
        assert!(cpu_time("cpu 1 2 -3 4 5").is_none());
    }

    const INTERRUPTS: &str = "           CPU0       CPU1\n  1:         10          0   IO-APIC   1-edge  i8042\n \
        24:        100        200   PCI-MSI 1-edge  virtio0-input.0\n 25:          5          6   PCI-MSI 2-edge  virtio0-output.0\n\
        NMI:          1          2   Non-maskable interrupts\nERR:          0\n";

    #[test]
    fn the_interrupts_of_all_queues_on_all_cpus_are_summed() {
        let count = |numbers: &str| {
            let typed = super::numbers("eth0").typed();
            let mut shell = Scripted::default()
                .prints(&typed, numbers)
                .prints("cat /proc/interrupts", INTERRUPTS);
            interrupts(&mut shell, "eth0")
        };
        assert_eq!(count("24\n25\n26\n").unwrap(), Some(311));
        assert_eq!(count("").unwrap(), None);
        assert!(count("99\n").is_err(), "a device whose interrupts have no row is not one without");
    }

    #[test]
    fn what_is_damaged_or_dropped_either_way_counts() {
        let packets = |printed: &str| {
            let mut shell = Scripted::default().prints("ip -s -s -j link show dev eth0", printed);
            super::packets(&mut shell, "eth0")
        };
        let link = r#"[{"ifname":"eth0","stats64":{"rx":{"packets":9,"errors":1,"dropped":2,"missed_errors":4},
            "tx":{"packets":5,"errors":8,"dropped":16}}}]"#;
        assert_eq!(packets(link).unwrap(), Packets { received: 9, dropped: 31 });
        assert!(packets("[]").is_err() && packets("").is_err() && packets("[{}]").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}") {
            let _ = (cpu_time(&text), sum(&text, &["1"]));
            let _ = serde_json::from_str(&text).map(|link: Value| counted(&link));
        }
    }
}
