//! A host that has nothing but link-local IPv6 addresses: each means something only together with its
//! device, at either end and in every protocol (RFC 4007 section 6).

use std::fs;
use std::net::{IpAddr, Ipv6Addr};

use goodput_model::Record;
use goodput_netlink::Netlink;
use libtest_mimic::Failed;

use crate::matrix::Test;
use crate::moved::moved;
use crate::space::{Space, exe};

/// The address, and with the device that has it.
const ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
const SCOPED: &str = "fe80::7%left";

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("link_local/every_protocol_works_both_ways", every_protocol),
        ("link_local/options_that_open_ports_of_their_own_work", own_ports),
        ("link_local/local_addresses_may_be_link_local", local_addresses),
        ("link_local/an_address_without_a_device_is_refused_in_words", refusals),
    ]
}

/// A space whose only addresses are link-local. They are used at once: nobody else is there who could
/// have them too (`accept_dad`, Documentation/networking/ip-sysctl.rst).
fn space() -> Result<Space, Failed> {
    let space = Space::new()?;
    space.within(|| -> Result<(), Failed> {
        fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0")?;
        let mut netlink = Netlink::open()?;
        netlink.create_veth("left", "right")?;
        for name in ["left", "right"] {
            let index = netlink.link(name)?.index;
            netlink.set_up(index)?;
        }
        let left = netlink.link("left")?.index;
        netlink.add_address(left, ADDRESS.into(), 64)?;
        Ok(())
    })??;
    Ok(space)
}

fn reached(record: &Record, what: &str) -> Result<(), Failed> {
    let to = record.connections.first().map(|connection| connection.remote.ip());
    if moved(record) && to == Some(IpAddr::V6(ADDRESS)) {
        return Ok(());
    }
    Err(format!("{what}: {:?} {:?}", record.result, record.connections).into())
}

/// What each protocol can do and report.
fn every_protocol() -> Result<(), Failed> {
    let space = space()?;
    let _server = space.serve(&["--allow-unproven-udp"])?;
    let all: &[&[&str]] = &[&[], &["-R"], &["-u"], &["-u", "-R"]];
    let ways = [("goodput", all), ("iperf3", all), ("iperf2", all), ("nuttcp", all)];
    for (scheme, options) in ways.into_iter().chain([("ttcp", &all[..1])]) {
        for options in options {
            let target = format!("{scheme}://[{SCOPED}]");
            let arguments = [&[target.as_str(), "-t", "1", "--rate", "10mbit"], *options].concat();
            let record = space.test(&arguments).map_err(|why| {
                Failed::from(format!("{}: {}", arguments.join(" "), why.message().unwrap_or("?")))
            })?;
            reached(&record, &arguments.join(" "))?;
        }
    }
    Ok(())
}

fn own_ports() -> Result<(), Failed> {
    let space = space()?;
    let _server = space.serve(&[])?;
    for options in [&["--rcvbuf", "64K"][..], &["--congestion", "reno"], &["--both", "-P", "2"]] {
        let record = space.test(&[&[SCOPED, "-t", "1"], options].concat())?;
        reached(&record, &options.join(" "))?;
    }
    Ok(())
}

fn local_addresses() -> Result<(), Failed> {
    let space = space()?;
    let _server = space.serve(&["--bind", SCOPED])?;
    for options in [&["--bind", SCOPED][..], &["--bind", "fe80::7"], &["--device", "left"]] {
        for transport in [&[][..], &["-u", "--rate", "10mbit"]] {
            let options = [&[SCOPED, "-t", "1"], options, transport].concat();
            reached(&space.test(&options)?, &options.join(" "))?;
        }
    }
    let record = space.test(&["fe80::7", "--device", "left", "-t", "1"])?;
    reached(&record, "a device in place of a scope")
}

fn refusals() -> Result<(), Failed> {
    let space = space()?;
    let cases: [(&[&str], &str); 4] = [
        (&["test", "fe80::7", "--no-store"], "write fe80::7%DEVICE"),
        (&["test", "fe80::7%nowhere", "--no-store"], "nowhere"),
        (&["serve", "--bind", "fe80::7"], "fe80::7%DEVICE"),
        (&["serve", "--bind", "fe80::7%nowhere"], "no device nowhere"),
    ];
    for (arguments, words) in cases {
        let finished = space.start(exe(), arguments)?.finish()?;
        if finished.status.code() != Some(2) || !finished.stderr.contains(words) {
            let said = format!("{arguments:?}: {} {}", finished.status, finished.stderr);
            return Err(said.into());
        }
    }
    Ok(())
}
