//! Values of several hosts that are kept together, or not at all.

use std::path::Path;

use anyhow::{Error, Result, anyhow};
use goodput_model::{EndName, SettingRef};
use goodput_remote::{Address, Host, Hosts, Notify};

use super::remote_settings::{self, Kept};
use super::saved;

/// The values of one end's host.
pub type OfEnd = (EndName, Vec<(SettingRef, String)>);

/// Makes values effective at all of their hosts now and after a reboot, or leaves every host as it was. The hosts are taken in
/// the order in which every run takes hosts: in another order, each of two runs could keep the other from its second host.
pub fn keep_all(hosts: &Hosts, ends: &[OfEnd], state_dir: &Path) -> Result<Kept> {
    let named: Vec<EndName> = ends.iter().map(|(end, _)| *end).collect();
    let order = hosts.log_in(&named, &Notify::default())?;
    let there = |host: Host| Some(Place::There(Box::new(host)));
    let here = ends.iter().any(|(end, _)| hosts.at(*end).is_none()).then_some(Place::Here);
    let all = order.before_here.into_iter().map(there).chain([here]);
    let all = all.chain(order.after_here.into_iter().map(there)).flatten();
    let mut prepared: Vec<Prepared> = Vec::new();
    for place in all {
        let Some((_, assignments)) = ends.iter().find(|(end, _)| place.is_of(hosts, *end)) else {
            continue;
        };
        match prepare(place, assignments, state_dir, &mut prepared) {
            Ok(one) => prepared.push(one),
            Err(why) => return Err(taken_back(why, prepared)),
        }
    }
    // From here on, only this host can still refuse, and it is asked last.
    if let Err(why) = prepared.iter_mut().try_for_each(Prepared::release) {
        return Err(taken_back(why, prepared));
    }
    prepared.sort_by_key(|one| matches!(one, Prepared::Here(_)));
    commit(prepared)
}

/// What is in effect and saved at one host, until it is kept or taken back.
enum Prepared {
    Here(Box<saved::Prepared>),
    There(Box<remote_settings::Prepared>),
}

/// Where values are kept.
enum Place {
    /// At this host.
    Here,
    /// At a host with a session.
    There(Box<Host>),
}

impl Place {
    /// Whether it stands for an end.
    fn is_of(&self, hosts: &Hosts, end: EndName) -> bool {
        match self {
            Self::Here => hosts.at(end).is_none(),
            Self::There(host) => hosts.at(end) == Some(host.address()),
        }
    }
}

/// Makes values effective at a place, and saves them. The run is changing the hosts of `others`.
fn prepare(
    place: Place,
    assignments: &[(SettingRef, String)],
    state_dir: &Path,
    others: &mut [Prepared],
) -> Result<Prepared> {
    let Place::There(host) = place else {
        return Ok(Prepared::Here(Box::new(saved::Prepared::new(assignments, state_dir)?)));
    };
    let others = others.iter_mut().filter_map(|other| match other {
        Prepared::There(there) => Some(&mut there.changes),
        Prepared::Here(_) => None,
    });
    let address = host.address().clone();
    let changes = Hosts::begin(state_dir, *host, others)?;
    let prepared = remote_settings::Prepared::new(&address, changes, assignments)?;
    Ok(Prepared::There(Box::new(prepared)))
}

impl Prepared {
    /// Does what only a connection allows, while all hosts can still be put back.
    fn release(&mut self) -> Result<()> {
        match self {
            Self::Here(_) => Ok(()),
            Self::There(there) => Ok(there.changes.release()?),
        }
    }

    fn keep(self) -> Result<Kept> {
        match self {
            Self::There(there) => there.keep(),
            Self::Here(here) => {
                let files = here.keep()?;
                let overruled = saved::overruled(&files);
                let files = files.iter().map(|file| file.path.display().to_string()).collect();
                Ok(Kept { files, overruled })
            }
        }
    }

    fn take_back(self) -> Vec<String> {
        match self {
            Self::Here(here) => here.take_back(),
            Self::There(there) => there.take_back(),
        }
    }

    fn address(&self) -> Option<&Address> {
        match self {
            Self::Here(_) => None,
            Self::There(there) => Some(there.address()),
        }
    }
}

/// Keeps everything. If a journal can't be removed, the rest is taken back, and the error names what stays.
fn commit(prepared: Vec<Prepared>) -> Result<Kept> {
    let mut kept = Kept { files: Vec::new(), overruled: Vec::new() };
    let mut stays = Vec::new();
    let mut all = prepared.into_iter();
    while let Some(one) = all.next() {
        let address = one.address().cloned();
        match one.keep() {
            Ok(more) => {
                kept.files.extend(more.files);
                kept.overruled.extend(more.overruled);
                stays.extend(address);
            }
            Err(why) => {
                let why = stays.iter().fold(why, |why, address| of_kept(&why, address));
                return Err(taken_back(why, all.collect()));
            }
        }
    }
    Ok(kept)
}

/// The same failure after `address` has kept its part.
fn of_kept(why: &Error, address: &Address) -> Error {
    anyhow!(
        "{why:#}; {address} has kept its part already: `goodput settings undo --saved --on {address}` removes it"
    )
}

/// Takes back what is prepared, the last first; the failure also names what is not back.
fn taken_back(why: Error, prepared: Vec<Prepared>) -> Error {
    let left: Vec<String> = prepared.into_iter().rev().flat_map(Prepared::take_back).collect();
    match left.is_empty() {
        true => why,
        false => anyhow!("{why:#}; not everything is back: {}", left.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use goodput_remote::Access;
    use goodput_testing::{FreeBsd, Sshd};

    use super::*;

    /// A simulated FreeBSD with an /etc of its own, behind a real SSH server.
    struct Host {
        folder: tempfile::TempDir,
        userland: FreeBsd,
        sshd: Sshd,
    }

    impl Host {
        /// `None` if this machine has no SSH server.
        fn start(make: fn(FreeBsd) -> FreeBsd) -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let etc = folder.path().join("etc");
            fs::create_dir(&etc).unwrap();
            let userland = make(FreeBsd::in_folder(folder.path()));
            let variables = userland.environment();
            let [one, other] = variables.map(|(name, to)| format!("{name}='{}'", to.display()));
            let sshd = Sshd::start(&format!(
                "[ -n \"$MOUNTED\" ] || {{ export MOUNTED=1; exec unshare --mount \"$0\"; }}\nunset MOUNTED\n\
                 mount --bind '{}' /etc || exit\nexport {one} {other}; exec /bin/sh",
                etc.display()
            ))?;
            Some(Self { folder, userland, sshd })
        }

        /// What could be changed there, and whether a file keeps it.
        fn state(&self) -> (String, bool) {
            (self.userland.settings(), self.folder.path().join("etc/rc.conf").exists())
        }
    }

    /// A configuration of ssh that knows `near` as a, and `far` as b.
    fn config(near: &Sshd, far: &Sshd) -> String {
        let of_near = fs::read_to_string(near.config()).unwrap();
        let port =
            of_near.lines().rev().find_map(|line| line.trim().strip_prefix("Port ")).unwrap();
        let keys = near.config().parent().unwrap().display().to_string();
        let of_far = fs::read_to_string(far.config()).unwrap();
        format!(
            "Host a\n HostName 127.0.0.1\n Port {port}\n IdentityFile {keys}/user\n UserKnownHostsFile {keys}/known\n{of_far}"
        )
    }

    #[test]
    fn what_one_host_can_not_keep_is_kept_at_no_host() {
        let Some(near) = Host::start(|host| host.jail(34)) else { return };
        for (make, may) in [
            (FreeBsd::without_driver_polling as fn(FreeBsd) -> FreeBsd, false),
            (|host| host.jail(35), true),
        ] {
            let Some(far) = Host::start(make) else { return };
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("config");
            fs::write(&file, config(&near.sshd, &far.sshd)).unwrap();
            let [a, b] = ["ssh://a", "ssh://b"].map(|host| Some(host.parse().unwrap()));
            let hosts = Hosts::new(a, b, Access { config: Some(file) });
            let polling = || vec![("polling@em0".parse().unwrap(), "on".to_owned())];
            let ends = [(EndName::Near, polling()), (EndName::Far, polling())];
            let before = [near.state(), far.state()];
            let kept = keep_all(&hosts, &ends, &folder.path().join("state"));
            match kept {
                Ok(kept) => {
                    let files = ["ssh://a: /etc/rc.conf", "ssh://b: /etc/rc.conf"];
                    assert!(may && kept.files == files, "{:?}", kept.files);
                    assert!(near.state().1 && far.state().1);
                }
                Err(why) => {
                    assert!(!may && format!("{why:#}").contains("can't poll"), "{why:#}");
                    assert_eq!([near.state(), far.state()], before, "nothing is kept anywhere");
                }
            }
        }
    }
}
