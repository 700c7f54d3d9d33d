//! Help, lists and explanations.

use crate::common::{Home, Server, stderr, stdout};

fn shown(arguments: &[&str]) -> String {
    let home = Home::new();
    let output = home.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    stdout(&output)
}

/// The names of the options that a help text describes.
fn options(help: &str) -> Vec<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--"))).collect()
}

#[test]
fn short_help_has_what_matters_and_long_help_has_all() {
    let (short, long) = (shown(&["test", "-h"]), shown(&["test", "--help"]));
    let (few, all) = (options(&short), options(&long));
    assert!(few.len() <= 20, "{} options are too many for a first look", few.len());
    assert!(all.len() > 2 * few.len() && few.iter().all(|option| all.contains(option)), "{few:?}");
    assert!(short.contains("goodput test --help"), "the short help names the long one");
    for heading in ["Direction", "Length", "Load", "Sockets", "Files", "Far end", "Output"] {
        assert_eq!(long.matches(&format!("\n{heading}:\n")).count(), 1, "{heading}");
    }
}

/// [`Home::run`] sets an option by the environment.
#[test]
fn the_usage_in_an_error_has_only_what_was_typed() {
    let output = Home::new().run(&["settings", "get"]);
    assert_eq!(output.status.code(), Some(2));
    let usage = stderr(&output);
    assert!(usage.contains("write `goodput settings get <SETTING>`"), "{usage}");
}

/// An option that stands under none of its verb's headings would be in clap's own list, `Options:`.
#[test]
fn every_option_of_a_verb_has_a_heading() {
    for (verb, headings) in [
        ("compare", &["Comparison", "Direction", "Length", "Sockets", "Far end", "Output"][..]),
        ("ceiling", &["Link", "Packets", "Path", "Host", "Question"]),
        ("serve", &["Listening", "Clients", "Limits", "Files", "Process", "Output"]),
    ] {
        let long = shown(&[verb, "--help"]);
        for heading in headings.iter().chain(&["Global options"]) {
            assert_eq!(long.matches(&format!("\n{heading}:\n")).count(), 1, "{verb}: {heading}");
        }
        assert!(!long.contains("\nOptions:\n"), "{verb}: {long}");
    }
}

#[test]
fn a_list_can_be_narrowed_and_made_longer() {
    let short = shown(&["settings", "list", "qdisc"]);
    let mut rows = short.lines().skip(1).filter(|line| !line.starts_with(' '));
    assert!(rows.all(|line| line.contains("qdisc")), "{short}");
    assert!(!short.contains("values"), "{short}");
    let long = shown(&["list", "settings", "qdisc.kind", "--long"]);
    assert!(long.contains("values") && long.contains("fq_codel"), "{long}");
}

/// Lists, pages and reports, as a terminal of 80 columns shows them. Commands to copy stay whole.
#[test]
fn what_people_read_fits_80_columns() {
    let home = Home::new();
    let lists = [
        "rules",
        "checks",
        "probes",
        "bounds",
        "settings",
        "movers",
        "protocols",
        "formats",
        "scenarios",
        "faults",
        "sources",
    ];
    let lists = lists.map(|what| format!("list {what}"));
    let long = lists.clone().map(|list| format!("{list} --long"));
    let others = [
        "settings list qdisc",
        "lab list",
        "as --list",
        "as --list iperf3",
        "explain path-loss",
        "explain xps.cpus",
        "explain half-window",
        "explain ack-path",
        "explain tbf",
        "explain softnet",
        "explain Record.verdict",
        "check lo --undecided",
        "ceiling --link 10gbit --rtt 20ms --window 1M --loss 0.1% -P 2",
        "ceiling --here lo",
    ];
    for command in lists.iter().chain(&long).cloned().chain(others.map(String::from)) {
        let arguments: Vec<_> = command.split(' ').collect();
        let output = home.goodput(&arguments).env("COLUMNS", "80").output().expect("goodput runs");
        let text = stdout(&output);
        assert!(!text.is_empty(), "{command}: {output:?}");
        let is_wide =
            |line: &&str| line.chars().count() > 80 && !line.contains("goodput settings set");
        let wide: Vec<_> = text.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{command}: {wide:#?}");
    }
}

#[test]
fn a_list_fits_80_columns_in_a_pipe_and_long_rows_stay_whole() {
    let home = Home::new();
    let piped = |command: &str| {
        let mut goodput = home.goodput(&command.split(' ').collect::<Vec<_>>());
        stdout(&goodput.env_remove("COLUMNS").output().expect("goodput runs"))
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    for command in ["settings list", "list far-settings", "as --list", "as --list iperf3"] {
        let text = piped(command);
        assert!((40..=80).contains(&widest(&text)), "{command}: {text}");
    }
    let long = piped("settings list --long");
    let one = long.lines().find(|line| line.starts_with("qdisc.kind ")).expect(&long);
    assert!(one.contains("fq_codel") && widest(&long) > 80, "{one}");
}

#[test]
fn a_rule_a_setting_and_a_field_are_explained() {
    assert!(shown(&["explain", "path-loss"]).contains("### How it is seen"));
    assert!(shown(&["explain", "qdisc.kind@eth0"]).contains("values:"));
    let member = shown(&["explain", "sysctl.net.ipv4.tcp_rmem"]);
    let (own, family) = member.split_once("## setting `sysctl`\n").expect(&member);
    assert!(own.starts_with("## setting `sysctl.net.ipv4.tcp_rmem`"), "{own}");
    assert!(own.contains("this host has: ") && family.contains("values:"), "{member}");
    assert!(shown(&["explain", "Record.verdict"]).contains("type:"));
    let unknown = Home::new().run(&["explain", "path-los"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean \"path-loss\""));
}

#[test]
fn a_rate_of_zero_is_unlimited_and_times_have_units() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arguments = ["test", &server.address, "-t", "500ms", "--rate", "0", "--json", "--no-store"];
    let output = home.run(&arguments);
    assert!(output.status.success(), "{output:?}");
    let record: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("one record");
    assert_eq!(record["plan"]["length"]["seconds"], 0.5, "{}", record["plan"]);
    assert!(record["plan"]["rate_bits_per_s"].is_null(), "{}", record["plan"]);
}
