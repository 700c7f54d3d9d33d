//! Parameters of a FreeBSD kernel, through sysctl(8).

use std::collections::BTreeMap;

use super::text::NotUnderstood;

/// Why goodput does not change a parameter, if it does not.
///
/// It lists what may be changed, because writing a parameter of FreeBSD can do anything:
/// `debug.kdb.panic=1` stops the machine.
pub(crate) fn refusal(oid: &str) -> Option<&'static str> {
    const GROWS: &str = "the kernel only ever raises it, so that it could not be put back";
    const REFUSED: [(&str, &str); 11] = [
        ("kern.polling.enable", "it switches every interface at once; use polling@INTERFACE"),
        ("kern.ipc.nmbclusters", GROWS),
        ("kern.ipc.nmbjumbop", GROWS),
        ("kern.ipc.nmbjumbo9", GROWS),
        ("kern.ipc.nmbjumbo16", GROWS),
        ("kern.ipc.nmbufs", GROWS),
        ("kern.ipc.maxsockets", GROWS),
        ("net.fibs", GROWS),
        (
            "kern.hz",
            "it is fixed when the kernel starts: write kern.hz=\"1000\" into /boot/loader.conf and reboot",
        ),
        ("net.inet.tcp.drop", "writing it breaks a connection"),
        ("net.inet6.tcp6.drop", "writing it breaks a connection"),
    ];
    const MAY_CHANGE: [&str; 4] = ["net.", "kern.ipc.", "kern.polling.", "dev."];
    if let Some((_, why)) = REFUSED.iter().find(|(name, _)| *name == oid) {
        return Some(why);
    }
    if oid.ends_with(".stats") {
        return Some("writing it clears counters");
    }
    let known = MAY_CHANGE.iter().any(|prefix| oid.starts_with(prefix));
    (!known).then_some("it is none of the network (net, kern.ipc, kern.polling, dev)")
}

/// Whether it is only a parameter's name: sysctl would write anything after `=` or `:`.
pub(crate) fn is_name(oid: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'%');
    oid.bytes().all(plain)
        && oid.starts_with(|c: char| c.is_ascii_alphabetic())
        && !oid.ends_with('.')
        && !oid.contains("..")
}

/// The value in the output of `sysctl -e OID`, one line `OID=VALUE`. A node prints everything below it, an opaque
/// value nothing.
pub(crate) fn value(oid: &str, text: &str) -> Result<String, NotUnderstood> {
    let bad = NotUnderstood::new;
    let mut lines = text.lines();
    let line = lines.next().ok_or_else(|| bad("", "the parameter has no value to print"))?;
    let value = line.strip_prefix(oid).and_then(|rest| rest.strip_prefix('='));
    let value = value.ok_or_else(|| bad(line, "it is no parameter but a group of them"))?;
    match lines.next() {
        None => Ok(value.into()),
        Some(more) => Err(bad(more, "its value is more than one line")),
    }
}

/// The same for a count.
pub(crate) fn count(oid: &str, text: &str) -> Result<u64, NotUnderstood> {
    let value = value(oid, text)?;
    super::text::number(&value).ok_or_else(|| NotUnderstood::new(&value, "it is no count"))
}

/// The values in the output of `sysctl -e NODE`, each with its name. Values of several lines, which only strings
/// can have, are left out.
pub(crate) fn values_below(node: &str, text: &str) -> Result<Vec<(String, String)>, NotUnderstood> {
    let is_below = |name: &str| name.strip_prefix(node).is_some_and(|rest| rest.starts_with('.'));
    // Each with its value, `None` once it has a second line.
    let mut values: Vec<(String, Option<String>)> = Vec::new();
    for line in text.lines() {
        match (line.split_once('='), values.last_mut()) {
            (Some((name, value)), _) if is_below(name) && is_name(name) => {
                values.push((name.into(), Some(value.into())));
            }
            (_, Some((_, value))) => *value = None,
            _ => return Err(NotUnderstood::new(line, "it is no parameter of that group")),
        }
    }
    Ok(values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// The descriptions in the output of `sysctl -d NODE`: `NAME: TEXT`.
pub(crate) fn descriptions(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once(": ")).collect()
}

/// The frequency of the clock in the value of `kern.clockrate` (`S_clockinfo`, sbin/sysctl/sysctl.c), Hz.
pub(crate) fn hz(value: &str) -> Result<u64, NotUnderstood> {
    clock(value, "hz")
}

/// The frequency of one of the clocks in that value, Hz: `hz`, `profhz` or `stathz`.
pub(crate) fn clock(value: &str, name: &str) -> Result<u64, NotUnderstood> {
    let bad = || NotUnderstood::new(value, "it does not name each clock");
    let fields = value.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }"));
    let mut fields = fields.ok_or_else(bad)?.split(", ");
    let of_name = |field: &str| field.strip_prefix(name)?.strip_prefix(" = ").map(str::to_owned);
    let hz = fields.find_map(of_name).and_then(|hz| super::text::number(&hz));
    hz.filter(|hz| *hz > 0).ok_or_else(bad)
}

/// `wanted` as sysctl would print it after writing, with `now` as the example of its form.
///
/// # Errors
/// Why it is not valid for this parameter.
pub(crate) fn normalise(now: &str, wanted: &str) -> Result<String, String> {
    let wanted = wanted.trim();
    if wanted.is_empty() || wanted.chars().any(|c| c.is_control() || matches!(c, '"' | '\'')) {
        return Err("it is empty or has control characters or quotes".into());
    }
    let Some(count) = integers(now).map(|now| now.len()) else { return Ok(wanted.into()) };
    match integers(wanted) {
        // sysctl reads 010 as 8 (strtol with base 0), and prints numbers without leading zeros.
        Some(numbers) if numbers.len() == count => {
            Ok(numbers.iter().map(i128::to_string).collect::<Vec<_>>().join(" "))
        }
        _ => Err(format!("it needs {count} whole number(s); now it is {now:?}")),
    }
}

fn integers(text: &str) -> Option<Vec<i128>> {
    let numbers: Option<Vec<i128>> =
        text.split_whitespace().map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_parameter_is_read_by_its_whole_name() {
        assert_eq!(value("kern.hz", "kern.hz=1000\n").unwrap(), "1000");
        assert_eq!(
            value("net.inet.tcp.cc.algorithm", "net.inet.tcp.cc.algorithm=newreno\n").unwrap(),
            "newreno"
        );
        assert!(value("kern.polling", "kern.polling.burst=5\nkern.polling.phase=0\n").is_err());
        assert!(value("kern.hz", "").is_err() && value("kern.hz", "kern.hz=1\nmore\n").is_err());
    }

    #[test]
    fn a_group_is_read_line_by_line() {
        let text = "kern.polling.burst=5\nkern.polling.burst_max=150\n";
        let read = values_below("kern.polling", text).unwrap();
        assert_eq!(read[1], ("kern.polling.burst_max".into(), "150".into()));
        assert!(values_below("kern.polling", "kern.pollingx=1\n").is_err());
        let text = "net.a=1\nnet.table=\nCC  D PCB\nreno * 0\nnet.b=2\n";
        let read = values_below("net", text).unwrap();
        let names: Vec<_> = read.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["net.a", "net.b"], "a table of several lines is left out");
    }

    #[test]
    fn the_clock_is_read_from_its_structure() {
        let rates = "{ hz = 1000, tick = 1000, profhz = 8126, stathz = 127 }";
        assert_eq!((hz(rates).unwrap(), clock(rates, "stathz").unwrap()), (1000, 127));
        for text in ["1000", "{ tick = 1 }", "{ hz = 0, tick = 1 }", "{ hz = 1x }"] {
            assert!(hz(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_written_as_they_come_back() {
        assert_eq!(normalise("150", " 0200 ").unwrap(), "200");
        assert_eq!(normalise("1 2 3", "4  5 6").unwrap(), "4 5 6");
        assert_eq!(normalise("newreno", "cubic").unwrap(), "cubic");
        for (now, wanted) in
            [("150", "many"), ("1 2", "1"), ("150", ""), ("x", "a\nb"), ("x", "\"y\"")]
        {
            assert!(normalise(now, wanted).is_err(), "{now} {wanted}");
        }
    }

    #[test]
    fn what_could_not_be_put_back_or_is_not_of_the_network_is_refused() {
        for oid in [
            "debug.kdb.panic",
            "kern.securelevel",
            "kern.polling.enable",
            "kern.ipc.nmbclusters",
            "net.inet.tcp.stats",
            "net.inet.tcp.drop",
            "network",
        ] {
            assert!(refusal(oid).is_some(), "{oid}");
        }
        for oid in [
            "net.inet.tcp.recvbuf_max",
            "kern.ipc.maxsockbuf",
            "kern.polling.burst_max",
            "dev.em.0.rx_int_delay",
        ] {
            assert_eq!(refusal(oid), None, "{oid}");
        }
    }

    #[test]
    fn a_name_writes_nothing() {
        for name in ["net.inet.tcp.rfc1323", "dev.em.0.%desc"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "net=1", "net:1", "net inet", "net.", ".net", "net..inet", "1.2"] {
            assert!(!is_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,120}", now in ".{0,20}") {
            let _ = value("kern.hz", &text);
            let _ = values_below("kern", &text);
            let _ = hz(&text);
            if let Ok(value) = normalise(&now, &text) {
                prop_assert!(!value.contains('\n'));
            }
        }
    }
}
