//! Every changeable parameter of a network namespace: written once, and all others compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::{EndName, SettingRef};

use crate::footprint::Footprint;
use crate::lookup::machine;
use crate::side_effects::{Cells, capture, changed};
use crate::testing::{guard, in_scene};
use crate::{Changes, Machine};

/// The files below a directory.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

/// Writes another value that the parameter accepts, and returns it.
fn write_another(machine: &dyn Machine, setting: &SettingRef, now: &str) -> Option<String> {
    let number = now.split(' ').next()?.parse::<i64>();
    let words: Vec<String> = match number {
        Ok(first) => [first + 1, first - 1, 0, 1, first * 2, first / 2, first + 1000]
            .map(|number| {
                let rest = now.split(' ').skip(1).map(str::to_owned);
                [number.to_string()].into_iter().chain(rest).collect::<Vec<_>>().join(" ")
            })
            .into(),
        Err(_) => ["reno", "cubic", "userspace", "kernel", "1", "NONE"].map(Into::into).into(),
    };
    words.into_iter().filter(|word| word != now).find(|word| {
        let normalised = machine.normalise(setting, word);
        let written = normalised.and_then(|value| machine.write(setting, &value));
        written.is_ok() && machine.read(setting).is_ok_and(|value| value != now)
    })
}

#[test]
fn a_parameter_alters_only_what_is_known_and_comes_back_with_it() {
    in_scene(|state_dir| {
        let mut all = Vec::new();
        files(Path::new("/proc/sys/net"), &mut all);
        // One device stands for the others; `lo` is there to be altered by mistake.
        let others = ["/eth1/", "/eth2/", "/eth3/", "/mac0/", "/mac2/", "/br0/", "/eth0.10/"];
        all.retain(|file| !others.iter().any(|other| file.to_str().unwrap().contains(other)));
        let look = Footprint::Sysctls(all.clone());
        let now = |setting: &SettingRef| capture(setting, &look).unwrap();
        let here = |file: &&PathBuf| !file.to_str().unwrap().contains("/lo/");
        let (mut written, mut wrong, mut coupled) = (Vec::new(), Vec::new(), 0);
        for file in all.iter().filter(here) {
            let name = file.strip_prefix("/proc/sys").unwrap().to_str().unwrap().replace('/', ".");
            let setting =
                SettingRef { end: EndName::Near, name: format!("sysctl.{name}"), scope: None };
            let machine = machine(&setting).unwrap();
            let (Ok(value), before) = (machine.read(&setting), now(&setting)) else { continue };
            let Some(other) = write_another(machine, &setting, &value) else { continue };
            let own = machine.cell(&setting).unwrap();
            let known: BTreeSet<_> = machine.footprint(&setting).parameters().collect();
            let differs = changed(&before, &now(&setting)).into_keys().filter(|cell| *cell != own);
            let (expected, unknown): (Vec<_>, Vec<_>) =
                differs.partition(|cell| known.contains(cell));
            coupled += expected.len();
            wrong.extend(unknown.into_iter().map(|cell| format!("{name} alters {cell}")));
            let _ = machine.write(&setting, &value);
            restore_cells(&before, &now(&setting));
            written.push((setting, other));
        }
        assert_eq!(wrong, [""; 0]);
        assert!(written.len() > 300 && coupled > 8, "{} {coupled}", written.len());
        put_back(state_dir, &written, &look);
    });
}

/// Restores the initial state for the next parameter, whatever the table knows.
fn restore_cells(before: &Cells, now: &Cells) {
    for (name, text) in crate::side_effects::differing(before, now) {
        let below = name.strip_prefix("sysctl/").unwrap();
        fs::write(Path::new("/proc/sys").join(below), text).unwrap();
    }
}

/// Changes many parameters at once, as an arm of a comparison does, and compares all when they are back.
fn put_back(state_dir: &Path, all: &[(SettingRef, String)], look: &Footprint) {
    for some in all.chunks(50) {
        let before = capture(&some[0].0, look).unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        for (setting, value) in some {
            // A refused change must not be half made either.
            let _ = changes.apply(setting, value);
        }
        let report = changes.restore();
        assert!(report.is_clean(), "{report}");
        let left = changed(&before, &capture(&some[0].0, look).unwrap());
        assert!(left.is_empty(), "{left:?}");
    }
}
