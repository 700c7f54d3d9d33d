//! The queueing discipline of a device and its classes, as tc(8) prints them. Facts have the names of those that
//! goodput reads on its own host.

use std::net::IpAddr;

use goodput_model::{Fact, Snapshot};
use serde_json::Value;

use super::link;
use super::row::misread;
use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;

/// Reads the discipline of the device through which packets leave `towards` an address.
pub(super) fn shaper(shell: &mut dyn Shell, towards: IpAddr) -> Result<Snapshot, RemoteError> {
    let device = device(shell, towards)?;
    let command = Command::new("tc", ["-s", "-d", "qdisc", "show", "dev", &device]);
    let printed = shell.output(&command)?;
    let blocks = blocks(&printed);
    let root = blocks.iter().find(|block| block.words.get(3) == Some(&"root"));
    let root = root.ok_or_else(|| {
        misread(shell.host(), &command, first_line(&printed), "a line like \"qdisc htb 1: root\"")
    })?;
    let mut facts = Snapshot::default();
    facts.put("link.device", device.as_str());
    let kind = root.words[1];
    facts.put("qdisc.kind", kind);
    let wrong = |line: &str, what: &str| misread(shell.host(), &command, line, what);
    counters(&mut facts, "qdisc", root).ok_or_else(|| wrong(root.line, "its counters"))?;
    sizes(&mut facts, root).ok_or_else(|| wrong(root.line, "a table of sizes"))?;
    match kind {
        "tbf" => {
            bucket(&mut facts, root).ok_or_else(|| wrong(root.line, "a rate and a burst"))?;
            match inside_bucket(&blocks, root) {
                None => limit(shell, &device, Queue::Own, &mut facts)?,
                Some("bfifo") => limit(shell, &device, Queue::Inside, &mut facts)?,
                Some(kind) => facts.lacks(
                    "qdisc.limit_bytes",
                    format!("{kind} is its queue, and its own limit is unused"),
                ),
            }
        }
        "cake" => cake(&mut facts, root).ok_or_else(|| wrong(root.line, "a bandwidth"))?,
        "htb" => {
            let direct = root.number("direct_packets_stat");
            let direct = direct.ok_or_else(|| wrong(root.line, "a number of direct packets"))?;
            facts.put("class.direct_packets", direct);
            classes(shell, &device, &mut facts)?;
        }
        _ => {}
    }
    Ok(facts)
}

/// The kind of the discipline that someone put into a token bucket, in place of the queue that the bucket makes itself:
/// `qdisc fq_codel 10: parent 8001:1 …`.
fn inside_bucket<'a>(blocks: &[Block<'a>], root: &Block<'a>) -> Option<&'a str> {
    let is_inside = |block: &&Block| {
        block.words.get(3) == Some(&"parent")
            && block.words.get(4).zip(root.words.get(2)).is_some_and(|(parent, handle)| {
                parent.strip_prefix(handle).is_some_and(|minor| !minor.is_empty())
            })
    };
    blocks.iter().find(is_inside).and_then(|block| block.words.get(1).copied())
}

/// The device of the route to an address (ip-route(8)).
pub(super) fn device(shell: &mut dyn Shell, towards: IpAddr) -> Result<String, RemoteError> {
    let command = Command::new("ip", ["route", "get", &towards.to_string()]);
    let printed = shell.output(&command)?;
    let mut words = printed.split_whitespace().skip_while(|word| *word != "dev").skip(1);
    let device = words.next().map(str::to_owned);
    device
        .ok_or_else(|| misread(shell.host(), &command, first_line(&printed), "a device after dev"))
}

fn classes(shell: &mut dyn Shell, device: &str, facts: &mut Snapshot) -> Result<(), RemoteError> {
    let command = Command::new("tc", ["-s", "-d", "class", "show", "dev", device]);
    let printed = shell.output(&command)?;
    for block in blocks(&printed) {
        // Other kinds are below htb.
        if block.words.get(..2).is_none_or(|begins| begins != ["class", "htb"]) {
            continue;
        }
        class(facts, &block).ok_or_else(|| {
            misread(
                shell.host(),
                &command,
                block.line,
                "a class of htb with its rates and counters",
            )
        })?;
    }
    Ok(())
}

/// One class (`htb_print_opt`, tc/q_htb.c of iproute2).
fn class(facts: &mut Snapshot, block: &Block) -> Option<()> {
    let of = format!("class.{}", block.words.get(2)?);
    let parent = match *block.words.get(3)? {
        "root" => "root",
        "parent" => block.words.get(4)?,
        _ => return None,
    };
    facts.put(format!("{of}.parent"), parent);
    facts.put(format!("{of}.level"), block.number("level")?);
    facts.put(format!("{of}.rate_bits_per_s"), rate(block.value("rate")?)?);
    facts.put(format!("{of}.ceil_bits_per_s"), rate(block.value("ceil")?)?);
    facts.put(format!("{of}.burst_bytes"), bytes(block.value("burst")?)?);
    facts.put(format!("{of}.cburst_bytes"), bytes(block.value("cburst")?)?);
    counting(facts, &of, block)?;
    counters(facts, &of, block)
}

/// A token bucket (`tbf_print_opt`, tc/q_tbf.c).
fn bucket(facts: &mut Snapshot, block: &Block) -> Option<()> {
    facts.put("qdisc.rate_bits_per_s", rate(block.value("rate")?)?);
    facts.put("qdisc.burst_bytes", bytes(block.value("burst")?)?);
    match block.value("peakrate") {
        Some(peak) => facts.put("qdisc.peak_rate_bits_per_s", rate(peak)?),
        None => facts.lacks("qdisc.peak_rate_bits_per_s", "the bucket has no peak rate"),
    }
    counting(facts, "qdisc", block)
}

/// The queue whose length limits a token bucket.
#[derive(Debug, Clone, Copy)]
enum Queue {
    /// The one that the bucket has made.
    Own,
    /// A bfifo(8) that someone put there.
    Inside,
}

/// What the queue in front of the bucket holds. Without `-r`, tc prints how long it lasts (`tbf_print_opt`, tc/q_tbf.c).
fn limit(
    shell: &mut dyn Shell,
    device: &str,
    queue: Queue,
    facts: &mut Snapshot,
) -> Result<(), RemoteError> {
    const LIMIT: &str = "qdisc.limit_bytes";
    let command = Command::new("tc", ["-r", "-d", "-j", "qdisc", "show", "dev", device]);
    let disciplines = match link::json(shell, &command) {
        Err(lost @ RemoteError::Lost { .. }) => return Err(lost),
        // An old tc has no JSON.
        other => other.unwrap_or_default(),
    };
    let root = disciplines.iter().find(|one| one["root"] == true && one["kind"] == "tbf");
    let is_inside = |one: &&Value| {
        let parent = one["parent"].as_str().zip(root.and_then(|root| root["handle"].as_str()));
        one["kind"] == "bfifo" && parent.is_some_and(|(parent, handle)| parent.starts_with(handle))
    };
    let holds = match queue {
        Queue::Own => root,
        Queue::Inside => disciplines.iter().find(is_inside),
    };
    match holds.and_then(|holds| holds["options"]["limit"].as_u64()) {
        Some(bytes) => facts.put(LIMIT, bytes),
        None => facts.lacks(LIMIT, "`tc -r -d -j` there does not print it"),
    }
    Ok(())
}

/// cake (`cake_print_opt`, tc/q_cake.c). Its overhead is added to the IP packet, or to the frame if
/// it counts frames (`raw`).
fn cake(facts: &mut Snapshot, block: &Block) -> Option<()> {
    let says = |word: &str| block.words.contains(&word);
    match block.value("bandwidth")? {
        "unlimited" => facts.lacks("qdisc.rate_bits_per_s", "its bandwidth is unlimited"),
        _ if says("autorate-ingress") => {
            facts.lacks("qdisc.rate_bits_per_s", "cake sets it by what comes in");
        }
        bandwidth => facts.put("qdisc.rate_bits_per_s", rate(bandwidth)?),
    }
    facts.lacks("qdisc.burst_bytes", "cake has none");
    facts.lacks("qdisc.limit_bytes", "cake limits the memory of its packets, not their bytes");
    facts.put("qdisc.counts_from", if says("raw") { "frame" } else { "packet" });
    let overhead: i32 = block.value("overhead")?.parse().ok()?;
    let overhead = u64::try_from(overhead).map_or(Fact::Real(overhead.into()), Fact::Count);
    facts.put("qdisc.overhead_bytes", overhead);
    facts.put("qdisc.least_bytes", block.value("mpu").map_or(Some(0), bytes)?);
    let layer = ["atm", "ptm"].into_iter().find(|layer| says(layer)).unwrap_or("ethernet");
    facts.put("qdisc.link_layer", layer);
    Some(())
}

/// What the shaper counts beside a packet's own bytes.
fn counting(facts: &mut Snapshot, of: &str, block: &Block) -> Option<()> {
    let optional = |key: &str| block.value(key).map_or(Some(0), bytes);
    facts.put(format!("{of}.overhead_bytes"), optional("overhead")?);
    facts.put(format!("{of}.least_bytes"), optional("mpu")?);
    facts.put(format!("{of}.link_layer"), layer(block.value("linklayer"))?);
    Some(())
}

/// The table by which the discipline counts sizes (`print_size_table`, tc/tc_stab.c).
fn sizes(facts: &mut Snapshot, block: &Block) -> Option<()> {
    let Some(table) = &block.table else {
        facts.lacks("qdisc.table", "packets count as they are");
        return Some(());
    };
    let value = |key: &str| after(table, key);
    let overhead: i32 = value("overhead").unwrap_or("0").parse().ok()?;
    let overhead = u64::try_from(overhead).map_or(Fact::Real(overhead.into()), Fact::Count);
    facts.put("qdisc.table.overhead_bytes", overhead);
    facts.put("qdisc.table.least_bytes", value("mpu").map_or(Some(0), bytes)?);
    facts.put("qdisc.table.link_layer", layer(value("linklayer"))?);
    Some(())
}

fn layer(text: Option<&str>) -> Option<&'static str> {
    match text {
        None | Some("ethernet") => Some("ethernet"),
        Some("atm" | "adsl") => Some("atm"),
        Some(_) => None,
    }
}

/// ` Sent 86 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)`.
fn counters(facts: &mut Snapshot, of: &str, block: &Block) -> Option<()> {
    facts.put(format!("{of}.sent_bytes"), block.number("Sent")?);
    facts.put(format!("{of}.drops"), block.number("(dropped")?);
    facts.put(format!("{of}.overlimits"), block.number("overlimits")?);
    Some(())
}

/// A discipline or a class: the line at which it begins, and the words up to the next one.
struct Block<'a> {
    line: &'a str,
    words: Vec<&'a str>,
    /// The words about its table of sizes, if it has one.
    table: Option<Vec<&'a str>>,
}

/// How a line about a table of sizes can begin: what is not set is not printed (iproute2, tc/tc_stab.c `print_size_table`).
const OF_TABLE: [&str; 5] = ["linklayer", "overhead", "mpu", "mtu", "tsize"];

/// The parts of what tc prints. Lines that belong to one begin with a space.
fn blocks(printed: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.split_whitespace();
        match blocks.last_mut() {
            Some(block) if line.starts_with([' ', '\t']) => {
                match words.clone().next().is_some_and(|word| OF_TABLE.contains(&word)) {
                    true => block.table = Some(words.collect()),
                    false => block.words.extend(words),
                }
            }
            _ => blocks.push(Block { line, words: words.collect(), table: None }),
        }
    }
    blocks
}

impl<'a> Block<'a> {
    /// The word after this one.
    fn value(&self, key: &str) -> Option<&'a str> {
        after(&self.words, key)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.trim_end_matches([',', ')']).parse().ok()
    }
}

fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    let place = words.iter().position(|word| *word == key)?;
    words.get(place + 1).copied()
}

/// A rate in bits per second, with a decimal prefix (`tc_print_rate`, tc/tc_util.c).
fn rate(text: &str) -> Option<u64> {
    let (number, prefix) = split(text.strip_suffix("bit")?)?;
    let factor = match prefix {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    Some((number * factor).round() as u64)
}

/// A size in bytes, with a binary prefix; the cell of a bucket may follow (`print_size`, tc/tc_util.c).
fn bytes(text: &str) -> Option<u64> {
    let size = text.split_once('/').map_or(text, |(size, _)| size);
    let (number, unit) = split(size)?;
    let factor = match unit {
        "" | "b" => 1.0,
        "Kb" => 1024.0,
        "Mb" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * factor).round() as u64)
}

/// A number of at least zero, and the text after it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}

fn first_line(printed: &str) -> &str {
    printed.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use proptest::prelude::*;

    const ROUTE: &str = "10.9.0.7 dev v0 src 10.9.0.1 uid 0 \n    cache \n";
    const HTB: &str = "qdisc htb 1: root refcnt 3 r2q 10 default 0x20 direct_packets_stat 1 ver 3.17 direct_qlen 1000\n \
        Sent 86 bytes 1 pkt (dropped 0, overlimits 7 requeues 0) \n backlog 0b 0p requeues 0\n\
        qdisc fq_codel 10: parent 1:10 limit 10240p\n Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n";
    const CLASSES: &str = "class htb 1:10 parent 1:1 leaf 10: prio 0 quantum 200000 rate 20Mbit overhead 4 ceil 100Mbit \
        linklayer ethernet burst 64Kb/1 mpu 0b cburst 65512b/1 mpu 0b level 0 \n \
        Sent 1234 bytes 3 pkt (dropped 2, overlimits 1 requeues 0) \n backlog 0b 0p requeues 0\n lended: 0 borrowed: 0 giants: 0\n\n\
        class htb 1:1 root rate 100Mbit ceil 100Mbit linklayer ethernet burst 65512b/1 mpu 0b cburst 65512b/1 mpu 0b level 7 \n \
        Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n";
    const TBF: &str = "qdisc tbf 8c78: root refcnt 3 rate 1500Kbit burst 10Kb/1 mpu 64b lat 83.1ms overhead 4 linklayer atm \n \
        Sent 9 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n";

    const CAKE: &str = "qdisc cake 8001: root refcnt 2 bandwidth 1500Kbit besteffort triple-isolate nonat nowash no-ack-filter \
        split-gso rtt 100ms atm overhead 40 mpu 96 \n Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n \
        backlog 0b 0p requeues 0\n memory used: 0b of 4Mb\n capacity estimate: 1500Kbit\n min/max overhead-adjusted size: 0 / 0\n";

    const JSON: &str =
        r#"[{"kind":"tbf","handle":"8c78:","root":true,"options":{"rate":187500,"limit":25800}}]"#;

    fn read(qdisc: &str, classes: &str) -> Result<Snapshot, RemoteError> {
        let mut shell = Scripted::default()
            .prints("ip route get 10.9.0.7", ROUTE)
            .prints("tc -s -d qdisc show dev v0", qdisc)
            .prints("tc -s -d class show dev v0", classes)
            .prints("tc -r -d -j qdisc show dev v0", JSON);
        shaper(&mut shell, IpAddr::from([10, 9, 0, 7]))
    }

    #[test]
    fn classes_of_htb_are_read_with_their_counters() {
        let facts = read(HTB, CLASSES).unwrap();
        assert_eq!(facts.text("link.device"), Ok("v0"));
        assert_eq!((facts.text("qdisc.kind"), facts.count("qdisc.overlimits")), (Ok("htb"), Ok(7)));
        assert_eq!(facts.text("class.1:10.parent"), Ok("1:1"));
        assert_eq!(facts.text("class.1:1.parent"), Ok("root"));
        let counts = [
            ("class.direct_packets", 1),
            ("class.1:10.rate_bits_per_s", 20_000_000),
            ("class.1:10.ceil_bits_per_s", 100_000_000),
            ("class.1:10.burst_bytes", 65536),
            ("class.1:10.cburst_bytes", 65512),
            ("class.1:10.overhead_bytes", 4),
            ("class.1:10.level", 0),
            ("class.1:10.sent_bytes", 1234),
            ("class.1:10.drops", 2),
            ("class.1:1.level", 7),
        ];
        for (name, value) in counts {
            assert_eq!(facts.count(name), Ok(value), "{name}");
        }
    }

    #[test]
    fn a_token_bucket_is_read_with_what_it_counts() {
        let facts = read(TBF, "").unwrap();
        assert_eq!(facts.count("qdisc.rate_bits_per_s"), Ok(1_500_000));
        assert_eq!(facts.count("qdisc.burst_bytes"), Ok(10_240));
        assert_eq!(facts.count("qdisc.least_bytes"), Ok(64));
        assert_eq!(facts.text("qdisc.link_layer"), Ok("atm"));
        assert_eq!(facts.count("qdisc.limit_bytes"), Ok(25_800));
        assert!(facts.text("qdisc.table.link_layer").is_err(), "it has no table of sizes");
    }

    #[test]
    fn the_limit_of_a_bucket_is_that_of_a_bfifo_inside() {
        let json = r#"[{"kind":"tbf","handle":"8c78:","root":true,"options":{"limit":25800}},
            {"kind":"bfifo","handle":"10:","parent":"8c78:1","options":{"limit":3000}}]"#;
        let inside = "qdisc bfifo 10: parent 8c78:1 limit 3000b\n Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n";
        let mut shell = Scripted::default()
            .prints("ip route get 10.9.0.7", ROUTE)
            .prints("tc -s -d qdisc show dev v0", &format!("{TBF}{inside}"))
            .prints("tc -r -d -j qdisc show dev v0", json);
        let facts = shaper(&mut shell, IpAddr::from([10, 9, 0, 7])).unwrap();
        assert_eq!(facts.count("qdisc.limit_bytes"), Ok(3000));
    }

    #[test]
    fn the_limit_of_a_bucket_is_unused_with_another_queue_inside() {
        let inside = "qdisc fq_codel 10: parent 8c78:1 limit 10240p\n Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n";
        let facts = read(&format!("{TBF}{inside}"), "").unwrap();
        let why = facts.count("qdisc.limit_bytes").unwrap_err().to_string();
        assert!(why.contains("fq_codel is its queue"), "{why}");
    }

    /// `tc qdisc add dev v0 root stab overhead 18 linklayer atm tbf …`
    #[test]
    fn a_table_of_sizes_is_none_of_the_buckets_own_overhead() {
        let sized = "qdisc tbf 823b: root refcnt 3 rate 20Mbit burst 70000b/1 mpu 0b lat 391ms linklayer ethernet \n \
            linklayer atm overhead 18 mpu 64 mtu 2047 tsize 512 \n Sent 9 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n";
        let facts = read(sized, "").unwrap();
        assert_eq!(facts.count("qdisc.overhead_bytes"), Ok(0));
        assert_eq!(facts.text("qdisc.link_layer"), Ok("ethernet"));
        assert_eq!(facts.count("qdisc.table.overhead_bytes"), Ok(18));
        assert_eq!(facts.count("qdisc.table.least_bytes"), Ok(64));
        assert_eq!(facts.text("qdisc.table.link_layer"), Ok("atm"));
        // What is not set is not printed.
        for (printed, overhead) in
            [("overhead 18", 18.0), ("linklayer ethernet overhead 18", 18.0), ("overhead -4", -4.0)]
        {
            let sized =
                sized.replace("linklayer atm overhead 18 mpu 64 mtu 2047 tsize 512", printed);
            let facts = read(&sized, "").unwrap();
            assert_eq!(facts.count("qdisc.overhead_bytes"), Ok(0), "{printed}");
            assert_eq!(facts.number("qdisc.table.overhead_bytes"), Ok(overhead), "{printed}");
        }
    }

    #[test]
    fn cake_is_read_with_what_it_counts() {
        let facts = read(CAKE, "").unwrap();
        assert_eq!(facts.count("qdisc.rate_bits_per_s"), Ok(1_500_000));
        assert_eq!(facts.text("qdisc.counts_from"), Ok("packet"));
        assert_eq!(facts.text("qdisc.link_layer"), Ok("atm"));
        assert_eq!(facts.number("qdisc.overhead_bytes"), Ok(40.0));
        assert_eq!(facts.count("qdisc.least_bytes"), Ok(96));
        let raw = read(&CAKE.replace("atm overhead 40 mpu 96", "raw overhead 0"), "").unwrap();
        assert_eq!(
            (raw.text("qdisc.counts_from"), raw.text("qdisc.link_layer")),
            (Ok("frame"), Ok("ethernet"))
        );
        let both = read(&CAKE.replace("atm overhead 40 mpu 96", "raw overhead 44"), "").unwrap();
        assert_eq!(both.number("qdisc.overhead_bytes"), Ok(44.0));
        let less = read(&CAKE.replace("atm overhead 40 mpu 96", "noatm overhead -4"), "").unwrap();
        assert_eq!(less.number("qdisc.overhead_bytes"), Ok(-4.0));
        let free = read(&CAKE.replace("1500Kbit bes", "unlimited bes"), "").unwrap();
        let why = free.number("qdisc.rate_bits_per_s").unwrap_err().to_string();
        assert!(why.contains("its bandwidth is unlimited"), "{why}");
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_command() {
        let refused = |qdisc: &str, classes: &str| read(qdisc, classes).unwrap_err().to_string();
        for (qdisc, classes, words) in [
            ("", "", "qdisc show dev v0"),
            ("banana\n", "", "banana"),
            ("qdisc tbf 1: root rate fast\n Sent 9 bytes (dropped 0, overlimits 0\n", "", "a rate"),
            ("qdisc htb 1: root\n", "", "its counters"),
            (HTB, "class htb 1:10 parent 1:1 rate 20Mbit\n", "class show dev v0"),
        ] {
            let said = refused(qdisc, classes);
            assert!(said.contains(words), "{words}: {said}");
        }
        let mut nowhere = Scripted::default().prints("ip route get 10.9.0.7", "unreachable\n");
        let said = shaper(&mut nowhere, IpAddr::from([10, 9, 0, 7])).unwrap_err().to_string();
        assert!(said.contains("a device after dev"), "{said}");
        let mut bare = Scripted::default().prints("ip route get 10.9.0.7", ROUTE);
        let missing = shaper(&mut bare, IpAddr::from([10, 9, 0, 7])).unwrap_err();
        assert!(matches!(missing, RemoteError::NoProgram { .. }), "{missing}");
    }

    #[test]
    fn what_is_cut_short_breaks_nothing() {
        for printed in [HTB, TBF, CAKE, CLASSES] {
            for cut in 0..=printed.len() {
                let part = &printed[..cut];
                let _ = (read(part, CLASSES), read(HTB, part));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(qdisc in ".{0,300}", classes in "(class htb .{0,80}\n){0,4}") {
            let _ = read(&qdisc, &classes);
            let _ = read(HTB, &classes);
        }

        #[test]
        fn another_word_breaks_nothing(place in 0_usize..64, word in "[0-9.]{0,30}[KMGTbit/]{0,6}|.{0,20}") {
            for printed in [HTB, TBF, CAKE, CLASSES] {
                let old = printed.split_whitespace().nth(place).unwrap_or_default();
                let other = printed.replacen(old, &word, 1);
                let _ = (read(&other, CLASSES), read(HTB, &other));
            }
        }

        #[test]
        fn any_word_is_a_number_or_none(word in "[0-9.]{0,400}(K|M|G|T|Kb|Mb|b)?(bit)?(/[0-9]{0,3})?|.{0,20}") {
            let is_number = |read: Option<u64>| read.is_none() || word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            prop_assert!(is_number(rate(&word)) && is_number(bytes(&word)));
        }

        #[test]
        fn what_tc_prints_is_read_to_its_last_digit(bits in 0_u64..1_000_000, kib in 0_u64..1_000_000) {
            prop_assert_eq!(rate(&format!("{bits}Kbit")), Some(bits * 1000));
            prop_assert_eq!(bytes(&format!("{kib}Kb/1")), Some(kib * 1024));
        }
    }
}
