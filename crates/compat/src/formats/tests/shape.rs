//! The documented shape of each format's output, for any record.

use serde_json::Value;

/// Reports what is wrong with the shape of `text`.
pub fn check(format: &str, text: &str) -> Result<(), String> {
    if text.contains("NaN") || text.contains("inf ") || !text.ends_with('\n') {
        return Err("a number that is none, or no end of line".into());
    }
    match format {
        "iperf3" => tree(text),
        "iperf3-stream" => text.lines().try_for_each(event),
        "iperf3-text" => match text.ends_with("\niperf Done.\n") {
            true => text.lines().try_for_each(iperf_line),
            false => Err("no end".into()),
        },
        "nuttcp" => text.lines().filter(|line| !line.is_empty()).try_for_each(nuttcp),
        "nuttcp-parse" => text.lines().try_for_each(parse),
        "nuttcp-verbose" | "nuttcp-verbose-parse" => text.lines().try_for_each(verbose),
        "iperf2-csv" => text.lines().try_for_each(columns),
        "iperf2-text" => text.lines().try_for_each(iperf_line),
        "ttcp" => text.lines().try_for_each(|line| {
            let known = line.starts_with("ttcp-t: ") || line.starts_with("ttcp-r: ");
            known.then_some(()).ok_or_else(|| format!("{line:?} has no prefix"))
        }),
        "pscheduler" => text.lines().try_for_each(super::pscheduler::check),
        other => Err(format!("write down the shape of {other}")),
    }
}

fn tree(text: &str) -> Result<(), String> {
    let tree: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let is = |key: &str, what: fn(&Value) -> bool| {
        what(&tree[key]).then_some(()).ok_or_else(|| format!("{key} is missing"))
    };
    is("start", Value::is_object)?;
    is("intervals", Value::is_array)?;
    is("end", Value::is_object)?;
    let end = &tree["end"];
    let counted = ["sum_sent", "sum_received"].iter().any(|sum| end[sum]["bytes"].is_u64());
    counted.then_some(()).ok_or_else(|| "nothing was counted".into())
}

fn event(line: &str) -> Result<(), String> {
    let event: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    match event["event"].as_str() {
        Some("start" | "interval" | "end") if event["data"].is_object() => Ok(()),
        _ => Err(format!("{line:?} is no event")),
    }
}

/// `[id]…`, a rule, a header line, or nothing.
fn iperf_line(line: &str) -> Result<(), String> {
    let known = ["[", "- -", "---", "Connecting", "Client", "Reverse", "Sending", "iperf"];
    let fine = line.is_empty() || known.iter().any(|begin| line.starts_with(begin));
    if line.contains(" sec  ") && !line.contains("its/sec") && !line.contains("ytes/sec") {
        return Err(format!("{line:?} has no rate"));
    }
    fine.then_some(()).ok_or_else(|| format!("{line:?} is no line of iperf"))
}

fn nuttcp(line: &str) -> Result<(), String> {
    let words: Vec<_> = line.split_whitespace().collect();
    let fixed = [(1, "MB"), (2, "/"), (4, "sec"), (5, "="), (7, "Mbps")];
    let numbers = [0, 3, 6];
    let right = fixed.iter().all(|(at, word)| words.get(*at) == Some(word))
        && numbers.iter().all(|at| words.get(*at).is_some_and(|w| w.parse::<f64>().is_ok()));
    right.then_some(()).ok_or_else(|| format!("{line:?} does not begin as a line of nuttcp"))
}

fn verbose(line: &str) -> Result<(), String> {
    let is_said = ["nuttcp-t: ", "nuttcp-r: "].iter().any(|begin| line.starts_with(begin));
    if is_said || line.is_empty() { Ok(()) } else { nuttcp(line).or_else(|_| parse(line)) }
}

fn parse(line: &str) -> Result<(), String> {
    let number = |pair: &str| pair.split_once('=').is_some_and(|(_, n)| n.parse::<f64>().is_ok());
    let right = line.split_whitespace().all(number);
    right.then_some(()).ok_or_else(|| format!("{line:?} has more than keys and numbers"))
}

fn columns(line: &str) -> Result<(), String> {
    match line.split(',').count() {
        9 | 14 => Ok(()),
        other => Err(format!("{line:?} has {other} columns")),
    }
}
