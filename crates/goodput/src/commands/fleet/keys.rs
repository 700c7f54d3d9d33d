//! `goodput fleet keys`: the users of a fleet, each with a key of its own and with the subjects that it needs.
//!
//! ```text
//! DIR/fleet.conf                           users and rights, for nats-server
//! DIR/coordinator.d/login.nk, sign.nk      of the coordinator
//! DIR/SITE.site/login.nk, coordinator.pub  of the agent of a site
//! ```

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use goodput_bus::Seed;
use goodput_fleet::{Login, Mesh, server_file};

use super::mesh_file;
use super::places::{COORDINATOR_FOLDER, LOGIN_FILE, PUBLIC_FILE, SIGN_FILE};
use crate::args::FleetKeysArgs;
use crate::exit::Exit;
use crate::{key_files, screen, secret_file};

const SERVER_FILE: &str = "fleet.conf";
/// Ends the name of a site's directory.
const SITE_ENDING: &str = ".site";

/// Makes the keys that are missing, and writes the configuration.
pub(super) fn run(args: &FleetKeysArgs) -> Result<Exit> {
    let mesh = mesh_file::read(&args.mesh)?;
    let words = mesh.sites.iter().map(|site| goodput_fleet::word(&site.name));
    let words = words.collect::<Result<Vec<_>, _>>().map_err(|why| anyhow!(why))?;
    let folder = &args.output;
    make(folder)?;
    let coordinator = folder.join(COORDINATOR_FOLDER);
    make(&coordinator)?;
    let signer = seed(&coordinator.join(SIGN_FILE), "signs tasks for the agents", Seed::signer)?;
    let login = seed(&coordinator.join(LOGIN_FILE), "lets the coordinator in", Seed::user)?;
    let mut logins = vec![(Login::of_coordinator(), login.public())];
    let with_word = mesh.sites.iter().zip(&words).enumerate();
    for (index, (site, word)) in with_word.filter(|(_, (site, _))| !site.is_foreign) {
        let own = folder.join(format!("{word}{SITE_ENDING}"));
        make(&own)?;
        let login = seed(&own.join(LOGIN_FILE), &format!("lets {} in", site.name), Seed::user)?;
        write_public(&own.join(PUBLIC_FILE), &signer.public())?;
        let peers = peers(&mesh, index, &words);
        logins.push((Login::of_site(&site.name, word, &peers), login.public()));
    }
    let file = folder.join(SERVER_FILE);
    fs::write(&file, server_file(&logins))
        .with_context(|| format!("can't write {}", file.display()))?;
    say(folder, logins.len() - 1, &signer.public())?;
    Ok(Exit::Fine)
}

fn say(folder: &Path, sites: usize, signer: &str) -> Result<()> {
    let folder = folder.display();
    let sites = if sites == 1 { "1 site".into() } else { format!("{sites} sites") };
    screen::line(format_args!(
        "{sites} and the coordinator have keys in {folder}\n\
         NATS: copy {SERVER_FILE} beside its configuration, and name it there:\n    \
         include \"{SERVER_FILE}\"\n\
         coordinator:\n    \
         goodput fleet run --nkey {COORDINATOR_FOLDER}/{LOGIN_FILE} …\n\
         agent: copy SITE{SITE_ENDING} to its host, and start it there:\n    \
         goodput fleet agent --nkey SITE{SITE_ENDING}/{LOGIN_FILE} …\n\
         tasks are signed by {signer}"
    ))?;
    Ok(())
}

/// The words of the sites that one is tested with and that have an agent.
fn peers(mesh: &Mesh, site: usize, words: &[String]) -> Vec<String> {
    let others = mesh.pairs.iter().filter_map(|pair| match pair.sites {
        [one, two] if one == site => Some(two),
        [one, two] if two == site => Some(one),
        _ => None,
    });
    let with_agent = others.filter(|other| !mesh.sites[*other].is_foreign);
    with_agent.map(|other| words[other].clone()).collect()
}

/// A directory that only this user reads.
fn make(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("can't make the directory {}", folder.display()))
}

/// The seed in a file, made on first use: a key that is in use stays.
fn seed(file: &Path, what: &str, new: impl FnOnce() -> Seed) -> Result<Seed> {
    if file.symlink_metadata().is_ok() {
        let text = secret_file::read(file, "the key")?;
        return Seed::read(&text).with_context(|| format!("can't use the key {}", file.display()));
    }
    let made = new();
    let text = format!("# This key {what}. Whoever reads it can do the same.\n{}\n", made.text()?);
    if !key_files::keep_text(file, "the key", &text, false)? {
        bail!("another process has just made {}; run this again", file.display());
    }
    Ok(made)
}

/// Writes the public key beside a site's own, unless it is there. Another one stays: agents that trust it would refuse
/// every task, so a person decides.
fn write_public(file: &Path, key: &str) -> Result<()> {
    let shown = file.display();
    match fs::read_to_string(file) {
        Ok(there) if there.trim() == key => Ok(()),
        Ok(_) => bail!("{shown} has another key of a coordinator; remove it to trust the new one"),
        Err(why) if why.kind() == ErrorKind::NotFound => {
            fs::write(file, format!("{key}\n")).with_context(|| format!("can't write {shown}"))
        }
        Err(why) => Err(why).with_context(|| format!("can't read {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const MESH: &str = "[site.a]\ntarget = \"a\"\n[site.b]\n";
    const FOREIGN: &str = "[site.x]\nserver = \"iperf3://x\"\n";
    const THIRD: &str = "[site.c]\n[test]\npairs = \"named\"\n[[pair]]\nsites = [\"a\", \"b\"]\n[[pair]]\nsites = [\"a\", \"c\"]\n";

    fn args(folder: &Path, mesh: &str) -> FleetKeysArgs {
        let file = folder.join("mesh.toml");
        fs::write(&file, mesh).unwrap();
        FleetKeysArgs { mesh: file, output: folder.join("keys") }
    }

    #[test]
    fn keys_stay_when_a_site_comes_and_only_their_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        run(&args(folder.path(), MESH)).unwrap();
        let keys = folder.path().join("keys");
        let read = |name: &str| fs::read_to_string(keys.join(name)).unwrap();
        let (first, signer) = (read("a.site/login.nk"), read("coordinator.d/sign.nk"));
        run(&args(folder.path(), &format!("{MESH}{THIRD}"))).unwrap();
        assert_eq!((read("a.site/login.nk"), read("coordinator.d/sign.nk")), (first, signer));
        for name in ["a.site/login.nk", "c.site/login.nk", "coordinator.d/login.nk"] {
            let mode = keys.join(name).metadata().unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let server = read("fleet.conf");
        assert_eq!(server.matches("nkey: U").count(), 4, "{server}");
        // b and c are no pair.
        assert!(server.contains("goodput.call.a.c") && !server.contains("goodput.call.b.c"));
        run(&args(folder.path(), &format!("{MESH}{FOREIGN}"))).unwrap();
        let server_with_foreign = read("fleet.conf");
        assert_eq!(server_with_foreign.matches("nkey: U").count(), 3, "{server_with_foreign}");
        assert!(!keys.join("x.site").exists() && !server_with_foreign.contains("call.x"));
        let secrets = [read("a.site/login.nk"), read("coordinator.d/sign.nk")];
        let seeds = secrets.iter().flat_map(|text| text.lines().skip(1));
        assert!(seeds.clone().count() == 2 && seeds.into_iter().all(|seed| !server.contains(seed)));
    }
}
