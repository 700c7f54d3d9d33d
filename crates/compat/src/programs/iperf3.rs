//! iperf3, with the options of 3.12 and of later versions to 3.22 (iperf_api.c, iperf_parse_arguments).

use super::files::Files;
use super::option::Means::{Flag, Ignored, Joined, Refused, With};
use super::option::Value::{Maybe, None as Nothing, One};
use super::option::{Mode, Opt, Refusal, both, client, ignored, refused, server};
use super::parsed::ParsedArguments;
use super::program::Program;
use super::values::{self, bytes, decimal_rate, decimal_rate_text, dscp, same, size, tos};

/// The program.
pub const PROGRAM: Program = Program {
    name: "iperf3",
    protocol: "iperf3",
    version: "iperf 3.12",
    usage: ["iperf3 -c HOST [options]", "iperf3 -s [options]"],
    takes_host: false,
    options: OPTIONS,
    mode,
    client: as_client,
    server: as_server,
    background: |typed| typed.has("-D"),
    files: |typed| Files::named(typed.value("--logfile"), typed.value("-I")),
    again: |_| None,
};

/// Default length of a test, seconds (iperf3 -h).
const DURATION_S: &str = "10";
/// Default rate of a UDP stream, bits per second (iperf3 -h).
const UDP_RATE_BITS_PER_S: f64 = 1e6;
/// Default bytes of a datagram: the segment size of the control connection (iperf_client_api.c), which
/// over Ethernet, with TCP's timestamps, is this.
const UDP_LENGTH_BYTES: u64 = 1448;
/// The same over IPv6.
const UDP_LENGTH_V6_BYTES: u64 = 1428;
/// Default bytes of a TCP write (iperf3 -h).
const TCP_LENGTH_BYTES: u64 = 128 * 1024;

/// Surrounds the line from which scripts learn that the server listens (iperf_server_api.c).
const RULE: &str = "-----------------------------------------------------------";

const LOG_FILE: &str = "what is printed goes to the end of that file";
const PID_FILE: &str = "the process id is written there";
const NO_FILE: &str = "files are sent by `goodput test HOST --source FILE`";
const NO_SCTP: &str = "goodput has no SCTP";
const OWN_LIMITS: &str = "goodput has time limits of its own";

const OPTIONS: &[Opt] = &[
    both(
        Some('p'),
        Some("port"),
        One("PORT"),
        Joined("the port of the target"),
        Joined("`--port`"),
    ),
    both(
        Some('f'),
        Some("format"),
        One("UNIT"),
        With(&["--format-units"], same),
        With(&["--format-units"], same),
    ),
    both(
        Some('i'),
        Some("interval"),
        One("SECONDS"),
        With(&["--interval"], same),
        With(&["--interval"], same),
    ),
    both(Some('I'), Some("pidfile"), One("FILE"), Joined(PID_FILE), Joined(PID_FILE)),
    refused(Some('F'), Some("file"), One("FILE"), NO_FILE),
    both(
        Some('A'),
        Some("affinity"),
        One("N[,M]"),
        Joined("`--pin`, and `--pin far:` for what follows the comma"),
        Refused("start goodput with taskset(1) instead"),
    ),
    both(
        Some('B'),
        Some("bind"),
        One("HOST[%DEV]"),
        Joined("`--bind`, and `--device` for what follows the %"),
        With(&["--bind"], same),
    ),
    both(
        None,
        Some("bind-dev"),
        One("DEV"),
        With(&["--device"], same),
        Refused("goodput's server listens on addresses, not on devices"),
    ),
    ignored(Some('V'), Some("verbose"), Nothing, "the lines that it adds are not printed"),
    both(
        Some('J'),
        Some("json"),
        Nothing,
        Joined("`--format iperf3`"),
        Joined("`--format iperf3`"),
    ),
    both(
        None,
        Some("json-stream"),
        Nothing,
        Joined("`--format iperf3-stream`"),
        Joined("`--format iperf3-stream`"),
    ),
    refused(
        None,
        Some("json-stream-full-output"),
        Nothing,
        "use --json-stream for the events, or -J for all in one object",
    ),
    both(None, Some("logfile"), One("FILE"), Joined(LOG_FILE), Joined(LOG_FILE)),
    ignored(None, Some("forceflush"), Nothing, "lines are written at once"),
    refused(None, Some("timestamps"), Maybe("FORMAT"), "lines carry no time of day"),
    ignored(None, Some("rcv-timeout"), One("MS"), OWN_LIMITS),
    ignored(None, Some("snd-timeout"), One("MS"), OWN_LIMITS),
    ignored(None, Some("cntl-ka"), Maybe("IDLE/INTERVAL/COUNT"), OWN_LIMITS),
    client(None, Some("gsro"), Nothing, Ignored("goodput's movers decide on offload themselves")),
    ignored(Some('d'), Some("debug"), Maybe("LEVEL"), "goodput says more with `goodput -v`"),
    both(
        Some('m'),
        Some("mptcp"),
        Nothing,
        Flag(&["--mptcp"]),
        Ignored("a client's connections fall back to TCP"),
    ),
    both(Some('v'), Some("version"), Nothing, Joined("the version"), Joined("the version")),
    both(Some('h'), Some("help"), Nothing, Joined("this list"), Joined("this list")),
    server(Some('s'), Some("server"), Nothing, Joined("`goodput serve`")),
    server(Some('D'), Some("daemon"), Nothing, Joined("it leaves the terminal")),
    server(Some('1'), Some("one-off"), Nothing, Flag(&["--one-off"])),
    server(None, Some("server-bitrate-limit"), One("RATE"), Joined("`--max-rate`; 0 is no limit")),
    server(None, Some("server-max-duration"), One("SECONDS"), With(&["--max-duration"], same)),
    server(None, Some("idle-timeout"), One("SECONDS"), Ignored(OWN_LIMITS)),
    server(None, Some("rsa-private-key-path"), One("FILE"), With(&["--rsa-private-key"], same)),
    server(None, Some("authorized-users-path"), One("FILE"), With(&["--users-file"], same)),
    server(
        None,
        Some("time-skew-threshold"),
        One("SECONDS"),
        Refused("goodput allows 10 s, iperf3's own default"),
    ),
    client(Some('c'), Some("client"), One("HOST[%DEV]"), Joined("`goodput test iperf3://HOST`")),
    client(None, Some("sctp"), Nothing, Refused(NO_SCTP)),
    client(Some('X'), Some("xbind"), One("NAME"), Refused(NO_SCTP)),
    client(None, Some("nstreams"), One("N"), Refused(NO_SCTP)),
    client(Some('u'), Some("udp"), Nothing, Joined("`--udp`, at 1 Mbit/s without `-b`")),
    client(None, Some("connect-timeout"), One("MS"), Ignored(OWN_LIMITS)),
    client(
        Some('b'),
        Some("bitrate"),
        One("RATE[/BURST]"),
        Joined(
            "`--rate`, times the streams: goodput's is for all flows together; `--burst` with `-u`, towards the \
             server",
        ),
    ),
    client(None, Some("bandwidth"), One("RATE"), Joined("`--rate`, as `-b`")),
    client(None, Some("pacing-timer"), One("US"), Ignored("goodput paces each write separately")),
    client(None, Some("fq-rate"), One("RATE"), With(&["--max-pacing"], decimal_rate_text)),
    client(Some('t'), Some("time"), One("SECONDS"), Joined("`--time`, 10 without it")),
    client(Some('n'), Some("bytes"), One("BYTES"), Joined("`--bytes`")),
    client(
        Some('k'),
        Some("blockcount"),
        One("N"),
        Joined("`--bytes`, times the length of a block"),
    ),
    client(
        Some('l'),
        Some("length"),
        One("BYTES"),
        Joined("`--chunk`, 128K, 1448 or over IPv6 1428 without it"),
    ),
    client(None, Some("cport"), One("PORT"), With(&["--source-port"], same)),
    client(Some('P'), Some("parallel"), One("N"), With(&["--flows"], same)),
    client(Some('R'), Some("reverse"), Nothing, Flag(&["--reverse"])),
    client(None, Some("bidir"), Nothing, Flag(&["--both"])),
    client(Some('w'), Some("window"), One("BYTES"), With(&["--sndbuf", "--rcvbuf"], size)),
    client(Some('C'), Some("congestion"), One("NAME"), With(&["--congestion"], same)),
    client(Some('M'), Some("set-mss"), One("BYTES"), With(&["--mss"], same)),
    client(Some('N'), Some("no-delay"), Nothing, Flag(&["--nodelay"])),
    both(
        Some('4'),
        Some("version4"),
        Nothing,
        Flag(&["--ipv4"]),
        Refused("name an address with -B instead"),
    ),
    both(
        Some('6'),
        Some("version6"),
        Nothing,
        Flag(&["--ipv6"]),
        Ignored("goodput's server listens to both"),
    ),
    client(Some('S'), Some("tos"), One("TOS"), Joined("`--dscp`")),
    client(None, Some("dscp"), One("DSCP"), Joined("`--dscp`, the last of `-S` and it")),
    client(Some('L'), Some("flowlabel"), One("N"), Refused("goodput sets no flow label")),
    client(
        Some('Z'),
        Some("zerocopy"),
        Maybe("WHAT"),
        Joined("`--mover=sendfile`; nothing over UDP, as iperf3"),
    ),
    client(None, Some("skip-rx-copy"), Nothing, Flag(&["--receive-mover=discard"])),
    client(
        Some('O'),
        Some("omit"),
        One("SECONDS"),
        Joined("`--omit`, with a length in seconds; 0 leaves slow start to goodput's own rule"),
    ),
    client(Some('T'), Some("title"), One("TEXT"), With(&["--format-title"], same)),
    client(None, Some("extra-data"), One("TEXT"), Refused("goodput's JSON has no place for it")),
    client(None, Some("get-server-output"), Nothing, Flag(&["--peer-output"])),
    client(
        None,
        Some("udp-counters-64bit"),
        Nothing,
        Ignored("goodput chooses what the test needs"),
    ),
    client(None, Some("repeating-payload"), Nothing, Refused("goodput has one kind of payload")),
    client(
        None,
        Some("dont-fragment"),
        Nothing,
        Joined("`--dont-fragment` with `-u`; nothing over TCP, as iperf3"),
    ),
    client(None, Some("username"), One("NAME"), With(&["--username"], same)),
    client(None, Some("rsa-public-key-path"), One("FILE"), With(&["--rsa-public-key"], same)),
    both(
        None,
        Some("use-pkcs1-padding"),
        Nothing,
        Flag(&["--pkcs1-padding"]),
        Flag(&["--pkcs1-padding"]),
    ),
];

fn mode(typed: &ParsedArguments) -> Result<Mode, Refusal> {
    match (typed.has("-c"), typed.has("-s")) {
        _ if typed.has("-h") => Ok(Mode::Help),
        _ if typed.has("-v") => Ok(Mode::Version),
        (true, true) => Err(Refusal::because("parameter error - cannot be both server and client")),
        (true, false) => Ok(Mode::Client),
        (false, true) => Ok(Mode::Server),
        (false, false) => {
            Err(Refusal::because("parameter error - must either be a client (-c) or server (-s)"))
        }
    }
}

fn as_client(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let host = typed.value("-c").unwrap_or_default();
    let (host, device) = values::host_and_device(host);
    let (bind, bind_device) = values::host_and_device(typed.value("-B").unwrap_or_default());
    own.insert(1, values::target(PROGRAM.protocol, host, typed.value("-p")));
    own.extend(device.or(bind_device).map(|device| format!("--device={device}")));
    own.extend((!bind.is_empty()).then(|| format!("--bind={bind}")));
    own.extend(affinity(typed)?);
    own.extend(service(typed)?);
    own.extend(transport(typed)?);
    own.push(length(typed)?);
    own.extend(omit(typed)?);
    own.extend([format!("--format={}", format(typed)), "--no-store".into()]);
    Ok(own)
}

fn format(typed: &ParsedArguments) -> &'static str {
    match (typed.has("-J"), typed.has("--json-stream")) {
        (_, true) => "iperf3-stream",
        (true, _) => "iperf3",
        _ => "iperf3-text",
    }
}

/// The warm-up, which needs a length in seconds: with a number of bytes, the sender would have to learn
/// when the warm-up ends.
fn omit(typed: &ParsedArguments) -> Result<Option<String>, Refusal> {
    let seconds = typed.read("-O", values::seconds)?.filter(|seconds| *seconds > 0.0);
    if seconds.is_some() && (typed.has("-n") || typed.has("-k")) {
        return Err(Refusal::because("option -O: goodput omits seconds of a test of seconds, -t"));
    }
    Ok(seconds.map(|seconds| format!("--omit={seconds}")))
}

/// The CPU of this end and, after a comma, the server's.
fn affinity(typed: &ParsedArguments) -> Result<Vec<String>, Refusal> {
    let cpus = typed.read("-A", |text| {
        let (near, far) = match text.split_once(',') {
            Some((near, far)) => (near, Some(far)),
            None => (text, None),
        };
        let all = [Some(near), far].into_iter().flatten();
        match all.map(str::parse::<u16>).all(|cpu| cpu.is_ok()) {
            true => Ok((near.to_string(), far.map(String::from))),
            false => Err("write the number of a CPU, or two with a comma between".into()),
        }
    })?;
    let Some((near, far)) = cpus else { return Ok(Vec::new()) };
    let far = far.map(|cpu| format!("--pin=far:{cpu}"));
    Ok([Some(format!("--pin={near}")), far].into_iter().flatten().collect())
}

/// The DSCP of the packets, by the last of both options, which set the same field.
fn service(typed: &ParsedArguments) -> Result<Option<String>, Refusal> {
    let dscp = match typed.last_of(&["-S", "--dscp"]) {
        Some("-S") => typed.read("-S", tos)?,
        _ => typed.read("--dscp", dscp)?,
    };
    Ok(dscp.map(|dscp| format!("--dscp={dscp}")))
}

/// UDP's changes, and the rate: iperf3's is for one stream.
fn transport(typed: &ParsedArguments) -> Result<Vec<String>, Refusal> {
    let udp = typed.has("-u");
    let name = typed.last_of(&["-b", "--bandwidth"]).unwrap_or("-b");
    let (rate, burst) = typed.read(name, rate_and_burst)?.unzip();
    let streams = typed.read("-P", values::count)?.unwrap_or(1);
    let mut own: Vec<String> = Vec::new();
    own.extend(udp.then(|| "--udp".into()));
    own.extend((udp && typed.has("--dont-fragment")).then(|| "--dont-fragment".into()));
    own.extend((!udp && typed.has("-Z")).then(|| "--mover=sendfile".into()));
    let rate = rate.or(udp.then_some(UDP_RATE_BITS_PER_S));
    own.extend(rate.map(|rate| format!("--rate={}", values::rate(rate * streams as f64))));
    let block = block(typed)?;
    if let Some(blocks) = burst.flatten() {
        if !udp {
            return Err(Refusal(format!("option {name}: goodput sends bursts with -u only")));
        }
        own.push(format!("--burst={}", blocks.saturating_mul(block)));
    }
    own.push(format!("--chunk={block}"));
    Ok(own)
}

/// `RATE[/BLOCKS]`.
fn rate_and_burst(text: &str) -> Result<(f64, Option<u64>), String> {
    match text.split_once('/') {
        Some((rate, burst)) => Ok((decimal_rate(rate)?, Some(values::count(burst)?))),
        None => Ok((decimal_rate(text)?, None)),
    }
}

fn block(typed: &ParsedArguments) -> Result<u64, Refusal> {
    let host = typed.value("-c").unwrap_or_default();
    let standard = match (typed.has("-u"), typed.has("-6") || host.contains(':')) {
        (false, _) => TCP_LENGTH_BYTES,
        (true, false) => UDP_LENGTH_BYTES,
        (true, true) => UDP_LENGTH_V6_BYTES,
    };
    Ok(typed.read("-l", bytes)?.unwrap_or(standard))
}

fn length(typed: &ParsedArguments) -> Result<String, Refusal> {
    let given = ["-t", "-n", "-k"].iter().filter(|name| typed.has(name)).count();
    if given > 1 {
        return Err(Refusal::because(
            "parameter error - only one test end condition (-t, -n, -k) may be specified",
        ));
    }
    if let Some(bytes) = typed.read("-n", bytes)? {
        return Ok(format!("--bytes={bytes}"));
    }
    if let Some(blocks) = typed.read("-k", bytes)? {
        let bytes = blocks.checked_mul(block(typed)?);
        let too_many = || Refusal::because("option -k: too many bytes");
        return Ok(format!("--bytes={}", bytes.ok_or_else(too_many)?));
    }
    if typed.read("-t", values::seconds)? == Some(0.0) {
        return Err(Refusal::because("option -t: goodput has no test without an end"));
    }
    Ok(format!("--time={}", typed.value("-t").unwrap_or(DURATION_S)))
}

fn as_server(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let port = typed.value("-p").unwrap_or("5201");
    own.extend(values::listen(PROGRAM.protocol, port));
    let limit = typed.read("--server-bitrate-limit", limit)?.filter(|rate| *rate > 0.0);
    own.extend(limit.map(|rate| format!("--max-rate={rate}")));
    // One client at a time, as in iperf3: other clients learn that the server is busy.
    own.push("--exclusive=busy".into());
    let format = format(typed);
    own.push(format!("--format={format}"));
    // JSON is printed alone.
    own.push(match format {
        "iperf3-text" => format!("--announce={RULE}\nServer listening on {port} (test #1)\n{RULE}"),
        _ => "--announce=".into(),
    });
    Ok(own)
}

/// `RATE[/SECONDS]`; goodput's limit needs no averaging time.
fn limit(text: &str) -> Result<f64, String> {
    decimal_rate(text.split_once('/').map_or(text, |(rate, _)| rate))
}
