//! The helper's main loop.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use goodput_model::{EndName, SettingRef};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::message::{Answer, LONGEST_PACKET_BYTES, Refusal, Request, Work, answer_packet};
use crate::allowlist::AllowedSettings;
use crate::changes::Changes;
use crate::error::SettingError;
use crate::guard::GuardProgram;
use crate::journal::Asker;
use crate::lookup::{check_values, machine};
use crate::setting::Assignment;

/// Clients with changed settings at the same time; each has a journal and a guard.
const MOST_CLIENTS: usize = 32;
/// Settings that one client changes.
const MAX_SETTINGS: usize = 64;

/// The helper's whole life: answers the server at the other end of standard input, and when that is closed, puts back
/// what is still changed. Journals are kept in `state_dir`. Returns the exit code: 0 if
/// nothing is left changed, 1 if something is, 2 if standard input is no such connection.
pub fn helper_main(state_dir: &Path, allowed: &AllowedSettings) -> i32 {
    let stdin = std::io::stdin();
    let program = GuardProgram::current();
    let clients = BTreeMap::new();
    Worker { state_dir: state_dir.into(), allowed, program, clients }.run(stdin.as_fd())
}

/// The helper's state.
struct Worker<'a> {
    state_dir: PathBuf,
    allowed: &'a AllowedSettings,
    /// The guard of each client's changes.
    program: GuardProgram,
    clients: BTreeMap<u64, Client>,
}

/// One client of the server.
struct Client {
    changes: Changes,
    settings: BTreeSet<SettingRef>,
}

impl Worker<'_> {
    fn run(mut self, server: BorrowedFd<'_>) -> i32 {
        // Reports to the server that the helper is ready.
        if send(server, &answer_packet(Ok(String::new())), SendFlags::NOSIGNAL).is_err() {
            return 2;
        }
        let mut packet = vec![0; LONGEST_PACKET_BYTES + 1];
        loop {
            let received = rustix::io::retry_on_intr(|| {
                recv(server, packet.as_mut_slice(), RecvFlags::empty())
            });
            let answer = match received {
                Ok((0, _)) | Err(_) => break,
                Ok((length, _)) => self.answer(&packet[..length]),
            };
            if send(server, &answer_packet(answer), SendFlags::NOSIGNAL).is_err() {
                break;
            }
        }
        self.put_back()
    }

    fn answer(&mut self, packet: &[u8]) -> Answer {
        let Request { client, is_here, work } = Request::parse(packet).map_err(refused)?;
        match work {
            Work::Read(setting) => {
                let setting = SettingRef { end: EndName::Near, ..setting };
                self.allowed.check_read(&setting)?;
                crate::lookup::read(&setting).map_err(Refusal::from)
            }
            Work::Check(arm) => self.check(client, &arm),
            Work::Apply(setting, value) => {
                let setting = SettingRef { end: EndName::Near, ..setting };
                self.check_apply(client, &setting, &value)?;
                self.apply((client, asker(is_here)), &setting, &value)
            }
            Work::Hold => self.client((client, asker(is_here))).map(|_| "held".into()),
            Work::Restore => self.restore(client),
        }
    }

    /// Whether a client may give these settings these values one after the other, and whether this host would take them.
    fn check(&self, client: u64, arm: &[Assignment]) -> Answer {
        if arm.len() > MAX_SETTINGS {
            return Err(refused(format!("one client may change at most {MAX_SETTINGS} settings")));
        }
        let own = |(setting, value): &Assignment| {
            (SettingRef { end: EndName::Near, ..setting.clone() }, value.clone())
        };
        let arm: Vec<Assignment> = arm.iter().map(own).collect();
        for (setting, value) in &arm {
            self.check_apply(client, setting, value)?;
        }
        check_values(&arm)?;
        Ok("nothing is known against it".into())
    }

    /// Whether a client may give a setting this value. What was there before the client came may always return, even
    /// if it is out of bounds.
    fn check_apply(
        &self,
        client: u64,
        setting: &SettingRef,
        value: &str,
    ) -> Result<(), SettingError> {
        self.allowed.check_change(setting)?;
        let out_of_bounds = match self.allowed.check_apply(setting, value) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        match self.was_there(client, setting, value) {
            Ok(true) => Ok(()),
            _ => Err(out_of_bounds),
        }
    }

    fn was_there(
        &self,
        client: u64,
        setting: &SettingRef,
        value: &str,
    ) -> Result<bool, SettingError> {
        let machine = machine(setting)?;
        let known = self.clients.get(&client).and_then(|client| client.changes.original(setting));
        let before = known.map_or_else(|| machine.read(setting), |value| Ok(value.to_owned()))?;
        Ok(machine.same(&before, &machine.normalise(setting, value)?))
    }

    fn apply(&mut self, who: (u64, Asker), setting: &SettingRef, value: &str) -> Answer {
        let client = self.client(who)?;
        if !client.settings.contains(setting) && client.settings.len() >= MAX_SETTINGS {
            return Err(refused(format!("one client may change at most {MAX_SETTINGS} settings")));
        }
        client.settings.insert(setting.clone());
        client.changes.apply(setting, value).map_err(Refusal::from)
    }

    fn client(&mut self, (number, asker): (u64, Asker)) -> Result<&mut Client, Refusal> {
        if !self.clients.contains_key(&number) && self.clients.len() >= MOST_CLIENTS {
            return Err(refused(format!(
                "{MOST_CLIENTS} clients have changed settings here; wait until one disconnects"
            )));
        }
        match self.clients.entry(number) {
            std::collections::btree_map::Entry::Occupied(client) => Ok(client.into_mut()),
            std::collections::btree_map::Entry::Vacant(place) => {
                let changes = Changes::begin_for(asker, &self.state_dir, self.program.clone())?;
                Ok(place.insert(Client { changes, settings: BTreeSet::new() }))
            }
        }
    }

    fn restore(&mut self, number: u64) -> Answer {
        let Some(mut client) = self.clients.remove(&number) else {
            return Ok("nothing was changed".into());
        };
        let report = client.changes.restore();
        if report.is_clean() { Ok("put back".into()) } else { Err(refused(report.to_string())) }
    }

    /// The server is gone: puts everything back.
    fn put_back(self) -> i32 {
        let mut left = 0;
        for mut client in self.clients.into_values() {
            let report = client.changes.restore();
            if !report.is_clean() {
                left = 1;
                // If nobody reads standard error, there is nobody to report to.
                let _ = writeln!(io::stderr(), "goodput: the server is gone: {report}");
            }
        }
        left
    }
}

/// For whom a client's changes are made.
fn asker(is_here: bool) -> Asker {
    if is_here { Asker::ClientHere } else { Asker::ClientElsewhere }
}

fn refused(why: String) -> Refusal {
    Refusal { why, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard, in_scene};

    #[test]
    fn a_host_that_another_run_changes_is_busy_and_a_client_that_holds_it_keeps_others_out() {
        in_scene(|state_dir| {
            let allowed = AllowedSettings::new(vec!["link.txqueuelen@*".parse().unwrap()]);
            let clients = BTreeMap::new();
            let (state_dir, program) = (state_dir.to_path_buf(), guard());
            let mut worker =
                Worker { state_dir: state_dir.clone(), allowed: &allowed, program, clients };
            let mut asked = |work: Work| {
                let request = Request { client: 1, is_here: false, work };
                worker.answer(&request.packet().unwrap())
            };
            let queue: SettingRef = "link.txqueuelen@eth0".parse().unwrap();
            let apply = || Work::Apply(queue.clone(), "500".into());
            let other = Changes::begin(&state_dir, guard()).unwrap();
            for work in [Work::Hold, apply()] {
                let refused = asked(work).unwrap_err();
                assert!(refused.busy && !refused.not_permitted, "{refused:?}");
            }
            drop(other);
            assert_eq!(asked(Work::Hold), Ok("held".into()));
            assert_eq!(asked(Work::Hold), Ok("held".into()), "still");
            let busy = Changes::begin(&state_dir, guard()).map(drop).unwrap_err();
            assert!(busy.is_busy(), "{busy}");
            let forbidden = Work::Apply("link.mtu@eth0".parse().unwrap(), "1400".into());
            assert!(!asked(forbidden).unwrap_err().busy, "that is for good");
            assert_eq!(asked(apply()), Ok("500".into()));
            assert_eq!(asked(Work::Restore), Ok("put back".into()));
            assert!(Changes::begin(&state_dir, guard()).is_ok());
        });
    }

    #[test]
    fn what_was_there_may_return_though_it_is_out_of_bounds() {
        in_scene(|state_dir| {
            let allowed = AllowedSettings::new(vec!["*".parse().unwrap()]);
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            // The bucket of eth0 is shorter than two of its frames.
            let burst: SettingRef = "qdisc.tbf.burst@eth0".parse().unwrap();
            let before = crate::read(&burst).unwrap();
            changes.apply(&burst, "200000").unwrap();
            let client = Client { changes, settings: BTreeSet::new() };
            let clients = BTreeMap::from([(1, client)]);
            let (state_dir, program) = (state_dir.to_path_buf(), guard());
            let mut worker =
                Worker { state_dir: state_dir.clone(), allowed: &allowed, program, clients };
            assert!(worker.check_apply(1, &burst, &before).is_ok(), "{before}");
            assert!(worker.check_apply(1, &burst, "1500").unwrap_err().not_permitted());
            assert!(worker.check_apply(2, &burst, &before).is_err(), "another client's change");
            let mut asked = |value: &str| {
                let work = Work::Check(vec![(burst.clone(), value.into())]);
                let request = Request { client: 1, is_here: true, work };
                worker.answer(&request.packet().unwrap())
            };
            assert!(asked("1500").unwrap_err().not_permitted, "checked like a change");
            assert!(asked("300000").is_ok());
            assert_eq!(crate::read(&burst).unwrap(), "200000", "nothing is changed");
            let limit: SettingRef = "qdisc.tbf.limit@eth0".parse().unwrap();
            assert!(worker.check_apply(2, &limit, &crate::read(&limit).unwrap()).is_ok());
            // What may only be read is not even set to what it is.
            let offered = "sysctl.net.ipv4.tcp_available_congestion_control".parse().unwrap();
            assert!(worker.check_apply(2, &offered, &crate::read(&offered).unwrap()).is_err());
        });
    }
}
