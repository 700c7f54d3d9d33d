//! Counts of a FreeBSD host: CPU time, interrupts, and the packets of an interface.

use goodput_model::Known;

use super::sysctl;
use super::text::{NotUnderstood, number, read};
use crate::command::Command;
use crate::counters::{Counters, CpuTime, Packets, known};
use crate::error::RemoteError;
use crate::shell::Shell;

/// Reads all counts. Counts that can't be read are missing; only a lost connection is an error.
pub(super) fn counters(
    shell: &mut dyn Shell,
    device: Option<&str>,
) -> Result<Counters, RemoteError> {
    let cpu = Command::new("sysctl", ["-n", "kern.cp_time"]);
    let mut counters = Counters::missing("no interface of this host was named");
    counters.cpu = known(read(shell, &cpu, |text| cpu_time(text.trim_end())))?;
    counters.cpu_ticks_per_s = known(ticks_per_s(shell))?;
    let Some(device) = device else { return Ok(counters) };
    let all = Command::new("vmstat", ["-a", "-i"]);
    counters.interrupts = match known(read(shell, &all, |text| interrupts(device, text)))? {
        Known::Value(Some(count)) => Known::Value(count),
        Known::Value(None) => Known::missing("the interface has no interrupt of its own"),
        Known::Missing(why) => Known::Missing(why),
    };
    let row = Command::new("netstat", ["-I", device, "-b", "-n", "-d"]);
    counters.packets = known(read(shell, &row, |text| packets(device, text)))?;
    Ok(counters)
}

/// The clock that counts `kern.cp_time` (`statclock`, sys/kern/kern_clock.c).
fn ticks_per_s(shell: &mut dyn Shell) -> Result<u64, RemoteError> {
    let rate = Command::new("sysctl", ["-n", "kern.clockrate"]);
    read(shell, &rate, |text| sysctl::clock(text.trim_end(), "stathz"))
}

/// Reads the value of `kern.cp_time`: user, nice, system, interrupt and idle (`CPUSTATES`, sys/resource.h).
pub(crate) fn cpu_time(value: &str) -> Result<CpuTime, NotUnderstood> {
    let bad = || NotUnderstood::new(value, "it is not five numbers");
    let ticks: Option<Vec<u64>> = value.split(' ').map(number).collect();
    match ticks.as_deref() {
        Some(ticks @ [_, _, _, _, idle]) => {
            let total = ticks.iter().try_fold(0u64, |sum, tick| sum.checked_add(*tick));
            Ok(CpuTime { total: total.ok_or_else(bad)?, idle: *idle })
        }
        _ => Err(bad()),
    }
}

/// Interrupts of `device` since the start, from the output of `vmstat -a -i` (vmstat(8)): rows of a name, a total and a
/// rate. One interrupt may serve several devices (`irq16: em0 uhci0`), and a device may have several
/// (`irq256: em0:rx 0`). `None` if no row names the device, as with virtual devices.
pub(crate) fn interrupts(device: &str, text: &str) -> Result<Option<u64>, NotUnderstood> {
    let bad = NotUnderstood::new;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    if head.split_whitespace().collect::<Vec<_>>() != ["interrupt", "total", "rate"] {
        return Err(bad(head, "it is not the head of the table"));
    }
    let (mut sum, mut ended) = (None::<u64>, false);
    for line in lines {
        let mut words = line.split_whitespace().rev();
        let rate = words.next().and_then(number);
        let total = words.next().and_then(number);
        let (Some(_), Some(total)) = (rate, total) else {
            return Err(bad(line, "it has no total and rate"));
        };
        let names: Vec<&str> = words.collect();
        ended = names == ["Total"];
        if names.iter().any(|name| belongs(name, device)) {
            let more = sum.unwrap_or(0).checked_add(total);
            sum = Some(more.ok_or_else(|| bad(line, "its total is too large"))?);
        }
    }
    if ended { Ok(sum) } else { Err(bad("", "the table does not end with the total")) }
}

/// `em0`, `em0:rx`, and `em0+` or `em0*`, which end a truncated list (`intr_event_update`,
/// sys/kern/kern_intr.c).
fn belongs(name: &str, device: &str) -> bool {
    name.strip_prefix(device)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '+', '*']))
}

/// Reads the row of the link from `netstat -I IF -b -n -d` (netstat(1)). The columns of the head differ between
/// versions (release 8 added `Idrop`); a row has no address if the link has none.
pub(crate) fn packets(device: &str, text: &str) -> Result<Packets, NotUnderstood> {
    let bad = NotUnderstood::new;
    let head = text.lines().next().unwrap_or_default();
    let columns: Vec<&str> = head.split_whitespace().collect();
    let ["Name", "Mtu", "Network", "Address", counts @ ..] = columns.as_slice() else {
        return Err(bad(head, "it is not the head of the table"));
    };
    let is_link = |line: &&str| {
        let mut words = line.split_whitespace();
        // A star marks an interface that is down.
        words.next().is_some_and(|name| name.trim_end_matches('*') == device)
            && words.nth(1).is_some_and(|network| network.starts_with("<Link#"))
    };
    let line =
        text.lines().skip(1).find(is_link).ok_or_else(|| bad("", "there is no row of the link"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let rest = words.len().checked_sub(counts.len()).filter(|rest| matches!(rest, 3 | 4));
    let values =
        &words[rest.ok_or_else(|| bad(line, "it does not fit the head of the table"))?..];
    let count = |column: &str| {
        let place = counts.iter().position(|name| *name == column)?;
        number(values[place])
    };
    let needed = |column: &str| count(column).ok_or_else(|| bad(line, "it lacks a count"));
    let optional = |column: &str| if counts.contains(&column) { needed(column) } else { Ok(0) };
    let dropped = [needed("Ierrs")?, optional("Idrop")?, needed("Oerrs")?, needed("Drop")?];
    Ok(Packets {
        received: needed("Ipkts")?,
        dropped: dropped.into_iter().fold(0, u64::saturating_add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_time_is_five_numbers_of_which_the_last_is_idle() {
        assert_eq!(cpu_time("100 0 50 50 800").unwrap(), CpuTime { total: 1000, idle: 800 });
        assert!(cpu_time("1 2 3 4").is_err() && cpu_time("1 2 3 4 -5").is_err());
    }

    const VMSTAT: &str = "interrupt                          total       rate
irq1: atkbd0                          10          0
irq16: em0 uhci0                 1000000        500
irq256: em0:rx 0                     400          2
irq257: em01                           7          0
cpu0: timer                      2000000       1000
Total                            3000417       1502
";

    #[test]
    fn all_interrupts_of_the_device_are_summed_and_no_other() {
        assert_eq!(interrupts("em0", VMSTAT).unwrap(), Some(1_000_400));
        assert_eq!(interrupts("em1", VMSTAT).unwrap(), None);
        let cut = VMSTAT.rsplit_once("Total").unwrap().0;
        assert!(interrupts("em0", cut).is_err(), "a table that was cut short");
        assert!(interrupts("em0", "irq16: em0 1 1\nTotal 1 1\n").is_err());
    }

    #[test]
    fn versions_with_other_columns_are_read_by_their_head() {
        let seven = "Name    Mtu Network       Address              Ipkts Ierrs     Ibytes    Opkts Oerrs     Obytes  Coll Drop
em0    1500 <Link#1>      00:0c:29:01:02:03     9000     7    1000000     8000     1    2000000     0    5
em0    1500 192.0.2.0/24  192.0.2.1             8999     -     999999     7999     -    1999999     -    -
";
        let got = packets("em0", seven).unwrap();
        assert_eq!(got, Packets { received: 9000, dropped: 13 });
        let fourteen = "Name  Mtu Network   Address    Ipkts Ierrs Idrop  Ibytes Opkts Oerrs Obytes  Coll  Drop
lo0* 16384 <Link#2>      12 1 2 100 12 0 100 0 0
";
        assert_eq!(packets("lo0", fourteen).unwrap().dropped, 3);
        assert!(packets("em0", fourteen).is_err());
        assert!(packets("em0", &seven.replace("    5\n", "    -\n")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}") {
            let _ = cpu_time(&text);
            let _ = interrupts("em0", &format!("interrupt total rate\n{text}"));
            let _ = packets("em0", &format!("Name Mtu Network Address Ipkts Ierrs Oerrs Drop\n{text}"));
        }
    }
}
