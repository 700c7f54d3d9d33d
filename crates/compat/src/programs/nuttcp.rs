//! nuttcp, with the options of 6.1.2 (nuttcp-6.1.2.c, main).

use super::files::Files;
use super::option::Means::{Flag, Ignored, Joined, Refused, With};
use super::option::Value::{Maybe, None as Nothing, One};
use super::option::{Mode, Opt, Refusal, both, client, ignored, refused, server};
use super::parsed::ParsedArguments;
use super::program::Program;
use super::values::{
    self, NuttcpRate, bytes, dscp, nuttcp_rate, nuttcp_seconds, nuttcp_window, same, tos,
};
use crate::formats;

/// The program.
pub const PROGRAM: Program = Program {
    name: "nuttcp",
    protocol: "nuttcp",
    version: "nuttcp-6.1.2",
    usage: ["nuttcp [-t|-r] [options] HOST", "nuttcp -S [options]"],
    takes_host: true,
    options: OPTIONS,
    mode,
    client: as_client,
    server: as_server,
    // nuttcp -S forks unless an option forbids it.
    background: |typed| !typed.has("--nofork"),
    files: |_| Files::default(),
    again: |_| None,
};

/// Default length of a test, seconds (nuttcp-6.1.2.c, DEFAULT_TIMEOUT).
const DURATION_S: f64 = 10.0;
/// Default bytes of a write (nuttcp -h).
const TCP_LENGTH_BYTES: u64 = 65536;
/// Default bytes of a datagram: the largest power of two up to 8K that is no longer than a segment of
/// the control connection (nuttcp-6.1.2.c, line 2325), on a path of 1500 bytes.
const UDP_LENGTH_BYTES: u64 = 1024;
/// Default rate over UDP, bits per second (nuttcp-6.1.2.c, DEFAULTRATE).
const UDP_RATE_BITS_PER_S: f64 = 1e6;

const NO_FILE: &str = "goodput moves its own payload, not standard input or output";
const NO_MAPPED: &str = "goodput keeps IPv4 and IPv6 apart";
const OF_CLIENT: &str = "the client's plan decides it";

const OPTIONS: &[Opt] = &[
    client(Some('t'), None, Nothing, Ignored("this is what nuttcp does without -r")),
    client(Some('r'), None, Nothing, Flag(&["--reverse"])),
    both(Some('4'), None, Nothing, Flag(&["--ipv4"]), Ignored("goodput's server listens to both")),
    both(Some('6'), None, Nothing, Flag(&["--ipv6"]), Ignored("goodput's server listens to both")),
    client(Some('c'), None, One("DSCP"), With(&["--dscp"], dscp_or_tos)),
    both(
        Some('l'),
        None,
        One("BYTES"),
        Joined("`--chunk`; without it 64K, or for UDP 1K, as nuttcp on a path of 1500 bytes"),
        Ignored(OF_CLIENT),
    ),
    refused(Some('s'), None, Nothing, NO_FILE),
    client(
        Some('n'),
        None,
        One("N[kmgtp]"),
        Joined("`--bytes`: number of buffers, or bytes with a suffix (powers of 1024)"),
    ),
    both(
        Some('w'),
        None,
        One("[s]KB"),
        With(&["--sndbuf", "--rcvbuf"], window),
        Refused(OF_CLIENT),
    ),
    both(
        Some('p'),
        None,
        One("PORT"),
        With(&["--data-port"], data_port),
        Ignored("the client says where the data goes"),
    ),
    both(Some('P'), None, One("PORT"), Joined("the port of the target"), Joined("`--port`")),
    client(
        Some('u'),
        None,
        Maybe("u"),
        Joined("`--udp`, at 1 Mbit/s without -R; -uu without a rate"),
    ),
    refused(Some('g'), None, One("GROUP"), "goodput has no multicast"),
    refused(Some('j'), None, Nothing, "nuttcp measures jitter in its own way"),
    refused(Some('o'), None, Nothing, "goodput compares no clocks of two hosts"),
    refused(None, Some("packet-burst"), One("N"), "goodput sends packets one by one"),
    refused(Some('m'), None, One("TTL"), "goodput has no multicast"),
    client(Some('M'), None, One("BYTES"), With(&["--mss"], same)),
    client(Some('N'), None, One("N"), With(&["--flows"], same)),
    client(
        Some('R'),
        None,
        One("RATE"),
        Joined("`--rate`, paced from packet to packet with -Ri and without; p are packets of `-l`"),
    ),
    client(Some('T'), None, One("TIME"), Joined("`--time`, 10 without it; m, h and d as nuttcp")),
    client(Some('i'), None, One("TIME"), Joined("`--interval`")),
    client(Some('I'), None, One("NAME"), With(&["--format-title"], same)),
    client(
        Some('F'),
        None,
        Nothing,
        Ignored("goodput opens the data connections itself, whichever way they send"),
    ),
    client(Some('a'), None, Nothing, Ignored("goodput tries once")),
    both(
        Some('x'),
        None,
        One("c#"),
        Joined("`--pin` for c#; what else begins with x is refused"),
        Refused("start goodput with taskset(1) for a CPU, or nice(1) for a priority"),
    ),
    ignored(Some('d'), None, Nothing, "the kernel does nothing on SO_DEBUG"),
    both(
        Some('v'),
        None,
        Nothing,
        Joined("`--format nuttcp-verbose`, or nuttcp-verbose-parse"),
        Ignored("the server prints nothing"),
    ),
    ignored(Some('b'), None, Maybe("WHAT"), "the brief line, without columns of single streams"),
    client(Some('D'), None, Nothing, Flag(&["--nodelay"])),
    ignored(Some('B'), None, Nothing, "goodput writes no output that could be blocked"),
    both(
        Some('f'),
        None,
        One("FORMAT"),
        Joined("`--format nuttcp-parse` for parse; -beta and -cwnd change nothing; else refused"),
        Ignored("the server prints nothing"),
    ),
    ignored(None, Some("disable-v4-mapped"), Nothing, NO_MAPPED),
    refused(None, Some("enable-v4-mapped"), Nothing, NO_MAPPED),
    server(Some('S'), None, Maybe("f|P"), Joined("`goodput serve`, which leaves the terminal")),
    server(Some('1'), None, Nothing, Flag(&["--one-off"])),
    server(
        None,
        Some("idle-data-timeout"),
        One("SECONDS"),
        Ignored("goodput has time limits of its own"),
    ),
    server(
        None,
        Some("no3rdparty"),
        Nothing,
        Ignored("only `goodput serve --third-party HOST` allows it"),
    ),
    server(None, Some("nofork"), Nothing, Joined("it stays in the terminal")),
    server(None, Some("single-threaded"), Nothing, Ignored("one client does not wait for another")),
    both(Some('h'), Some("help"), Nothing, Joined("this list"), Joined("this list")),
    both(Some('V'), None, Nothing, Joined("the version"), Joined("the version")),
];

fn mode(typed: &ParsedArguments) -> Result<Mode, Refusal> {
    let server = typed.has("-S") || typed.has("-1");
    Ok(match typed.operands() {
        _ if typed.has("-h") => Mode::Help,
        _ if typed.has("-V") => Mode::Version,
        _ if server => Mode::Server,
        [] => {
            return Err(Refusal::because(
                "no host is named; goodput has no \"classic\" mode, use -S for a server",
            ));
        }
        [_] => Mode::Client,
        _ => {
            return Err(Refusal::because(
                "goodput asks no server to measure with a third party; start it on the first host",
            ));
        }
    })
}

fn as_client(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let [host] = typed.operands() else {
        return Err(Refusal::because("name one host"));
    };
    if host.contains('/') && !host.contains("://") {
        return Err(Refusal::because("goodput's control and data connections go to one address"));
    }
    own.insert(1, values::target(PROGRAM.protocol, host, typed.value("-P")));
    own.extend(typed.has("-u").then(|| "--udp".into()));
    own.extend(rate(typed)?.map(|rate| format!("--rate={}", values::rate(rate))));
    own.extend(typed.read("-x", cpu)?.map(|cpu| format!("--pin={cpu}")));
    own.push(format!("--chunk={}", buffer(typed)?));
    own.push(length(typed)?);
    if let Some(seconds) = typed.read("-i", nuttcp_seconds)? {
        // 0 asks for nuttcp's default of one second. An interval as long as the test is ignored.
        let seconds = if seconds == 0.0 { 1.0 } else { seconds };
        if typed.has("-n") || seconds < duration(typed)? {
            own.push(format!("--interval={seconds}"));
        }
    }
    let parse = match typed.value("-f") {
        None | Some("-beta" | "-cwnd") => false,
        Some("parse") => true,
        Some(other) => {
            return Err(Refusal(format!(
                "option -f{other} is refused: the line has its usual columns"
            )));
        }
    };
    let format = formats::nuttcp::format(parse, typed.has("-v")).id;
    own.extend([format!("--format={format}"), "--no-store".into()]);
    Ok(own)
}

fn buffer(typed: &ParsedArguments) -> Result<u64, Refusal> {
    let standard = if typed.has("-u") { UDP_LENGTH_BYTES } else { TCP_LENGTH_BYTES };
    Ok(typed.read("-l", bytes)?.unwrap_or(standard))
}

/// Bits per second, if a rate is given; 0 is no limit.
fn rate(typed: &ParsedArguments) -> Result<Option<f64>, Refusal> {
    Ok(match (typed.read("-R", nuttcp_rate)?, typed.value("-u")) {
        (Some(NuttcpRate::Bits(bits)), _) => Some(bits),
        (Some(NuttcpRate::Packets(packets)), _) => Some(packets * buffer(typed)? as f64 * 8.0),
        (None, Some("")) => Some(UDP_RATE_BITS_PER_S),
        (None, Some(_)) => Some(0.0),
        (None, None) => None,
    })
}

fn length(typed: &ParsedArguments) -> Result<String, Refusal> {
    let Some(count) = typed.read("-n", count)? else {
        return Ok(format!("--time={}", duration(typed)?));
    };
    if typed.has("-T") {
        return Err(Refusal::because("options -n and -T: goodput ends a test by one of them"));
    }
    let bytes = match count {
        Count::Bytes(bytes) => Some(bytes),
        Count::Buffers(buffers) => buffers.checked_mul(buffer(typed)?),
    };
    let too_many = || Refusal::because("option -n: too many bytes");
    Ok(format!("--bytes={}", bytes.ok_or_else(too_many)?))
}

fn duration(typed: &ParsedArguments) -> Result<f64, Refusal> {
    let seconds = typed.read("-T", nuttcp_seconds)?.filter(|seconds| *seconds > 0.0);
    Ok(seconds.unwrap_or(DURATION_S))
}

/// What `-n` counts.
enum Count {
    Bytes(u64),
    Buffers(u64),
}

/// A number with a suffix counts bytes (nuttcp-6.1.2.c, nbuf_bytes).
fn count(text: &str) -> Result<Count, String> {
    match text.strip_suffix(['b', 'B']) {
        Some(number) => values::count(number).map(Count::Bytes),
        None if text.ends_with(|c: char| c.is_ascii_digit()) => {
            values::count(text).map(Count::Buffers)
        }
        None => bytes(text).map(Count::Bytes),
    }
}

/// `-ws` sets the server's window, which goodput does not set separately; `-wb` sets both, as goodput
/// does anyway.
fn window(text: &str) -> Result<String, String> {
    match text.strip_prefix('s') {
        Some(_) => Err("goodput sets the windows of both ends with -w".into()),
        None => nuttcp_window(text.strip_prefix('b').unwrap_or(text)),
    }
}

/// `-xc#` is the client's CPU; `-xcs#` and `-xc#/#` also set the server's, `-xP` a priority and `-xt` a
/// traceroute.
fn cpu(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix('c').and_then(|cpu| cpu.parse().ok());
    number.ok_or_else(|| {
        format!("-x{text} is refused: goodput can pin this end only, with -xc and the CPU's number")
    })
}

/// Source and destination ports (`-p#:#`, since 7.3.1) are not distinguished.
fn data_port(text: &str) -> Result<String, String> {
    match text.contains(':') {
        true => Err("the kernel chooses goodput's source ports; choose one".into()),
        false => same(text),
    }
}

/// With a t behind it, a whole type of service.
fn dscp_or_tos(text: &str) -> Result<String, String> {
    match text.strip_suffix(['t', 'T']) {
        Some(number) => tos(number),
        None => dscp(text),
    }
}

fn as_server(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let port = typed.value("-P").unwrap_or("5000");
    own.extend(values::listen(PROGRAM.protocol, port));
    own.push("--announce=".into());
    Ok(own)
}
