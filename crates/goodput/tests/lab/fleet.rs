//! A fleet of agents on hosts of their own.

use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use goodput_lab::{Host, Lab, Scenario};
use goodput_model::{Direction, Family};
use goodput_testing::servers::{self, Running, nats_in};
use goodput_testing::wait_for;
use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::kept_records::records;
use crate::neighbours::Test;
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![Test::of_facts("fleet::a_pair_behind_a_link_is_tested", a_pair_behind_a_link_is_tested)]
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
fn a_pair_behind_a_link_is_tested() -> Result<(), Failed> {
    if !servers::has("nats-server") {
        return Ok(());
    }
    let lab = Lab::up(&scenario()?)?;
    let homes: Vec<TempDir> = (0..4).map(|_| tempfile::tempdir()).collect::<Result<_, _>>()?;
    let [storage, near, far, home] = [0, 1, 2, 3].map(|number| homes[number].path());
    let address = lab.far().address(Family::V4);
    let _nats = nats(&lab, storage, address)?;
    let url = format!("nats://{address}:{PORT}");
    let agent = |host: &Host, home: &Path, name: &str| -> Result<Running, Failed> {
        let mut command = goodput(host, home, &["fleet", "agent", "--nats", &url, "--name", name])?;
        let log = std::fs::File::create(home.join("log"))?;
        let running = Running(command.stdout(log).spawn()?);
        let has_name =
            || std::fs::read_to_string(home.join("log")).is_ok_and(|log| !log.is_empty());
        wait_for("the agent to have its name", has_name);
        Ok(running)
    };
    let _agents = [agent(lab.near(), near, "near")?, agent(lab.far(), far, "far")?];
    let mesh = home.join("mesh.toml");
    let text =
        format!("[test]\nlength = \"2s\"\n[site.far]\ntarget = \"{address}\"\n[site.near]\n");
    std::fs::write(&mesh, text)?;
    let mesh = mesh.display().to_string();
    let output =
        goodput(lab.near(), home, &["fleet", "run", &mesh, "--nats", &url, "--once"])?.output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let kept = records(home);
    let mut directions: Vec<_> = kept.iter().map(|record| record.plan.direction).collect();
    directions.sort_by_key(|direction| *direction == Direction::Send);
    let rates: Vec<_> = kept.iter().map(|record| record.result.goodput_bits_per_s.0).collect();
    let over_the_link = rates.iter().all(|rate| (1e6..50e6).contains(rate));
    let ways = [Direction::Reverse, Direction::Send];
    match output.status.code() == Some(0) && directions == ways && over_the_link {
        true => Ok(()),
        false => Err(format!("{}: {rates:?} {directions:?}: {said}", output.status).into()),
    }
}
