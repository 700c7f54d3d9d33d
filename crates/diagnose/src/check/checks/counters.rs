//! Counters that should stand still: any growth means something dropped, broken or refused.
//!
//! Sources: include/uapi/linux/if_link.h (device counters), net/core/net-procfs.c (softnet_stat),
//! Documentation/networking/snmp_counter.rst (the rest).

use goodput_model::shell::word;
use goodput_model::{Change, Confidence, Missing, Place};

use super::super::{Answer, Ask, Check, HostView, Scope};
use super::cards::more_queues;
use super::ring::larger;
use crate::finding::{Draft, percent, time};
use crate::names::LINK_TX_QUEUE_LEN;

/// A group of counters with the same meaning.
struct Counters {
    /// The counters; the existing ones are added up.
    counters: &'static [&'static str],
    /// The counter of successes, for comparison.
    of: &'static str,
    /// Share of `of` since the start above which they are worth reporting without being watched.
    since_start: f64,
    /// What each of them is, in the plural.
    each: &'static str,
    /// Changes of settings, as far as their present values are known.
    changes: fn(&HostView) -> Vec<Change>,
    /// A command, and why.
    command: Option<(&'static str, &'static str)>,
    /// What to do besides.
    advice: &'static str,
    permanent: Option<(&'static str, &'static str)>,
    /// Parameters of the kernel that might be too small.
    least: &'static [Least],
    /// Whether the changes, the command and the permanent lines would change anything on this host.
    helps: fn(&HostView) -> bool,
}

/// A parameter of the kernel, and the least that it ought to be.
struct Least {
    name: &'static str,
    /// One number, or several.
    value: &'static str,
    /// What it does.
    why: &'static str,
}

impl Least {
    /// Whether the value raises one of the present numbers and lowers none, or these are unknown.
    fn raises(&self, host: &HostView) -> bool {
        let numbers = |text: &str| -> Option<Vec<u64>> {
            text.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        let present = host.text(&format!("sysctl.{}", self.name)).ok().and_then(numbers);
        let Some((present, least)) = present.zip(numbers(self.value)) else { return true };
        let is_lower = present.iter().zip(&least).any(|(present, least)| least < present);
        !is_lower && present != least
    }

    fn command(&self) -> String {
        let assignment = format!("sysctl.{}={}", self.name, self.value);
        format!("goodput settings set {}", word(&assignment))
    }

    /// Its line in a file of sysctl.d(5).
    fn line(&self) -> String {
        format!("{} = {}", self.name, self.value)
    }
}

/// No setting does it.
const NONE: fn(&HostView) -> Vec<Change> = |_| Vec::new();

/// For what no fact speaks against.
const MAY_HELP: fn(&HostView) -> bool = |_| true;

/// Whether this parameter of the kernel is a number below `value`, or unknown.
fn is_below(host: &HostView, name: &str, value: u64) -> bool {
    host.sysctl_number(name).is_none_or(|present| present < value)
}

/// The card no longer obeys pause frames.
fn heedless(host: &HostView) -> Option<Change> {
    let why = "the sender of pause frames drops instead";
    let is_on = host.text("pause.rx") == Ok("on");
    is_on.then(|| host.change("pause.rx", Some("on".into()), "off", why))
}

fn longer_queue(host: &HostView) -> Option<Change> {
    let now = host.count(LINK_TX_QUEUE_LEN).ok()?;
    let (from, to) = (Some(format!("{now:.0}")), format!("{USUAL_QUEUE:.0}"));
    Some(host.change("link.txqueuelen", from, &to, "a longer queue"))
}

fn longer_backlog(host: &HostView) -> Option<Change> {
    let now = host.sysctl_number(BACKLOG)?.to_string();
    Some(host.sysctl(BACKLOG, &now, &LONG_BACKLOG.to_string(), "a longer backlog"))
}

const BACKLOG: &str = "net.core.netdev_max_backlog";
/// Ten times the kernel's own, packets (net/core/hotdata.c).
const LONG_BACKLOG: u64 = 10_000;
/// Length of a device's queue if nobody set one, packets (include/net/pkt_sched.h, `DEFAULT_TX_QUEUE_LEN`).
const USUAL_QUEUE: f64 = 1000.0;

/// Whether a longer device queue lets fewer packets be dropped: only these disciplines take their length from it
/// (net/sched/sch_generic.c, `pfifo_fast_init`).
fn queue_can_grow(host: &HostView) -> bool {
    let takes = host
        .text("qdisc.kind")
        .map_or(true, |kind| ["pfifo_fast", "mq", "noqueue"].contains(&kind));
    takes && !host.count(LINK_TX_QUEUE_LEN).is_ok_and(|length| length >= USUAL_QUEUE)
}

pub(super) const RING_OVERRUN: Check = Check {
    id: "ring-overrun",
    title: "frames dropped because the card had no room",
    scope: Scope::Device,
    ask: &Counters {
        counters: &["link.rx_missed_errors", "link.rx_fifo_errors"],
        of: "link.rx_packets",
        since_start: 1e-6,
        each: "received frames lost because the ring was full",
        changes: |host| larger(host).into_iter().chain(more_queues(host)).collect(),
        command: None,
        advice: "a larger receive ring, as far as the card has one, and interrupts on more CPUs",
        permanent: Some(("/etc/systemd/network/10-DEV.link", "[Link]\nRxBufferSize=max")),
        least: &[],
        helps: MAY_HELP,
    },
};

pub(super) const FRAME_ERRORS: Check = Check {
    id: "frame-errors",
    title: "frames damaged on the wire",
    scope: Scope::Device,
    ask: &Counters {
        counters: &["link.rx_crc_errors"],
        of: "link.rx_packets",
        since_start: 1e-7,
        each: "frames with a wrong checksum",
        changes: NONE,
        command: None,
        advice: "another cable, port or optic; compare the duplex of both sides",
        permanent: None,
        least: &[],
        helps: MAY_HELP,
    },
};

pub(super) const PAUSE_FRAMES: Check = Check {
    id: "pause-frames",
    title: "pause frames that stop the card from sending",
    scope: Scope::Device,
    ask: &Counters {
        counters: &["pause.rx_frames", "driver.rx_pause"],
        of: "link.tx_packets",
        since_start: 1e-3,
        each: "pause frames received",
        changes: |host| heedless(host).into_iter().collect(),
        command: None,
        advice: "find the sender: a receiver or switch port that can't keep up",
        permanent: Some(("/etc/systemd/network/10-DEV.link", "[Link]\nRxFlowControl=no")),
        least: &[],
        helps: MAY_HELP,
    },
};

pub(super) const LINK_FLAP: Check = Check {
    id: "link-flap",
    title: "a link that goes down and up",
    scope: Scope::Device,
    ask: &Counters {
        counters: &["link.carrier_changes"],
        of: "link.rx_packets",
        // Coming up is a change too, so only a watch shows it.
        since_start: f64::INFINITY,
        each: "times the link went down or up",
        changes: NONE,
        command: Some(("ethtool --set-eee DEV eee off", "energy-efficient Ethernet off")),
        advice: "another cable or port",
        permanent: None,
        least: &[],
        helps: MAY_HELP,
    },
};

pub(super) const LOCAL_DROP: Check = Check {
    id: "local-drop",
    title: "packets dropped before they leave this host",
    scope: Scope::Device,
    ask: &Counters {
        counters: &["qdisc.drops", "link.tx_dropped"],
        of: "link.tx_packets",
        since_start: 1e-4,
        each: "packets dropped before they left",
        changes: |host| longer_queue(host).into_iter().collect(),
        command: None,
        advice: "fq_codel or fq as the queueing discipline, or pacing",
        permanent: Some(("/etc/systemd/network/10-DEV.link", "[Link]\nTransmitQueueLength=1000")),
        least: &[],
        helps: queue_can_grow,
    },
};

pub(super) const SOFTNET_BACKLOG: Check = Check {
    id: "softnet-backlog",
    title: "packets dropped from a CPU's backlog",
    scope: Scope::Host,
    ask: &Counters {
        counters: &["softnet.dropped"],
        of: "softnet.processed",
        since_start: 1e-4,
        each: "packets dropped because a CPU's backlog was full",
        changes: |host| longer_backlog(host).into_iter().collect(),
        command: None,
        advice: "receive packet steering over more CPUs",
        permanent: Some(("/etc/sysctl.d/90-goodput.conf", "net.core.netdev_max_backlog = 10000")),
        least: &[],
        helps: |host| is_below(host, BACKLOG, LONG_BACKLOG),
    },
};

pub(super) const UDP_RECEIVE_BUFFER: Check = Check {
    id: "udp-receive-buffer",
    title: "datagrams dropped because their socket was full",
    scope: Scope::Host,
    ask: &Counters {
        counters: &["snmp.Udp.RcvbufErrors"],
        of: "snmp.Udp.InDatagrams",
        since_start: 1e-3,
        each: "datagrams dropped because a socket's buffer was full",
        // It allows what a program asks for, and does nothing by itself.
        changes: NONE,
        command: None,
        advice: "a larger SO_RCVBUF in the program",
        permanent: None,
        least: &[
            Least {
                name: "net.core.rmem_max",
                value: "16777216",
                why: "allows larger receive buffers",
            },
            Least {
                name: "net.core.rmem_default",
                value: "1048576",
                why: "for programs that ask for none",
            },
        ],
        helps: MAY_HELP,
    },
};

pub(super) const RECEIVE_PRUNE: Check = Check {
    id: "receive-prune",
    title: "data that TCP received and discarded",
    scope: Scope::Host,
    ask: &Counters {
        counters: &[
            "netstat.TcpExt.RcvPruned",
            "netstat.TcpExt.OfoPruned",
            "netstat.TcpExt.TCPRcvQDrop",
            "netstat.TcpExt.TCPOFODrop",
        ],
        of: "snmp.Tcp.InSegs",
        since_start: 1e-5,
        each: "times received data was discarded for lack of memory",
        changes: NONE,
        command: None,
        advice: "larger receive buffers: the third number of net.ipv4.tcp_rmem",
        permanent: None,
        least: &[Least {
            name: "net.ipv4.tcp_rmem",
            value: "4096 131072 67108864",
            why: "allows larger receive buffers",
        }],
        helps: MAY_HELP,
    },
};

pub(super) const CONNECTION_SETUP: Check = Check {
    id: "connection-setup",
    title: "connections rejected because the listen queue was full",
    scope: Scope::Host,
    ask: &Counters {
        counters: &["netstat.TcpExt.ListenOverflows", "netstat.TcpExt.TCPReqQFullDrop"],
        of: "snmp.Tcp.PassiveOpens",
        since_start: 1e-3,
        each: "connections dropped because a listen queue was full",
        changes: NONE,
        command: None,
        advice: "a larger backlog in the program's listen(2)",
        permanent: None,
        least: &[Least {
            name: "net.core.somaxconn",
            value: "4096",
            why: "allows a larger backlog in listen(2)",
        }],
        helps: MAY_HELP,
    },
};

pub(super) const FRAGMENTATION: Check = Check {
    id: "fragmentation",
    title: "datagrams with missing fragments",
    scope: Scope::Host,
    ask: &Counters {
        counters: &["snmp.Ip.ReasmFails"],
        of: "snmp.Ip.ReasmReqds",
        since_start: 1e-3,
        each: "datagrams that could not be reassembled",
        changes: NONE,
        command: None,
        advice: "send datagrams that fit the MTU; for NFS over UDP a smaller rsize, or TCP",
        permanent: None,
        least: &[],
        helps: MAY_HELP,
    },
};

/// The count, whether it harms, and a text.
struct Seen {
    count: f64,
    confidence: Confidence,
    text: String,
}

impl Ask for Counters {
    fn ask(&self, check: &Check, host: &HostView) -> Answer {
        let seen = if host.is_watched() { self.watched(host) } else { self.since_start(host) };
        let Some(Seen { count, confidence, text }) = seen? else { return Ok(None) };
        let fact = self.counters[0];
        let draft = Draft::new(check.id, Place::Near, confidence, &text);
        let draft = draft.saw(Place::Near, fact, count, format!("{text} ({fact})"));
        let helps = (self.helps)(host);
        let changes = if helps { (self.changes)(host) } else { Vec::new() };
        let draft = draft.changes(changes);
        let draft = match self.command.filter(|_| helps) {
            Some((command, why)) => draft.command(Place::Near, command, why),
            None => draft,
        };
        let draft = self.raise(host, draft).advice(self.advice);
        match self.permanent.filter(|_| helps) {
            Some((file, lines)) => draft.permanent(file, lines).found(),
            None => draft.found(),
        }
    }
}

impl Counters {
    /// Adds the commands that raise parameters of the kernel, and the lines that keep them.
    fn raise(&self, host: &HostView, draft: Draft) -> Draft {
        let low: Vec<_> = self.least.iter().filter(|least| least.raises(host)).collect();
        let draft = low
            .iter()
            .fold(draft, |draft, least| draft.command(Place::Near, least.command(), least.why));
        if low.is_empty() {
            return draft;
        }
        let lines: Vec<_> = low.iter().map(|least| least.line()).collect();
        draft.permanent("/etc/sysctl.d/90-goodput.conf", lines.join("\n"))
    }

    fn watched(&self, host: &HostView) -> Result<Option<Seen>, Missing> {
        let (mut grown, mut seconds) = (0u64, 0.0);
        for growth in readable(self.counters.iter().map(|name| host.grown(name)))? {
            grown = grown.saturating_add(growth.count);
            seconds = growth.seconds;
        }
        let text = format!("{grown} {} in {}", self.each, time(seconds));
        let seen = Seen { count: grown as f64, confidence: Confidence::Certain, text };
        Ok((grown > 0).then_some(seen))
    }

    fn since_start(&self, host: &HostView) -> Result<Option<Seen>, Missing> {
        let all = readable(self.counters.iter().map(|name| host.count(name)))?;
        let (count, of): (f64, f64) = (all.iter().sum(), host.count(self.of)?);
        let share = count / (of + count);
        if count == 0.0 || share < self.since_start {
            return Ok(None);
        }
        let text = format!("{count:.0} {} ({}, since boot)", self.each, percent(share));
        Ok(Some(Seen { count, confidence: Confidence::Possible, text }))
    }
}

/// All readable results; the first reason if there are none.
fn readable<T>(all: impl Iterator<Item = Result<T, Missing>>) -> Result<Vec<T>, Missing> {
    let (mut values, mut reason) = (Vec::new(), None);
    for one in all {
        match one {
            Ok(value) => values.push(value),
            Err(why) => reason = reason.or(Some(why)),
        }
    }
    match reason {
        Some(why) if values.is_empty() => Err(why),
        _ => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::view::HostView;
    use super::*;
    use goodput_model::Snapshot;

    fn facts(missed: u64, packets: u64) -> Snapshot {
        let mut facts = Snapshot::default();
        facts.put("link.rx_missed_errors", missed);
        facts.put("link.rx_packets", packets);
        facts
    }

    #[test]
    fn a_growing_counter_is_certain_and_an_old_one_possible() {
        let (before, now) = (facts(3, 1000), facts(9, 2000));
        let unwatched = HostView { device: Some("eth0"), now: &now, before: None };
        let finding = RING_OVERRUN.check(&unwatched).unwrap().unwrap();
        assert_eq!(finding.confidence, Confidence::Possible);
        let watched = HostView { before: Some((&before, 10.0)), ..unwatched };
        let finding = RING_OVERRUN.check(&watched).unwrap().unwrap();
        assert_eq!(finding.confidence, Confidence::Certain);
        assert!(finding.summary.starts_with("6 received frames lost"), "{}", finding.summary);
    }

    #[test]
    fn a_few_long_ago_are_not_worth_a_line() {
        let now = facts(1, 100_000_000);
        let view = HostView { device: Some("eth0"), now: &now, before: None };
        assert_eq!(RING_OVERRUN.check(&view), Ok(None));
        let view = HostView { before: Some((&now, 10.0)), ..view };
        assert_eq!(RING_OVERRUN.check(&view), Ok(None));
    }

    /// The changes that are proposed for drops of a device with this queue.
    fn proposed(kind: &str, length: u64) -> Vec<String> {
        let mut facts = Snapshot::default();
        facts.put("qdisc.drops", 1000u64);
        facts.put("link.tx_packets", 100_000u64);
        facts.put("qdisc.kind", kind);
        facts.put(crate::names::LINK_TX_QUEUE_LEN, length);
        let view = HostView { device: Some("eth0"), now: &facts, before: None };
        let found = LOCAL_DROP.check(&view).unwrap().unwrap();
        assert!(!found.advice.is_empty(), "something else may help");
        found.changes.iter().map(Change::as_argument).collect()
    }

    #[test]
    fn a_backlog_that_is_long_already_is_not_made_longer() {
        let proposed = |packets: &'static str| {
            let mut facts = Snapshot::default();
            facts.put("softnet.dropped", 1000u64);
            facts.put("softnet.processed", 100_000u64);
            facts.put("sysctl.net.core.netdev_max_backlog", packets);
            let view = HostView { device: None, now: &facts, before: None };
            SOFTNET_BACKLOG.check(&view).unwrap().unwrap().changes
        };
        assert_eq!(proposed("1000")[0].to, "10000");
        assert_eq!(proposed("20000"), []);
    }

    #[test]
    fn a_parameter_of_the_kernel_is_only_raised() {
        let advice = |check: &Check, counter: &str, of: &str, present: &[(&str, &str)]| {
            let mut facts = Snapshot::default();
            facts.put(counter, 1000u64);
            facts.put(of, 100_000u64);
            present.iter().for_each(|(name, value)| facts.put(format!("sysctl.{name}"), *value));
            let view = HostView { device: None, now: &facts, before: None };
            let found = check.check(&view).unwrap().unwrap();
            let kept = found.permanent.iter().flat_map(|file| file.lines.lines());
            let sets = found.advice.iter().filter(|text| text.contains("settings set"));
            assert_eq!(sets.count(), kept.clone().count(), "each is set and kept");
            kept.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let of_udp = |max: &'static str, default: &'static str| {
            let present = [("net.core.rmem_max", max), ("net.core.rmem_default", default)];
            let (counter, of) = ("snmp.Udp.RcvbufErrors", "snmp.Udp.InDatagrams");
            advice(&UDP_RECEIVE_BUFFER, counter, of, &present)
        };
        let (max, default) = ("net.core.rmem_max = 16777216", "net.core.rmem_default = 1048576");
        assert_eq!(of_udp("212992", "212992"), [max, default]);
        assert_eq!(of_udp("33554432", "212992"), [default]);
        assert_eq!(of_udp("33554432", "1048576"), [""; 0]);
        let of_listen = |present: &[(&str, &str)]| {
            let (counter, of) = ("netstat.TcpExt.ListenOverflows", "snmp.Tcp.PassiveOpens");
            advice(&CONNECTION_SETUP, counter, of, present).len()
        };
        let listens = |value: &'static str| of_listen(&[("net.core.somaxconn", value)]);
        assert_eq!((of_listen(&[]), listens("128"), listens("65535")), (1, 1, 0));
        let prunes = |rmem: &'static str| {
            let (counter, of) = ("netstat.TcpExt.RcvPruned", "snmp.Tcp.InSegs");
            advice(&RECEIVE_PRUNE, counter, of, &[("net.ipv4.tcp_rmem", rmem)]).len()
        };
        assert_eq!(prunes("4096\t131072\t6291456"), 1);
        assert_eq!(prunes("4096 131072 134217728"), 0);
        assert_eq!(prunes("4096 1048576 6291456"), 0, "the second would be lower");
    }

    #[test]
    fn a_queue_that_is_as_long_already_or_has_another_length_is_not_made_longer() {
        assert_eq!(proposed("pfifo_fast", 100), ["link.txqueuelen@eth0=100,1000"]);
        assert_eq!(proposed("pfifo_fast", 1000), [""; 0]);
        assert_eq!(proposed("tbf", 100), [""; 0]);
    }
}
