//! The options that repeat a measurement, for a command to copy.

use goodput_model::{Bytes, Cache, Direction, Plan, SocketOptions, Source, Transport};

use crate::shell;

/// The options that define what `plan` measures: direction, transport, flows, the payload's source, its load and the
/// sockets; each with a space before it. Not the length, which a comparison chooses. Empty for the standard plan, and for a plain fetch of a `file`.
pub fn options(plan: &Plan, file: bool) -> String {
    let mut options = Vec::new();
    match plan.direction {
        Direction::Send if file => options.push("--write".to_string()),
        Direction::Send => {}
        Direction::Reverse if file => {}
        Direction::Reverse => options.push("-R".to_string()),
        Direction::Both => options.push("--both".into()),
    }
    if plan.transport == Transport::Udp {
        options.push("-u".into());
    }
    if plan.flows > 1 {
        options.push(format!("-P {}", plan.flows));
    }
    match &plan.storage.source {
        Some(Source::File { name, cache }) => {
            let cold = if *cache == Cache::Cold { " --cold" } else { "" };
            options.push(format!("--source {}{cold}", shell::word(name)));
        }
        Some(Source::Memory(size)) => options.push(format!("--size {}", size.0)),
        Some(Source::Input) | None => {}
    }
    options.extend(load(plan, file));
    if plan.storage.header_bytes > 0 {
        options.push(format!("--header {}", plan.storage.header_bytes));
    }
    if plan.storage.header_more {
        options.push("--more".into());
    }
    options.extend(sockets(&plan.socket));
    options.iter().map(|option| format!(" {option}")).collect()
}

/// How fast, in what pieces, and how payload is sent. Whoever fetches a file chooses pieces of its own.
fn load(plan: &Plan, file: bool) -> impl Iterator<Item = String> {
    let rate = plan.rate_bits_per_s.map(|rate| format!("--rate {:.0}bit", rate.0));
    let usual = plan.transport.standard_chunk();
    let chunk = (plan.chunk_bytes != usual && !file).then_some(plan.chunk_bytes.0);
    let mover = (plan.mover != Plan::standard().mover).then(|| format!("--mover {}", plan.mover));
    rate.into_iter().chain(chunk.map(|bytes| format!("--chunk {bytes}"))).chain(mover)
}

/// What was asked of the sockets.
fn sockets(socket: &SocketOptions) -> Vec<String> {
    let named = |name: &str, value: Option<String>| value.map(|value| format!("--{name} {value}"));
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0.to_string());
    let flag = |name: &str, is_set: bool| is_set.then(|| format!("--{name}"));
    let pacing = socket.max_pacing_bits_per_s.map(|rate| format!("{:.0}bit", rate.0));
    [
        named("bind", socket.bind.map(|address| address.to_string())),
        named("device", socket.device.as_deref().map(shell::word)),
        named("congestion", socket.congestion.as_deref().map(shell::word)),
        named("sndbuf", bytes(socket.sndbuf_bytes)),
        named("rcvbuf", bytes(socket.rcvbuf_bytes)),
        named("mss", socket.mss_bytes.map(|mss| mss.to_string())),
        flag("nodelay", socket.nodelay),
        flag("cork", socket.cork),
        named("max-pacing", pacing),
        named("notsent-lowat", bytes(socket.notsent_lowat_bytes)),
        named("priority", socket.priority.map(|priority| priority.to_string())),
        named("dscp", socket.dscp.map(|dscp| dscp.to_string())),
        flag("dont-fragment", socket.dont_fragment),
        flag("mptcp", socket.mptcp),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Storage;

    #[test]
    fn what_was_measured_is_measured_again() {
        assert_eq!(options(&Plan::standard(), false), "");
        assert_eq!(options(&Plan::standard(), true), " --write");
        let fetch = Plan { direction: Direction::Reverse, ..Plan::standard() };
        assert_eq!(options(&fetch, true), "");
        let source = Source::File { name: "it's big".into(), cache: Cache::Cold };
        let storage = Storage {
            source: Some(source),
            header_bytes: 512,
            header_more: true,
            ..Storage::default()
        };
        let direction = Direction::Reverse;
        let plan = Plan { direction, flows: 4, storage, ..Plan::standard() };
        assert_eq!(
            options(&plan, false),
            r" -R -P 4 --source 'it'\''s big' --cold --header 512 --more"
        );
    }

    /// Read again by the program's own options, they give the same plan.
    #[test]
    fn load_and_sockets_are_the_same_again() {
        use clap::Parser;
        let socket = SocketOptions {
            bind: Some("192.0.2.1".parse().unwrap()),
            congestion: Some("reno".into()),
            mss_bytes: Some(1200),
            sndbuf_bytes: Some(Bytes(65_536)),
            dscp: Some(46),
            dont_fragment: true,
            ..SocketOptions::default()
        };
        let plan = Plan {
            transport: Transport::Udp,
            rate_bits_per_s: Some(goodput_model::BitRate(5e8)),
            chunk_bytes: Bytes(1000),
            mover: "gso".into(),
            socket,
            ..Plan::standard()
        };
        let words = options(&plan, false);
        let expected = " -u --rate 500000000bit --chunk 1000 --mover gso --bind 192.0.2.1 --congestion reno \
                        --sndbuf 65536 --mss 1200 --dscp 46 --dont-fragment";
        assert_eq!(words, expected);
        let typed = format!("goodput compare nas mover=copy,gso{words}");
        crate::args::Cli::try_parse_from(typed.split(' ')).unwrap();
    }
}
