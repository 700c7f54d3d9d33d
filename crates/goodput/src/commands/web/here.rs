//! What the pages show and do besides the history: on this host, by the settings and the engine.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use goodput_fleet::Surveyed;
use goodput_model::{CheckReport, Direction, EndName, Record, SettingRef};
use goodput_settings::{ChangeKind, GuardProgram, Patience, Scope, Setting, Standing, UndoRequest};
use goodput_store::{Store, StoreError};
use goodput_web::{
    ChangesPart, LoggedChange, MeasureAsked, Measures, MeshAsked, PathChange, Program, Running,
    SettingLine,
};

use crate::args::{Cli, refused};
use crate::commands::fleet::{Asked, Memory, survey};
use crate::commands::report::in_words;
use crate::commands::{measured, path_changes, saved};
use crate::data_dirs;
use crate::exit;
use crate::os_error::without_numbers;
use crate::report::{self, watch};
use crate::running::{self, Followable, Head};

/// This host.
pub struct ThisHost {
    /// Where the journals and the log of changes are.
    pub state_dir: PathBuf,
    /// The file that names the sites of the matrix; none: all hosts are sites.
    pub mesh: Option<PathBuf>,
    /// What the records of the matrix say.
    pub memory: Mutex<Memory>,
}

impl ThisHost {
    fn all_standing(&self) -> Result<Vec<Standing>, String> {
        goodput_settings::standing(&self.state_dir).map_err(|why| self.unread_log(&why))
    }

    fn unread_log(&self, why: &std::io::Error) -> String {
        without_numbers(&format!("can't read the log in {}: {why}", self.state_dir.display()))
            .into_owned()
    }
}

impl Program for ThisHost {
    fn history(&self) -> Result<Store, StoreError> {
        data_dirs::history_to_read()
    }

    fn path_changes(&self, history: &Store, target: &str) -> Result<Vec<PathChange>, StoreError> {
        let found = path_changes::events(history, target)?;
        let of_target = found.iter().filter(|event| event.target() == target);
        Ok(of_target.filter_map(watch::for_a_page).collect())
    }

    fn mesh(&self, history: &Store, asked: &MeshAsked) -> Result<Surveyed, String> {
        let MeshAsked { since, slow_percent } = asked;
        let asked = Asked { mesh: self.mesh.as_deref(), since, slow_percent: *slow_percent };
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        survey(history, &asked, &mut memory).map_err(|why| exit::in_words(&why))
    }

    fn check(&self) -> Result<CheckReport, String> {
        let report = goodput_engine::check(&[], None, &measured::now());
        let report = report.map_err(|why| without_numbers(&why.to_string()).into_owned())?;
        let text = serde_json::to_string(&report).map_err(|why| why.to_string())?;
        serde_json::from_str(&without_numbers(&text)).map_err(|why| why.to_string())
    }

    fn settings(&self) -> Vec<SettingLine> {
        let devices = goodput_kernel::devices(&[]).unwrap_or_default();
        let of_host = goodput_settings::settings::ALL.iter().filter(|setting| !setting.is_plan());
        of_host.flat_map(|setting| lines(setting, &devices)).collect()
    }

    fn changes(&self, before: Option<u64>, most: usize) -> Result<ChangesPart, String> {
        let part = goodput_settings::log_part(&self.state_dir, before, most);
        let part = part.map_err(|why| self.unread_log(&why))?;
        Ok(ChangesPart {
            changes: part.changes.into_iter().map(shown).collect(),
            older: part.older,
        })
    }

    fn standing(&self) -> Result<Vec<LoggedChange>, String> {
        Ok(self.all_standing()?.into_iter().map(|standing| shown(standing.logged)).collect())
    }

    fn take_back(&self, change: &LoggedChange) -> Result<String, String> {
        let is_it = |standing: &Standing| shown(standing.logged.clone()) == *change;
        let standing = self.all_standing()?.into_iter().find(is_it);
        let standing = standing.ok_or("it is no longer in effect")?;
        let effective = standing.take_back(&self.state_dir, GuardProgram::current());
        let effective = effective.map_err(|why| why.to_string())?;
        let (setting, now) = (&standing.setting, &standing.logged.to);
        Ok(format!("{setting}: {now} → {effective} (until the next boot)"))
    }

    fn saved(&self) -> Vec<String> {
        goodput_settings::saved().iter().map(saved::described).collect()
    }

    fn remove_saved(&self) -> Vec<String> {
        let removed = goodput_settings::remove_saved().into_iter();
        let said = removed.map(|(file, outcome)| match outcome {
            Ok(()) => format!("removed {}", saved::described(&file)),
            Err(why) => why.to_string(),
        });
        said.collect()
    }

    fn leftovers(&self) -> Vec<String> {
        let left = goodput_settings::leftovers(&self.state_dir);
        left.iter().map(ToString::to_string).collect()
    }

    fn undo(&self) -> Result<Vec<String>, String> {
        let patience = Patience::for_a_guard(|_| {});
        let request = UndoRequest::default();
        let undone = goodput_settings::undo_as_asked(&self.state_dir, request, patience);
        let reports = undone.map_err(|why| why.to_string())?;
        let text: Vec<_> = reports.iter().map(ToString::to_string).collect();
        Ok(text.iter().flat_map(|report| report.lines()).map(Into::into).collect())
    }

    fn left_at_hosts(&self) -> Vec<String> {
        let left = goodput_remote::leftovers(&self.state_dir);
        left.iter().map(ToString::to_string).collect()
    }

    fn undo_at_hosts(&self) -> Vec<String> {
        let reports = goodput_remote::undo(
            &self.state_dir,
            UndoRequest::default(),
            &goodput_remote::Notify::default(),
        );
        let text: Vec<_> = reports.iter().map(ToString::to_string).collect();
        text.iter().flat_map(|report| report.lines()).map(Into::into).collect()
    }

    fn in_words(&self, record: Record) -> Record {
        in_words(&record).unwrap_or(record)
    }

    fn report(&self, record: &Record) -> String {
        report::result::on_page(record)
    }

    fn measurement(&self, asked: &MeasureAsked) -> Result<Command, String> {
        if asked.what != Measures::Compare && !asked.settings.is_empty() {
            return Err("only a comparison takes a setting; choose the comparison".into());
        }
        let words = words(asked);
        let typed = ["goodput"].into_iter().chain(words.iter().map(String::as_str));
        Cli::from_words(typed.map(Into::into)).map_err(|why| refused::in_words(&why))?;
        // The program as it was started, also if its file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.args(words).env("GOODPUT_STATE_DIR", &self.state_dir);
        data_dirs::pass_history_on(&mut command);
        Ok(command)
    }

    fn running(&self) -> Vec<Running> {
        let shown = |Followable { id, head, events }| {
            let Head { command, target, started } = head;
            Running { id, command, target, started, events: Box::new(events) }
        };
        running::all(&self.state_dir).into_iter().map(shown).collect()
    }

    fn cause(&self, rule: &str) -> Option<&'static str> {
        goodput_diagnose::rules::find(rule).map(|rule| rule.title)
    }
}

/// The command line that measures what is asked for. Values stay with their options, so that none is read as another one.
fn words(asked: &MeasureAsked) -> Vec<String> {
    let mut words: Vec<String> =
        [asked.what.command(), "--json-stream", "--end-with-input"].map(Into::into).into();
    let flags = [
        ("--reverse", asked.direction == Direction::Reverse),
        ("--both", asked.direction == Direction::Both),
        ("--udp", asked.udp),
    ];
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).into()));
    let values = [
        ("time", &asked.time),
        ("flows", &asked.flows),
        ("rate", &asked.rate),
        ("congestion", &asked.congestion),
        ("server-key", &asked.server_key),
    ];
    let given = values.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    words.extend(given.map(|(name, value)| format!("--{name}={value}")));
    words.push("--".into());
    words.push(asked.target.clone());
    words.extend(asked.settings.iter().cloned());
    words
}

/// The setting wherever this host has it.
fn lines(setting: &Setting, devices: &[String]) -> Vec<SettingLine> {
    let scopes: Vec<Option<&str>> = match setting.scope {
        Scope::Host => vec![None],
        Scope::Device => devices.iter().map(|device| Some(device.as_str())).collect(),
        Scope::Route => vec![Some("default")],
        // Which classes there are, nobody but the administrator knows.
        Scope::Class | Scope::Plan => Vec::new(),
    };
    let line = |scope: Option<&str>| {
        let scope = scope.map(Into::into);
        let asked = SettingRef { end: EndName::Near, name: setting.id.into(), scope };
        let value = goodput_settings::read(&asked).map_err(|why| why.to_string());
        SettingLine { name: asked.to_string(), title: setting.title.into(), value }
    };
    scopes.into_iter().map(line).collect()
}

/// A network namespace, as the kernel names it.
fn namespace(number: u64) -> String {
    match goodput_settings::network_namespace() == Some(number) {
        true => "this one".into(),
        false => format!("net:[{number}]"),
    }
}

fn shown(change: goodput_settings::LoggedChange) -> LoggedChange {
    let time = jiff::Timestamp::from_second(change.at_unix_s.try_into().unwrap_or(i64::MAX));
    let what = match change.what {
        ChangeKind::Set => "set",
        ChangeKind::PutBack => "put back",
    };
    LoggedChange {
        time: time.map_or("unknown".into(), |time| time.to_string()),
        setting: change.setting,
        from: change.from,
        to: change.to,
        what: what.into(),
        run: change.run.unwrap_or_default(),
        place: change.netns.map(namespace).unwrap_or_default(),
        host: change.host.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(what: Measures) -> MeasureAsked {
        MeasureAsked {
            what,
            target: "-nas".into(),
            settings: Vec::new(),
            time: None,
            direction: Direction::Send,
            flows: None,
            udp: false,
            rate: None,
            congestion: None,
            server_key: None,
        }
    }

    fn refused(asked: &MeasureAsked) -> String {
        let host = ThisHost { state_dir: "/none".into(), mesh: None, memory: Mutex::default() };
        host.measurement(asked).map(|_| ()).unwrap_err()
    }

    #[test]
    fn what_a_form_asks_for_is_a_command_line_in_which_no_value_is_an_option() {
        let full = MeasureAsked {
            settings: vec!["chunk=4K,8K".into()],
            time: Some("2s".into()),
            direction: Direction::Both,
            flows: Some("4".into()),
            udp: true,
            rate: Some("100mbit".into()),
            congestion: Some("--keep".into()),
            ..asked(Measures::Compare)
        };
        assert_eq!(
            words(&full).join(" "),
            "compare --json-stream --end-with-input --both --udp --time=2s --flows=4 --rate=100mbit \
             --congestion=--keep -- -nas chunk=4K,8K"
        );
        let host = ThisHost { state_dir: "/none".into(), mesh: None, memory: Mutex::default() };
        for asked in [full, asked(Measures::Test), asked(Measures::Tune)] {
            assert!(host.measurement(&asked).is_ok(), "{asked:?}");
        }
    }

    #[test]
    fn the_command_line_says_what_is_wrong() {
        let time = |time: &str| MeasureAsked { time: Some(time.into()), ..asked(Measures::Test) };
        assert!(refused(&time("soon")).starts_with("--time"), "{}", refused(&time("soon")));
        let none = MeasureAsked { flows: Some("0".into()), ..asked(Measures::Tune) };
        assert!(refused(&none).starts_with("--flows"), "{}", refused(&none));
        assert!(refused(&asked(Measures::Compare)).contains("SETTING"), "no setting");
        let settings = vec!["chunk=4K,8K".into()];
        let test = MeasureAsked { settings, ..asked(Measures::Test) };
        assert!(refused(&test).contains("only a comparison"), "{}", refused(&test));
    }
}
