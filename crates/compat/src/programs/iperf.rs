//! iperf 2, with the options of 2.1.8 (`iperf --help`). Unknown options are errors, although iperf itself would warn
//! and go on without them.

use super::files::Files;
use super::option::Means::{Flag, Ignored, Joined, Refused, With};
use super::option::Value::{Maybe, None as Nothing, One};
use super::option::{Mode, Opt, Refusal, both, client, ignored, refused, server};
use super::parsed::ParsedArguments;
use super::program::Program;
use super::values::{self, mixed, mixed_rate_text, mixed_size, same, tos_or_dscp};

/// The program.
pub const PROGRAM: Program = Program {
    name: "iperf",
    protocol: "iperf2",
    version: "iperf version 2.1.8",
    usage: ["iperf -c HOST [options]", "iperf -s [options]"],
    takes_host: false,
    options: OPTIONS,
    mode,
    client: as_client,
    server: as_server,
    background: |typed| typed.has("-D"),
    files: |typed| Files::named(typed.value("-o"), None),
    again: |typed| typed.has("-r").then_some("--reverse"),
};

/// Default length of a test, seconds (iperf -h).
const DURATION_S: &str = "10";
/// Default rate of a UDP flow: 1 Mbit/s of 2^20 (2.1.8, Settings.hpp).
const UDP_RATE_BITS_PER_S: f64 = 1_048_576.0;
/// Default bytes of a datagram over IPv4 (iperf -h).
const UDP_LENGTH_BYTES: &str = "1470";
/// The same over IPv6.
const UDP_LENGTH_V6_BYTES: &str = "1450";

/// Surrounds the line from which scripts learn that the server listens (2.1.8).
const RULE: &str = "------------------------------------------------------------";

const NO_BOUNCE: &str = "goodput answers bouncebacks, and sends none";
const NO_FRAMES: &str = "goodput sends no bursts or frames";
const NO_SPREAD: &str = "all flows go to one address and port";
const NO_CLOCK: &str = "goodput compares no clocks of two hosts";
const LOG_FILE: &str = "what is printed goes to the end of that file";
const NO_FILE: &str = "files are sent by `goodput test HOST --source FILE`";
const NO_MULTICAST: &str = "goodput has no multicast";
const NO_HISTOGRAM: &str = "goodput prints no histograms";
const OF_CLIENT: &str = "the client's plan decides it";

const OPTIONS: &[Opt] = &[
    both(
        Some('b'),
        Some("bandwidth"),
        One("RATE"),
        Joined(
            "`--rate`, times the flows: goodput's is for all flows together; k m g are powers of 1000, \
             K M G of 1024, and pps packets of `-l` with `-u`",
        ),
        Ignored(OF_CLIENT),
    ),
    ignored(Some('e'), Some("enhanced"), Nothing, "the columns that it adds are not printed"),
    both(
        Some('f'),
        Some("format"),
        One("UNIT"),
        With(&["--format-units"], same),
        With(&["--format-units"], same),
    ),
    refused(None, Some("hide-ips"), Nothing, "addresses are printed whole"),
    both(
        Some('i'),
        Some("interval"),
        One("SECONDS"),
        With(&["--interval"], same),
        With(&["--interval"], same),
    ),
    both(
        Some('l'),
        Some("len"),
        One("BYTES"),
        Joined("`--chunk`, 128K, 1470 or over IPv6 1450 without it"),
        Ignored(OF_CLIENT),
    ),
    ignored(Some('m'), Some("print_mss"), Nothing, "the line that it adds is not printed"),
    both(Some('o'), Some("output"), One("FILE"), Joined(LOG_FILE), Joined(LOG_FILE)),
    both(
        Some('p'),
        Some("port"),
        One("PORT"),
        Joined("the port of the target"),
        Joined("`--port`"),
    ),
    refused(None, Some("permit-key"), Maybe("KEY"), "goodput has no permit keys"),
    refused(None, Some("sum-only"), Nothing, "every flow is printed"),
    both(
        Some('u'),
        Some("udp"),
        Nothing,
        Joined("`--udp`, at 1048576 bit/s without `-b`"),
        Ignored("goodput's server answers TCP and UDP"),
    ),
    both(
        Some('w'),
        Some("window"),
        One("BYTES"),
        With(&["--sndbuf", "--rcvbuf"], mixed_size),
        Refused(OF_CLIENT),
    ),
    refused(Some('z'), Some("realtime"), Nothing, "start goodput with chrt(1) instead"),
    both(
        Some('B'),
        Some("bind"),
        One("HOST[%DEV]"),
        Joined("`--bind`, and `--device` for what follows the %"),
        With(&["--bind"], same),
    ),
    ignored(Some('C'), Some("compatibility"), Nothing, "goodput sees what the other side speaks"),
    both(Some('M'), Some("mss"), One("BYTES"), With(&["--mss"], same), Refused(OF_CLIENT)),
    both(Some('N'), Some("nodelay"), Nothing, Flag(&["--nodelay"]), Ignored(OF_CLIENT)),
    both(Some('S'), Some("tos"), One("TOS"), With(&["--dscp"], tos_or_dscp), Refused(OF_CLIENT)),
    both(
        Some('Z'),
        Some("tcp-congestion"),
        One("NAME"),
        With(&["--congestion"], same),
        Refused(OF_CLIENT),
    ),
    server(Some('s'), Some("server"), Nothing, Joined("`goodput serve`")),
    server(Some('1'), Some("singleclient"), Nothing, Flag(&["--one-off"])),
    server(None, Some("histograms"), Maybe("WHAT"), Refused(NO_HISTOGRAM)),
    server(None, Some("udp-histogram"), One("WHAT"), Refused(NO_HISTOGRAM)),
    server(None, Some("permit-key-timeout"), One("SECONDS"), Refused("goodput has no permit keys")),
    server(None, Some("tcp-rx-window-clamp"), One("BYTES"), Refused("goodput clamps no window")),
    server(None, Some("tap-dev"), One("DEV"), Refused("goodput receives from sockets only")),
    server(Some('U'), Some("single_udp"), Nothing, Ignored("goodput has a thread for each flow")),
    server(None, Some("sum-dstip"), Nothing, Ignored("each measurement is printed separately")),
    server(Some('D'), Some("daemon"), Nothing, Joined("it leaves the terminal")),
    both(
        Some('V'),
        Some("ipv6_domain"),
        Nothing,
        Flag(&["--ipv6"]),
        Ignored("goodput's server listens to both"),
    ),
    client(Some('c'), Some("client"), One("HOST[%DEV]"), Joined("`goodput test iperf2://HOST`")),
    client(None, Some("bounceback"), Maybe("N"), Refused(NO_BOUNCE)),
    client(None, Some("bounceback-congest"), Maybe("WHAT"), Refused(NO_BOUNCE)),
    client(None, Some("bounceback-hold"), One("MS"), Refused(NO_BOUNCE)),
    client(None, Some("bounceback-period"), One("MS"), Refused(NO_BOUNCE)),
    client(None, Some("bounceback-no-quickack"), Nothing, Refused(NO_BOUNCE)),
    client(None, Some("connect-only"), Maybe("N"), Refused("goodput measures what it connects to")),
    client(None, Some("connect-retries"), One("N"), Refused("goodput tries once")),
    client(Some('d'), Some("dualtest"), Nothing, Flag(&["--both"])),
    client(None, Some("fq-rate"), One("RATE"), With(&["--max-pacing"], mixed_rate_text)),
    client(
        None,
        Some("full-duplex"),
        Nothing,
        Refused("goodput has flows of its own in each direction; -d does that"),
    ),
    client(None, Some("ipg"), One("MS"), Refused(NO_FRAMES)),
    client(None, Some("isochronous"), Maybe("WHAT"), Refused(NO_FRAMES)),
    client(None, Some("incr-dstip"), Nothing, Refused(NO_SPREAD)),
    client(None, Some("incr-dstport"), Nothing, Refused(NO_SPREAD)),
    client(None, Some("incr-srcip"), Nothing, Refused(NO_SPREAD)),
    client(None, Some("incr-srcport"), Nothing, Refused(NO_SPREAD)),
    client(None, Some("local-only"), Maybe("N"), Refused("goodput sends where the routes lead")),
    client(None, Some("near-congestion"), Maybe("N"), Refused("goodput delays no writes")),
    client(None, Some("no-connect-sync"), Nothing, Refused("flows begin together")),
    client(None, Some("no-udp-fin"), Nothing, Refused("the server's report is what counts")),
    client(Some('n'), Some("num"), One("BYTES"), Joined("`--bytes`, times the flows")),
    client(
        Some('r'),
        Some("tradeoff"),
        Nothing,
        Joined("a second run with `--reverse`, as -R: the server needs to be of 2.1 or later"),
    ),
    client(None, Some("tcp-quickack"), Nothing, Flag(&["--quickack"])),
    client(None, Some("tcp-write-prefetch"), One("BYTES"), With(&["--notsent-lowat"], same)),
    client(None, Some("tcp-write-times"), Nothing, Refused(NO_HISTOGRAM)),
    both(
        Some('t'),
        Some("time"),
        One("SECONDS"),
        Joined("`--time`, 10 without it"),
        Refused("goodput's server listens until it is stopped"),
    ),
    client(None, Some("trip-times"), Nothing, Refused(NO_CLOCK)),
    client(None, Some("txdelay-time"), One("SECONDS"), Refused("goodput sends at once")),
    client(None, Some("txstart-time"), One("TIME"), Refused("goodput sends at once")),
    client(Some('F'), Some("fileinput"), One("FILE"), Refused(NO_FILE)),
    client(Some('H'), Some("ssm-host"), One("IP"), Refused(NO_MULTICAST)),
    client(Some('I'), Some("stdin"), Nothing, Refused(NO_FILE)),
    client(Some('L'), Some("listenport"), One("PORT"), Refused("the kernel chooses that port")),
    client(Some('P'), Some("parallel"), One("N"), With(&["--flows"], same)),
    client(Some('R'), Some("reverse"), Nothing, Flag(&["--reverse"])),
    client(Some('T'), Some("ttl"), One("N"), Refused(NO_MULTICAST)),
    ignored(Some('X'), Some("peer-detect"), Nothing, "goodput sees what the other side speaks"),
    refused(Some('x'), Some("reportexclude"), One("WHAT"), "every line is printed"),
    both(
        Some('y'),
        Some("reportstyle"),
        One("C"),
        Joined("`--format iperf2-csv`"),
        Joined("`--format iperf2-csv`"),
    ),
    both(Some('h'), Some("help"), Nothing, Joined("this list"), Joined("this list")),
    both(Some('v'), Some("version"), Nothing, Joined("the version"), Joined("the version")),
];

fn mode(typed: &ParsedArguments) -> Result<Mode, Refusal> {
    match (typed.has("-c"), typed.has("-s")) {
        _ if typed.has("-h") => Ok(Mode::Help),
        _ if typed.has("-v") => Ok(Mode::Version),
        (true, false) => Ok(Mode::Client),
        (false, true) => Ok(Mode::Server),
        _ => Err(Refusal::because("name a server with -c, or be one with -s; see iperf --help")),
    }
}

fn as_client(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let (host, device) = values::host_and_device(typed.value("-c").unwrap_or_default());
    let (bind, bind_device) = values::host_and_device(typed.value("-B").unwrap_or_default());
    own.insert(1, values::target(PROGRAM.protocol, host, typed.value("-p")));
    own.extend(device.or(bind_device).map(|device| format!("--device={device}")));
    own.extend((!bind.is_empty()).then(|| format!("--bind={bind}")));
    let two_ways = ["-d", "-r", "-R"].into_iter().filter(|way| typed.has(way)).collect::<Vec<_>>();
    if let [first, second, ..] = two_ways[..] {
        return Err(Refusal(format!("options {first} and {second}: name one of them")));
    }
    own.extend(transport(typed)?);
    own.push(length(typed)?);
    own.extend([format!("--format={}", format(typed)?), "--no-store".into()]);
    Ok(own)
}

fn format(typed: &ParsedArguments) -> Result<&'static str, Refusal> {
    match typed.value("-y") {
        None => Ok("iperf2-text"),
        Some("C" | "c") => Ok("iperf2-csv"),
        Some(other) => Err(Refusal(format!("option -y: {other:?} is not a style; there is C"))),
    }
}

/// UDP's changes, and the rate: iperf's is for one flow.
fn transport(typed: &ParsedArguments) -> Result<Vec<String>, Refusal> {
    let udp = typed.has("-u");
    let standard = match (udp, typed.has("-V")) {
        (false, _) => None,
        (true, false) => Some(UDP_LENGTH_BYTES.to_string()),
        (true, true) => Some(UDP_LENGTH_V6_BYTES.to_string()),
    };
    let chunk = typed.read("-l", mixed_size)?.or(standard);
    let length = chunk.as_deref().filter(|_| udp).and_then(|bytes| bytes.parse::<f64>().ok());
    let rate = typed.read("-b", |text| match (text.strip_suffix("pps"), length) {
        (Some(packets), Some(bytes)) => mixed(packets).map(|per_s| per_s * bytes * 8.0),
        (Some(_), None) => Err("units of pps not supported with TCP".into()),
        (None, _) => mixed(text),
    })?;
    let rate = rate.or(udp.then_some(UDP_RATE_BITS_PER_S));
    let mut own: Vec<String> = Vec::new();
    own.extend(udp.then(|| "--udp".into()));
    own.extend(
        rate.map(|rate| {
            format!("--rate={}", values::rate(rate * flows(typed).unwrap_or(1) as f64))
        }),
    );
    own.extend(chunk.map(|bytes| format!("--chunk={bytes}")));
    Ok(own)
}

fn flows(typed: &ParsedArguments) -> Option<u64> {
    values::count(typed.value("-P")?).ok()
}

fn length(typed: &ParsedArguments) -> Result<String, Refusal> {
    let Some(bytes) = typed.read("-n", mixed)? else {
        return Ok(format!("--time={}", typed.value("-t").unwrap_or(DURATION_S)));
    };
    if typed.has("-t") {
        return Err(Refusal::because("options -n and -t: goodput ends a test by one of them"));
    }
    // Each flow of iperf sends this amount.
    Ok(format!("--bytes={:.0}", bytes * flows(typed).unwrap_or(1) as f64))
}

fn as_server(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let port = typed.value("-p").unwrap_or("5001");
    own.extend(values::listen(PROGRAM.protocol, port));
    let protocol = if typed.has("-u") { "UDP" } else { "TCP" };
    let format = format(typed)?;
    own.push(format!("--format={format}"));
    if format == "iperf2-csv" {
        own.push("--announce=".into());
        return Ok(own);
    }
    own.push(format!("--announce={RULE}\nServer listening on {protocol} port {port}\n{RULE}"));
    Ok(own)
}
