//! A fleet of agents on hosts of their own.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use goodput_lab::{Host, Lab, Scenario};
use goodput_model::{Direction, Family, Record};
use goodput_testing::servers::{self, Running, nats_in};
use goodput_testing::wait_for;
use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::kept_records::records;
use crate::neighbours::Test;
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("fleet::a_pair_behind_a_link_is_tested", || {
            a_pair_behind_a_link_is_tested(Family::V4)
        }),
        Test::of_facts("fleet::a_pair_over_ipv6_is_tested", || {
            a_pair_behind_a_link_is_tested(Family::V6)
        }),
        Test::of_facts(
            "fleet::servers_without_goodput_are_tested",
            servers_without_goodput_are_tested,
        ),
    ]
}

/// In a namespace of the test's own.
const PORT: u16 = 4222;

/// A link of 50 Mbit/s: far from what this machine could do, so that a test over another way would be seen.
fn scenario() -> Result<Scenario, Failed> {
    let text = "name = \"fleet\"\ntitle = \"Two sites of a fleet.\"\n\
        [link.path]\nrate = \"50mbit\"\ndelay = \"2ms\"\n\
        [expect]\nlimit = \"path-rate\"\nend = \"path\"\n";
    Ok(Scenario::parse("fleet", text)?)
}

/// Two hosts with a link between, and a bus at the far one.
struct Stage {
    _nats: Running,
    url: String,
    /// Of each process.
    homes: TempDir,
    lab: Lab,
}

impl Stage {
    /// The bus is reached with this family alone.
    fn set(family: Family) -> Result<Self, Failed> {
        let (lab, homes) = (Lab::up(&scenario()?)?, tempfile::tempdir()?);
        let address = lab.far().address(family);
        let _nats = nats(&lab, &homes.path().join("nats"), address)?;
        let url = format!("nats://{}", SocketAddr::new(address, PORT));
        Ok(Self { _nats, url, homes, lab })
    }

    /// The far host, as a mesh file calls it.
    fn far(&self, family: Family) -> String {
        match self.lab.far().address(family) {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        }
    }

    /// An agent that has its name.
    fn agent(&self, host: &Host, name: &str) -> Result<Running, Failed> {
        let home = self.homes.path().join(name);
        std::fs::create_dir_all(&home)?;
        let arguments = ["fleet", "agent", "--nats", &self.url, "--name", name];
        let mut command = goodput(host, &home, &arguments)?;
        let log = home.join("log");
        let running = Running(command.stdout(std::fs::File::create(&log)?).spawn()?);
        let has_name = || std::fs::read_to_string(&log).is_ok_and(|log| !log.is_empty());
        wait_for("the agent to have its name", has_name);
        Ok(running)
    }

    /// A program at the far host, once it listens there.
    fn server(&self, program: &str, arguments: &[&str], port: u16) -> Result<Running, Failed> {
        let mut command = self.lab.far().command(program)?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn()?);
        // To connect would be its test.
        let listens = || self.lab.far().within(|| listens(port)).is_ok_and(|listens| listens);
        wait_for(&format!("{program} to listen"), listens);
        Ok(running)
    }

    /// What a coordinator at the near host says of one turn, and the records that it keeps.
    fn run(&self, mesh: &str) -> Result<(Output, Vec<Record>), Failed> {
        let home = self.homes.path().join("coordinator");
        std::fs::create_dir_all(&home)?;
        let file = home.join("mesh.toml");
        std::fs::write(&file, mesh)?;
        let file = file.display().to_string();
        let arguments = ["fleet", "run", &file, "--nats", &self.url, "--once"];
        let output = goodput(self.lab.near(), &home, &arguments)?.output()?;
        Ok((output, records(&home)))
    }
}

/// Whether a socket of this namespace listens on a port (proc_net_tcp: the state 0A is `TCP_LISTEN`).
fn listens(port: u16) -> bool {
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/thread-self/net/{name}"));
    let tables = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let is_it = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
            && words.get(3) == Some(&"0A")
    };
    tables.collect::<Vec<_>>().iter().any(|table| table.lines().any(is_it))
}

fn goodput(host: &Host, home: &Path, arguments: &[&str]) -> Result<Command, Failed> {
    let mut command = host.command(exe())?;
    command.args(arguments).env("XDG_DATA_HOME", home).env("XDG_CONFIG_HOME", home);
    command.env("GOODPUT_STATE_DIR", home.join("state")).stdin(Stdio::null());
    Ok(command)
}

/// The bus at the far host, on every address of it.
fn nats(lab: &Lab, storage: &Path, address: IpAddr) -> Result<Running, Failed> {
    let command = lab.far().command("nats-server")?;
    Ok(nats_in(command, storage, PORT, || {
        let reached = lab.near().within(|| TcpStream::connect((address, PORT)).is_ok());
        reached.is_ok_and(|reached| reached)
    }))
}

/// The near site can call and not be called, as behind a NAT: the far one sends to it, too.
fn a_pair_behind_a_link_is_tested(family: Family) -> Result<(), Failed> {
    if !servers::has("nats-server") {
        return Ok(());
    }
    let stage = Stage::set(family)?;
    let (near, far) = (stage.lab.near(), stage.lab.far());
    let _agents = [stage.agent(near, "near")?, stage.agent(far, "far")?];
    let target = stage.far(family);
    let mesh = format!("[test]\nlength = \"2s\"\n[site.far]\ntarget = \"{target}\"\n[site.near]\n");
    let found = stage.run(&mesh)?;
    expect(&found, &[(Direction::Reverse, target.as_str()), (Direction::Send, target.as_str())])
}

/// Debian's servers of other programs, in both directions; no agent is where they are.
fn servers_without_goodput_are_tested() -> Result<(), Failed> {
    if !["nats-server", "iperf3", "nuttcp"].into_iter().all(servers::has) {
        return Ok(());
    }
    let stage = Stage::set(Family::V4)?;
    let _agent = stage.agent(stage.lab.near(), "near")?;
    let _servers = [
        stage.server("iperf3", &["-s", "-p", "5201"], 5201)?,
        stage.server("nuttcp", &["-S", "--nofork", "-P", "5000"], 5000)?,
    ];
    let [iperf3, nuttcp] =
        ["iperf3", "nuttcp"].map(|scheme| format!("{scheme}://{}", stage.far(Family::V4)));
    let mesh = format!(
        "[test]\nlength = \"2s\"\n[site.x]\nserver = \"{iperf3}\"\n[site.y]\nserver = \"{nuttcp}\"\n[site.near]\n"
    );
    let found = stage.run(&mesh)?;
    let said = String::from_utf8_lossy(&found.0.stdout);
    if !said.contains("3 sites, 4 of 4 pairs tested") {
        return Err(format!("x and y are no pair: {said}").into());
    }
    let both = |target| [(Direction::Reverse, target), (Direction::Send, target)];
    expect(&found, &[both(iperf3.as_str()), both(nuttcp.as_str())].concat())
}

/// These tests and no others, all over the link.
fn expect(found: &(Output, Vec<Record>), tests: &[(Direction, &str)]) -> Result<(), Failed> {
    let (output, kept) = found;
    let said = String::from_utf8_lossy(&[&*output.stdout, &output.stderr].concat()).into_owned();
    let mut made: Vec<_> =
        kept.iter().map(|record| (record.plan.direction, record.target.as_str())).collect();
    made.sort_by_key(|(direction, target)| (*target, *direction == Direction::Send));
    let rates: Vec<_> = kept.iter().map(|record| record.result.goodput_bits_per_s.0).collect();
    let over_the_link = rates.iter().all(|rate| (1e6..50e6).contains(rate));
    match output.status.code() == Some(0) && made == tests && over_the_link {
        true => Ok(()),
        false => Err(format!("{}: {rates:?} {made:?}: {said}", output.status).into()),
    }
}
