//! `goodput list`: what goodput knows, from the registries.

use anyhow::Result;
use goodput_model::{BitRate, Bytes, Plan, Role, Source, Transport};
use goodput_mover::{AUTO, Mover};

use super::settings;
use crate::args::Listed;
use crate::exit::Exit;
use crate::report::table::Table;
use crate::screen;

/// Prints one registry.
pub fn run(what: Listed) -> Result<Exit> {
    match what {
        Listed::Rules => rules(),
        Listed::Checks => checks(),
        Listed::Settings => _ = settings::list(),
        Listed::FarSettings => far_settings(),
        Listed::Movers => movers()?,
        Listed::Protocols => protocols(),
        Listed::Formats => formats(),
        Listed::Scenarios => scenarios()?,
    }
    Ok(Exit::Fine)
}

fn far_settings() {
    let mut table = Table::new(&["setting", "values", "why no further"]);
    for entry in goodput_settings::others::ALL {
        table.row(&[entry.name, &entry.bounds.to_string(), entry.why]);
    }
    table.print();
}

fn rules() {
    let mut table = Table::new(&["rule", "what it finds"]);
    for rule in goodput_diagnose::rules::ALL {
        table.row(&[rule.id, rule.title]);
    }
    table.print();
}

fn formats() {
    let mut table = Table::new(&["format", "what it prints"]);
    for format in crate::formats::ALL {
        table.row(&[format.id, format.summary]);
    }
    table.print();
}

fn checks() {
    let mut table = Table::new(&["check", "what it looks for"]);
    for check in goodput_diagnose::check::checks::ALL {
        table.row(&[check.id, check.title]);
    }
    table.print();
}

fn movers() -> Result<()> {
    let mut table = Table::new(&["mover", "for", "side", "how it moves payload", "here"]);
    for mover in goodput_mover::movers::ALL {
        for transport in mover.transports() {
            let plan = Plan {
                transport: *transport,
                mover: mover.id().into(),
                chunk_bytes: transport.standard_chunk(),
                // Whether the host can, not whether a plan without it could.
                rate_bits_per_s: Some(BitRate(1e9)),
                ..Plan::standard()
            };
            let here = goodput_mover::check_here(*mover, &plan, mover.roles()[0]);
            let here =
                here.map_or_else(|it| format!("no: {}; {}", it.why, it.needs), |()| forms(*mover));
            let transport = transport_name(*transport);
            table.row(&[mover.id(), transport, &sides(*mover), mover.summary(), &here]);
        }
    }
    table.print();
    chosen()
}

/// That it can run here, and in which forms.
fn forms(mover: &dyn Mover) -> String {
    let forms = mover.roles().iter().filter_map(|role| mover.form(*role));
    std::iter::once("yes".into()).chain(forms).collect::<Vec<_>>().join("; ")
}

fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

/// What a mover does, and with which files: the same on any machine.
pub fn sides(mover: &dyn Mover) -> String {
    let sources = match (mover.takes(&Source::Memory(Bytes(1))), mover.takes(&Source::Input)) {
        (true, true) => " (--source FILE or -)",
        (true, false) => " (--source FILE)",
        _ => "",
    };
    let sinks = if mover.stores() { " (--sink)" } else { "" };
    let side = |role: &Role| match role {
        Role::Sender => format!("sends{sources}"),
        Role::Receiver => format!("receives{sinks}"),
    };
    mover.roles().iter().map(side).collect::<Vec<_>>().join(", ")
}

/// What `auto` stands for on this host.
fn chosen() -> Result<()> {
    for transport in [Transport::Tcp, Transport::Udp] {
        let chunk_bytes = transport.standard_chunk();
        let plan = Plan { transport, chunk_bytes, mover: AUTO.into(), ..Plan::standard() };
        for (role, does) in [(Role::Sender, "sends"), (Role::Receiver, "receives")] {
            let words = match goodput_mover::for_role(&plan, role) {
                Ok(choice) => format!("{}: {}", choice.mover.id(), choice.why.unwrap_or_default()),
                Err(why) => why.to_string(),
            };
            let transport = transport_name(transport);
            screen::line(format_args!("auto {does} {transport} by {words}"))?;
        }
    }
    Ok(())
}

fn protocols() {
    let mut table = Table::new(&["target", "port", "control", "what it is"]);
    for protocol in goodput_wire::protocols::ALL {
        let target = format!("{}://HOST", protocol.id);
        let control = if protocol.has_control { "a connection" } else { "none" };
        table.row(&[&target, &protocol.port.to_string(), control, protocol.summary]);
    }
    table.print();
}

/// The lab's scenarios, how many cases each has, and what it would need that is not here.
pub fn scenarios() -> Result<()> {
    let mut table = Table::new(&["scenario", "cases", "here", "what it shows"]);
    let mut total = 0;
    for builtin in goodput_lab::builtin() {
        let cases = goodput_lab::Scenario::cases(builtin.name)?;
        let scenario = goodput_lab::Scenario::load(builtin.name)?;
        let here = scenario.obstacle().map_or("yes".into(), |needs| format!("needs {needs}"));
        table.row(&[builtin.name, &cases.len().to_string(), &here, &scenario.title]);
        total += cases.len();
    }
    table.print();
    screen::line(format_args!("{total} cases; `goodput lab run NAME --full` runs all of one"))?;
    Ok(())
}

/// Every case of every scenario, a JSON line each: its name, what is wrong, what it is expected to
/// show, and what it would need that is not here.
pub fn cases() -> Result<()> {
    for builtin in goodput_lab::builtin() {
        let default = goodput_lab::Scenario::load(builtin.name)?.case;
        for case in goodput_lab::Scenario::cases(builtin.name)? {
            let needs = case.obstacle();
            screen::line(serde_json::json!({
                "scenario": case.name, "case": case.case, "title": case.title,
                "default": case.case == default, "expected": case.expect, "needs": needs,
            }))?;
        }
    }
    Ok(())
}
