//! Every option of every table becomes one that goodput understands, or is refused with a reason.

use clap::Parser;
use proptest::prelude::*;

use crate::args::{Cli, Command};
use goodput_compat::programs::arguments::{Invocation, command, translate};
use goodput_compat::programs::files::Files;
use goodput_compat::programs::option::{Means, Mode, Opt, Value};
use goodput_compat::programs::program::Program;
use goodput_compat::programs::{ALL, called_as, find};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn program(name: &str) -> &'static Program {
    find(name).unwrap()
}

/// The result of a command line, in one line.
fn becomes(name: &str, typed: &str) -> String {
    match translate(program(name), &words(typed)) {
        Ok(Invocation::Run { arguments, .. }) => arguments.join(" "),
        other => panic!("{name} {typed}: {other:?}"),
    }
}

fn refusal(name: &str, typed: &str) -> String {
    match translate(program(name), &words(typed)) {
        Err(refusal) => refusal.0,
        other => panic!("{name} {typed}: {other:?}"),
    }
}

#[test]
fn names_and_options_are_distinguished() {
    for program in ALL {
        command(program).debug_assert();
        for option in program.options {
            let same = program.options.iter().filter(|other| other.name() == option.name());
            assert_eq!(same.count(), 1, "{} {}", program.name, option.name());
        }
    }
    assert_eq!(called_as("/usr/local/bin/iperf3").unwrap().name, "iperf3");
    assert!(called_as("goodput").is_none());
}

/// The shortest command line of a mode.
fn least(program: &Program, mode: Mode) -> Vec<String> {
    words(match (program.name, mode) {
        ("iperf3" | "iperf", Mode::Server) => "-s",
        ("iperf3" | "iperf", _) => "-c goodput://192.0.2.1",
        ("nuttcp", Mode::Server) => "-S",
        ("nuttcp", _) => "goodput://192.0.2.1",
        (_, Mode::Server) => "-r -s",
        _ => "-t -s goodput://192.0.2.1",
    })
}

/// A value that each option should understand.
fn sample(name: &str) -> &'static str {
    match name {
        "HOST[%DEV]" | "HOST" | "IP" => "192.0.2.1",
        "UNIT" => "m",
        "DSCP" | "TOS" => "32",
        "RATE[/BURST]" | "RATE" => "1m",
        "FORMAT" => "parse",
        "c#" => "c0",
        "C" => "C",
        _ => "100",
    }
}

fn typed(program: &Program, mode: Mode, option: &Opt) -> Vec<String> {
    let mut arguments = least(program, mode);
    if arguments.contains(&option.name()) {
        return arguments;
    }
    let value = match option.value {
        Value::One(name) => Some(sample(name)),
        Value::None | Value::Maybe(_) => None,
    };
    // If the last option had no value, it would take the host for one.
    arguments.splice(0..0, std::iter::once(option.name()).chain(value.map(String::from)));
    arguments
}

/// Whether the option makes the program a client or a server; other tests cover these.
fn turns(option: &Opt) -> bool {
    ["-c", "-s", "-S", "-1", "-r", "-t"].contains(&option.name().as_str())
        && !matches!(option.value, Value::One("SECONDS" | "BYTES"))
}

#[test]
fn every_option_maps_or_is_refused_by_name() {
    for program in ALL {
        for mode in [Mode::Client, Mode::Server] {
            for option in program.options.iter().filter(|option| !turns(option)) {
                let arguments = typed(program, mode, option);
                let outcome = translate(program, &arguments);
                match (option.means(mode), outcome) {
                    (Means::Refused(why), Err(refusal)) => {
                        assert_eq!(
                            refusal.0,
                            format!("option {} is refused: {why}", option.name())
                        );
                    }
                    (Means::Elsewhere, Err(refusal)) => {
                        assert!(refusal.0.contains(&option.name()), "{refusal:?}");
                    }
                    (Means::Refused(_) | Means::Elsewhere, other) => {
                        panic!("{} {arguments:?}: {other:?}", program.name)
                    }
                    (_, Ok(Invocation::Run { arguments, .. })) => understood(&arguments, mode),
                    (_, Ok(Invocation::Print(text))) => assert!(text.contains("goodput"), "{text}"),
                    (_, Err(refusal)) => panic!("{} {arguments:?}: {refusal:?}", program.name),
                }
            }
        }
    }
}

/// Options that only goodput's clap parser can refuse are refused for their combination, not their
/// form.
fn understood(arguments: &[String], mode: Mode) {
    let all = std::iter::once("goodput").chain(arguments.iter().map(String::as_str));
    match (Cli::try_parse_from(all), mode) {
        (Ok(cli), Mode::Client) => assert!(matches!(cli.command, Command::Test(_))),
        (Ok(cli), _) => assert!(matches!(cli.command, Command::Serve(_) | Command::Test(_))),
        (Err(error), _) => {
            use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument};
            let kind = error.kind();
            assert!(matches!(kind, ArgumentConflict | MissingRequiredArgument), "{error}");
        }
    }
}

#[test]
fn the_data_ports_of_nuttcp_are_said_by_its_client() {
    assert!(becomes("nuttcp", "-p 5600 h").contains("--data-port=5600"));
}

#[test]
fn iperf3_lines_come_to_what_they_mean() {
    assert_eq!(
        becomes("iperf3", "-c h -p 99 -P 4 -t 5 -R -w 64K"),
        "test iperf3://h:99 --flows=4 --reverse --sndbuf=65536 --rcvbuf=65536 --chunk=131072 \
         --time=5 --format=iperf3-text --no-store"
    );
    // The rate applies to one stream, and UDP has a default rate.
    let udp = becomes("iperf3", "-c h -u -P 3 -J");
    assert!(udp.contains("--udp --rate=3000000 --chunk=1448 --time=10 --format=iperf3 "), "{udp}");
    assert!(becomes("iperf3", "-c h -b 1.5g").contains("--rate=1500000000"));
    assert!(becomes("iperf3", "-c h -u -b 0").contains("--rate=unlimited"));
    assert!(becomes("iperf3", "-c h -k 10 -l 1K").contains("--bytes=10240"));
    assert!(
        becomes("iperf3", "-c fe80::1%eth0").starts_with("test iperf3://[fe80::1] --device=eth0")
    );
    let server = becomes("iperf3", "-s -p 99 -1");
    let begin = "serve --one-off --port=99 --protocols=iperf3=99 --exclusive=busy --format=iperf3-text --announce=----";
    assert!(server.starts_with(begin), "{server}");
    assert!(server.contains("\nServer listening on 99 (test #1)\n"), "{server}");
    assert!(refusal("iperf3", "-c h -t 5 -n 5").contains("only one test end condition"));
    assert!(refusal("iperf3", "-c h -b 1m/5").contains("-b"));
    assert!(becomes("iperf3", "-c h -u -b 1m/5 -l 1K").contains("--rate=1000000 --burst=5120 "));
    assert!(becomes("iperf3", "-c ::1 -u").contains("--chunk=1428 "));
    assert!(becomes("iperf3", "-c h -S 0x20 --dscp ef").contains(" --dscp=46 "));
    assert!(becomes("iperf3", "-c h --dscp ef -S 0x20").contains(" --dscp=8 "));
    assert!(becomes("iperf3", "-c h -Z").contains(" --mover=sendfile "));
    assert!(!becomes("iperf3", "-c h -Z -u").contains("sendfile"));
    assert!(becomes("iperf3", "-c h -u --dont-fragment").contains(" --dont-fragment "));
    assert!(!becomes("iperf3", "-c h --dont-fragment").contains("fragment"));
    let last = becomes("iperf3", "-c h -i 1 -P 2 -i 0");
    assert!(last.contains("--interval=0") && !last.contains("--interval=1"), "{last}");
    assert!(becomes("iperf3", "-c h -O 2").contains("--time=10 --omit=2 --format"));
    assert!(!becomes("iperf3", "-c h -O 0").contains("--omit"));
    assert!(becomes("iperf3", "-c h --get-server-output").contains("--peer-output"));
    assert!(refusal("iperf3", "-c h -O 2 -n 5").contains("-O"));
    assert_eq!(refusal("iperf3", "-c h --nosuch"), "unrecognized option '--nosuch'");
    assert_eq!(refusal("iperf3", "-c h -Q"), "invalid option -- 'Q'");
    assert!(refusal("iperf3", "").contains("must either be a client (-c) or server (-s)"));
    assert!(refusal("iperf3", "-s -R").contains("-R is for the client only"));
}

#[test]
fn files_are_those_that_were_named() {
    let files = |name, typed| match translate(program(name), &words(typed)) {
        Ok(Invocation::Run { files, .. }) => files,
        other => panic!("{other:?}"),
    };
    let both = Files::named(Some("/tmp/l"), Some("/tmp/p"));
    assert_eq!(files("iperf3", "-s -D --logfile /tmp/l -I /tmp/p"), both);
    assert_eq!(files("iperf", "-c h -o /tmp/l"), Files::named(Some("/tmp/l"), None));
    assert_eq!(files("nuttcp", "-I name h"), Files::default());
}

#[test]
fn iperf_lines_come_to_what_they_mean() {
    let udp = becomes("iperf", "-c h -u -b 10M -P 2 -i 1 -y C");
    assert_eq!(
        udp,
        "test iperf2://h --flows=2 --interval=1 --udp --rate=20971520 --chunk=1470 --time=10 \
         --format=iperf2-csv --no-store"
    );
    assert!(becomes("iperf", "-c h -n 1M -P 2").contains("--bytes=2097152"));
    assert!(becomes("iperf", "-c h -u").contains("--rate=1048576"));
    assert!(becomes("iperf", "-c h -u -b 100pps -l 1000 -P 2").contains("--rate=1600000 "));
    assert!(becomes("iperf", "-c h -u -b 1kpps").contains("--rate=11760000 "));
    assert!(refusal("iperf", "-c h -b 5pps").contains("-b"));
    let server = becomes("iperf", "-s -u");
    assert!(server.starts_with(
        "serve --port=5001 --protocols=iperf2=5001 --format=iperf2-text --announce=---"
    ));
    assert!(server.contains("\nServer listening on UDP port 5001\n"), "{server}");
    assert!(!becomes("iperf", "-c h -e -m").contains("reverse"));
    let again = |typed| match translate(program("iperf"), &words(typed)) {
        Ok(Invocation::Run { again, .. }) => again.map(|run| run.join(" ")),
        other => panic!("{other:?}"),
    };
    assert_eq!(again("-c h"), None);
    assert!(
        again("-c h -r -t 5")
            .unwrap()
            .ends_with("--time=5 --format=iperf2-text --no-store --reverse")
    );
    assert!(refusal("iperf", "-c h -r -d").contains("-d and -r"));
}

#[test]
fn nuttcp_lines_come_to_what_they_mean() {
    assert_eq!(
        becomes("nuttcp", "-r -u -R10m -i1 -T2m -N2 -w512 -Ifoo -fparse h"),
        "test nuttcp://h --reverse --flows=2 --sndbuf=524288 --rcvbuf=524288 \
         --format-title=foo --udp --rate=10000000 --chunk=1024 --time=120 --interval=1 \
         --format=nuttcp-parse --no-store"
    );
    assert!(!becomes("nuttcp", "-i10 h").contains("--interval"));
    assert!(becomes("nuttcp", "-u h").contains("--udp --rate=1000000 "));
    assert!(becomes("nuttcp", "-uu h").contains("--rate=unlimited"));
    assert!(becomes("nuttcp", "-u -R0 h").contains("--rate=unlimited"));
    assert!(becomes("nuttcp", "-u -R100p -l1000 h").contains("--rate=800000 "));
    assert!(becomes("nuttcp", "-br -v -fparse h").contains("--format=nuttcp-verbose-parse"));
    assert!(becomes("nuttcp", "-n10 -l1k h").contains("--bytes=10240"));
    assert!(becomes("nuttcp", "-n10m h").contains("--bytes=10485760"));
    assert!(becomes("nuttcp", "-c46 h").contains("--dscp=46"));
    assert!(becomes("nuttcp", "-c0xb8t h").contains("--dscp=46"));
    assert_eq!(
        becomes("nuttcp", "-S -P5005"),
        "serve --port=5005 --protocols=nuttcp=5005 --announce="
    );
    assert!(becomes("nuttcp", "-F -a -d -xc1 h").contains("--pin=1 "));
    assert!(refusal("nuttcp", "-xcs1 h").contains("-xcs1 is refused"));
    assert!(refusal("nuttcp", "-o h").contains("-o is refused"));
    assert!(refusal("nuttcp", "-f-rtt h").contains("-f-rtt is refused"));
    assert!(refusal("nuttcp", "-ws64 h").contains("-w"));
    assert!(refusal("nuttcp", "a b").contains("third party"));
    assert!(refusal("nuttcp", "-r").contains("classic"));
}

#[test]
fn ttcp_lines_come_to_what_they_mean() {
    assert_eq!(
        becomes("ttcp", "-t -s -n4 -l1024 -D h"),
        "test ttcp://h --nodelay --chunk=1024 --bytes=4096 --format=ttcp --no-store"
    );
    assert_eq!(
        becomes("ttcp", "-r -s -p 99"),
        "serve --port=99 --protocols=ttcp=99 --one-off --format=ttcp --announce=ttcp-r: socket"
    );
    assert!(refusal("ttcp", "-t h").contains("add -s"));
}

#[test]
fn servers_leave_the_terminal_where_the_program_does() {
    let background = |name: &str, typed: &str| match translate(program(name), &words(typed)) {
        Ok(Invocation::Run { background, .. }) => background,
        other => panic!("{other:?}"),
    };
    assert!(background("iperf3", "-s -D") && !background("iperf3", "-s"));
    assert!(background("nuttcp", "-S") && !background("nuttcp", "-S --nofork"));
    assert!(!background("ttcp", "-r -s") && !background("nuttcp", "h"));
}

#[test]
fn the_document_names_every_option() {
    let text = goodput_compat::programs::document();
    for option in ALL.iter().flat_map(|program| program.options) {
        assert!(text.contains(&option.name()), "{}", option.name());
    }
}

proptest! {
    #[test]
    fn no_argument_list_panics(
        which in 0..ALL.len(),
        arguments in prop::collection::vec("-[a-zA-Z0-9]{1,3}|--[a-z-]{1,12}(=.{0,4})?|[0-9]{1,20}[kKmMgGp%]?|.{0,8}", 0..8),
    ) {
        if let Ok(Invocation::Run { arguments, .. }) = translate(ALL[which], &arguments) {
            let _ = super::run::parsed(&arguments);
        }
    }

    #[test]
    fn no_value_of_an_option_panics(
        which in 0..ALL.len(),
        at in any::<prop::sample::Index>(),
        value in "[0-9.]{0,20}[a-zA-Z/%]{0,2}|.{0,10}",
    ) {
        let mut arguments = vec![at.get(ALL[which].options).name(), value];
        arguments.extend(least(ALL[which], Mode::Client));
        let _ = translate(ALL[which], &arguments);
    }
}

#[test]
fn the_affinity_of_iperf3_is_of_one_end_or_of_both() {
    let run = |value: &str| {
        let typed = ["-c", "h", "-A", value].map(String::from);
        match translate(ALL.iter().find(|program| program.protocol == "iperf3").unwrap(), &typed) {
            Ok(Invocation::Run { arguments, .. }) => arguments.join(" "),
            other => format!("{other:?}"),
        }
    };
    assert!(run("2").contains("--pin=2") && !run("2").contains("far:"));
    assert!(run("2,3").contains("--pin=2 --pin=far:3"));
    assert!(run("a").contains("option -A") && run("1,").contains("option -A"));
}
