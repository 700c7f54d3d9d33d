//! ttcp, with the options that its versions share (ttcp.c, main; the manual page of BRL's).

use super::files::Files;
use super::option::Means::{Flag, Ignored, Joined, Refused, With};
use super::option::Value::{None as Nothing, One};
use super::option::{Mode, Opt, Refusal, both, client, ignored, refused};
use super::parsed::ParsedArguments;
use super::program::Program;
use super::values::{self, bytes, size};

/// The program.
pub const PROGRAM: Program = Program {
    name: "ttcp",
    protocol: "ttcp",
    version: "ttcp",
    usage: ["ttcp -t -s [options] HOST", "ttcp -r -s [options]"],
    takes_host: true,
    options: OPTIONS,
    mode,
    client: as_client,
    server: as_server,
    background: |_| false,
    files: |_| Files::default(),
    again: |_| None,
};

/// Default number of buffers of a test (ttcp.c, nbuf).
const BUFFER_COUNT: u64 = 2048;
/// Default bytes of a buffer (ttcp.c, buflen).
const LENGTH_BYTES: u64 = 8192;

const NO_FILE: &str = "goodput moves its own payload, not standard input or output: add -s";
const OWN_BUFFERS: &str = "goodput's buffers begin at a page";
const OF_SENDER: &str = "the transmitter's options decide it";

const OPTIONS: &[Opt] = &[
    both(Some('t'), None, Nothing, Joined("`goodput test ttcp://HOST`"), Joined("a client")),
    both(
        Some('r'),
        None,
        Nothing,
        Joined("a server"),
        Joined("`goodput serve --one-off --format ttcp`"),
    ),
    both(
        Some('s'),
        None,
        Nothing,
        Joined("needed: without it ttcp moves its standard input"),
        Joined("needed: without it ttcp writes to its standard output"),
    ),
    both(Some('l'), None, One("BYTES"), Joined("`--chunk`, 8192 without it"), Ignored(OF_SENDER)),
    both(Some('n'), None, One("N"), Joined("`--bytes`, times `-l`"), Ignored(OF_SENDER)),
    both(Some('p'), None, One("PORT"), Joined("the port of the target"), Joined("`--port`")),
    both(
        Some('u'),
        None,
        Nothing,
        Flag(&["--udp"]),
        Ignored("goodput's server answers TCP and UDP"),
    ),
    client(Some('D'), None, Nothing, Flag(&["--nodelay"])),
    both(
        Some('b'),
        None,
        One("BYTES"),
        With(&["--sndbuf", "--rcvbuf"], size),
        Refused("goodput's server takes the kernel's own size"),
    ),
    ignored(Some('A'), None, One("BYTES"), OWN_BUFFERS),
    ignored(Some('O'), None, One("BYTES"), OWN_BUFFERS),
    ignored(Some('v'), None, Nothing, "the lines that it adds are not printed"),
    ignored(Some('d'), None, Nothing, "the kernel does nothing on SO_DEBUG"),
    ignored(Some('B'), None, Nothing, "goodput writes no output that could be blocked"),
    refused(Some('T'), None, Nothing, "goodput does not check the payload it receives"),
    refused(Some('f'), None, One("UNIT"), "rates are printed in KB/sec"),
    client(Some('4'), None, Nothing, Flag(&["--ipv4"])),
    client(Some('6'), None, Nothing, Flag(&["--ipv6"])),
    both(Some('h'), None, Nothing, Joined("this list"), Joined("this list")),
];

fn mode(typed: &ParsedArguments) -> Result<Mode, Refusal> {
    let mode = match (typed.has("-t"), typed.has("-r")) {
        _ if typed.has("-h") => return Ok(Mode::Help),
        (true, false) => Mode::Client,
        (false, true) => Mode::Server,
        _ => return Err(Refusal::because("transmit with -t, or receive with -r")),
    };
    if typed.has("-s") { Ok(mode) } else { Err(Refusal::because(NO_FILE)) }
}

fn as_client(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let [host] = typed.operands() else {
        return Err(Refusal::because("name the host of the receiver"));
    };
    own.insert(1, values::target(PROGRAM.protocol, host, typed.value("-p")));
    let buffer = typed.read("-l", bytes)?.unwrap_or(LENGTH_BYTES);
    let count = typed.read("-n", values::count)?.unwrap_or(BUFFER_COUNT);
    let too_many = || Refusal::because("option -n: too many bytes");
    let all = buffer.checked_mul(count).ok_or_else(too_many)?;
    own.extend([format!("--chunk={buffer}"), format!("--bytes={all}")]);
    own.extend(["--format=ttcp".into(), "--no-store".into()]);
    Ok(own)
}

fn as_server(typed: &ParsedArguments, mut own: Vec<String>) -> Result<Vec<String>, Refusal> {
    let port = typed.value("-p").unwrap_or("5001");
    own.extend(values::listen(PROGRAM.protocol, port));
    own.extend(["--one-off", "--format=ttcp", "--announce=ttcp-r: socket"].map(String::from));
    Ok(own)
}
