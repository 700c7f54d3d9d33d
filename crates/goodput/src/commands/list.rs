//! `goodput list`: the contents of the registries.

use anyhow::{Result, bail};
use goodput_model::{BitRate, Plan, Role, Transport};
use goodput_mover::{AUTO, Mover};

use crate::args::{ListArgs, Listed, Narrowed};
use crate::exit::Exit;
use crate::pages::sides;
use crate::report::table::Table;
use crate::screen;

/// A table, possibly of selected rows and columns only.
struct Listing<'a> {
    table: Table,
    narrowed: &'a Narrowed,
    rows: usize,
}

impl<'a> Listing<'a> {
    /// With the headings that are always shown, and the headings that `--long` adds.
    fn new(narrowed: &'a Narrowed, headings: &[&str], more: &[&str]) -> Self {
        let more = if narrowed.long { more } else { &[] };
        Self { table: Table::new(&[headings, more].concat()), narrowed, rows: 0 }
    }

    fn row(&mut self, cells: &[&str], more: &[&str]) {
        let all = [cells, more].concat();
        let wanted = |text: &String| all.iter().any(|cell| cell.contains(text.as_str()));
        if self.narrowed.containing.as_ref().is_none_or(wanted) {
            self.table.row(if self.narrowed.long { &all } else { cells });
            self.rows += 1;
        }
    }

    /// Prints the table. An error if no row contains the requested text.
    fn print(self) -> Result<()> {
        match &self.narrowed.containing {
            Some(text) if self.rows == 0 => {
                bail!("no row of this list contains {text:?}; without it, the list shows all rows")
            }
            _ if self.narrowed.long => Ok(self.table.print_whole()?),
            _ => Ok(self.table.print()?),
        }
    }
}

/// Prints one registry.
pub fn run(args: &ListArgs) -> Result<Exit> {
    let narrowed = &args.narrowed;
    match args.what {
        Listed::Rules => rules(narrowed),
        Listed::Checks => checks(narrowed),
        Listed::Probes => probes(narrowed),
        Listed::Bounds => bounds(narrowed),
        Listed::Settings => settings(narrowed),
        Listed::FarSettings => far_settings(narrowed),
        Listed::Movers => movers(narrowed),
        Listed::Protocols => protocols(narrowed),
        Listed::Formats => formats(narrowed),
        Listed::Scenarios => scenarios(narrowed),
        Listed::Faults => faults(narrowed),
        Listed::Sources => sources(narrowed),
    }
    .map(|()| Exit::Fine)
}

/// Every setting; with --long also its scope and the format of its values.
pub fn settings(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["setting", "what it does"], &["scope", "values"]);
    for setting in goodput_settings::settings::ALL {
        list.row(&[setting.id, setting.title], &[&setting.scope.to_string(), &setting.accepted()]);
    }
    list.print()
}

fn far_settings(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["setting", "values"], &["why no further"]);
    for entry in goodput_settings::allowlist::ALL {
        list.row(&[entry.name, &entry.bounds.to_string()], &[entry.why]);
    }
    list.print()
}

fn rules(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["rule", "what it finds"], &[]);
    for rule in goodput_diagnose::rules::ALL {
        list.row(&[rule.id, rule.title], &[]);
    }
    list.print()
}

fn formats(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["format", "what it prints"], &[]);
    for format in goodput_compat::formats::ALL {
        list.row(&[format.id, format.summary], &[]);
    }
    list.print()
}

fn checks(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["check", "what it looks for"], &[]);
    for check in goodput_diagnose::check::checks::ALL {
        list.row(&[check.id, check.title], &[]);
    }
    list.print()
}

fn probes(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["probe", "what it changes"], &["distinguishes"]);
    for probe in goodput_diagnose::probes::ALL {
        let pairs = probe.pairs.iter().map(|pair| format!("{} from {}", pair.one, pair.other));
        list.row(&[probe.id, probe.title], &[&pairs.collect::<Vec<_>>().join(", ")]);
    }
    list.print()
}

fn faults(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["fault", "what it does"], &[]);
    for fault in goodput_lab::faults::ALL {
        list.row(&[fault.id, fault.summary], &[]);
    }
    list.print()
}

fn sources(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["source", "what it reports"], &[]);
    for source in goodput_kernel::sources::ALL {
        list.row(&[source.id(), source.summary()], &[]);
    }
    list.print()
}

fn bounds(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["bound", "what bounds"], &["formula", "options"]);
    for bound in goodput_ceiling::bounds::ALL {
        list.row(&[bound.id, bound.title], &[bound.source, bound.needs]);
    }
    list.print()
}

fn movers(narrowed: &Narrowed) -> Result<()> {
    let headings = ["mover", "for", "runs here", "how it moves payload"];
    let mut list = Listing::new(narrowed, &headings, &["sides", "here"]);
    for mover in goodput_mover::movers::ALL {
        for transport in mover.transports() {
            let here = runs_here(*mover, *transport);
            let short = if here.is_ok() { "yes" } else { "no" };
            let more = here.unwrap_or_else(|why| why);
            let transport = transport_name(*transport);
            list.row(&[mover.id(), transport, short, mover.summary()], &[&sides(*mover), &more]);
        }
    }
    list.print()?;
    chosen()
}

/// The forms in which a mover can run on this host, or why it can't.
fn runs_here(mover: &dyn Mover, transport: Transport) -> Result<String, String> {
    let plan = Plan {
        transport,
        mover: mover.id().into(),
        chunk_bytes: transport.standard_chunk(),
        // Some movers need a rate. The list shows what the host can do, so the plan has one.
        rate_bits_per_s: Some(BitRate(1e9)),
        ..Plan::standard()
    };
    goodput_mover::check_here(mover, &plan, mover.roles()[0])
        .map(|()| forms(mover))
        .map_err(|it| format!("no: {}; {}", it.why, it.needs))
}

/// Whether it can run here, and in which forms.
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

/// The meaning of `auto` on this host.
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

fn protocols(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["target", "port", "what it is"], &["control"]);
    for protocol in goodput_wire::protocols::ALL {
        let target = format!("{}://HOST", protocol.id);
        let control = if protocol.has_control { "a connection" } else { "none" };
        list.row(&[&target, &protocol.port.to_string(), protocol.summary], &[control]);
    }
    list.print()
}

/// The lab's scenarios, how many cases each has, and what this machine is missing for it.
pub fn scenarios(narrowed: &Narrowed) -> Result<()> {
    let mut list = Listing::new(narrowed, &["scenario", "cases", "what it shows"], &["here"]);
    let mut total = 0;
    for builtin in goodput_lab::builtin() {
        let cases = goodput_lab::Scenario::cases(builtin.name)?;
        let scenario = goodput_lab::Scenario::load(builtin.name)?;
        let here = scenario.obstacle().map_or("yes".into(), |needs| format!("needs {needs}"));
        list.row(&[builtin.name, &cases.len().to_string(), &scenario.title], &[&here]);
        total += cases.len();
    }
    list.print()?;
    screen::line(format_args!(
        "{total} cases; `goodput lab run NAME --full` runs all cases of a scenario"
    ))?;
    Ok(())
}

/// Every case of every scenario, a JSON line each: its name, what is wrong, the expected result,
/// and what this machine is missing for it.
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
