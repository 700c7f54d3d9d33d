//! For tests: a setting that is a plain file, which can kill its process at any step, and the two
//! entry points that make this test binary its own guard and victim.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};

use goodput_model::{EndName, SettingRef};

use crate::error::{SettingError, from_io};
use crate::setting::{Backend, Machine, Scope, Setting};
use crate::{Changes, GuardProgram};

/// `test.file@/path`: the content of that file. A value `clamp` becomes `clamped`, and a value
/// `spoil` is half written and then fails.
pub(crate) static SETTING: Setting = Setting {
    id: "test.file",
    title: "a file",
    why: "Tests need a setting that does no harm.",
    scope: Scope::Device,
    values: "any text",
    example: "test.file@/tmp/x=a,b",
    unset: None,
    backend: Backend::Machine(&TestFile),
};

struct TestFile;

/// Steps until this process kills itself; negative where it does not.
static KILL_AFTER: AtomicI64 = AtomicI64::new(-1);

fn step() {
    if KILL_AFTER.fetch_sub(1, Ordering::SeqCst) == 0 {
        die();
    }
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

impl Machine for TestFile {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        step();
        let path = setting.scope.as_deref().unwrap();
        fs::read_to_string(path).map_err(|e| from_io(setting, "read it", path, e))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        step();
        let path = setting.scope.as_deref().unwrap();
        let written = match value {
            "clamp" => "clamped",
            "spoil" => "spoilt",
            other => other,
        };
        // Renaming makes the change at one instant, as a system call does.
        let new = format!("{path}.new");
        let result = fs::write(&new, written).and_then(|()| fs::rename(&new, path));
        step();
        let result = result.and_then(|()| match value {
            "spoil" => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            _ => Ok(()),
        });
        result.map_err(|e| from_io(setting, "write it", path, e))
    }

    fn normalise(&self, _: &SettingRef, value: &str) -> Result<String, SettingError> {
        Ok(value.into())
    }
}

/// A directory with one `test.file`, which holds `a`, and a place for journals.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        scene.set("a");
        scene
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("value")
    }

    pub(crate) fn setting(&self) -> SettingRef {
        let scope = Some(self.file().to_str().unwrap().into());
        SettingRef { end: EndName::Near, name: SETTING.id.into(), scope }
    }

    pub(crate) fn set(&self, value: &str) {
        fs::write(self.file(), value).unwrap();
    }

    pub(crate) fn value(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    pub(crate) fn begin(&self) -> Changes {
        Changes::begin(&self.state_dir(), guard()).unwrap()
    }

    /// Names of the journals that are not closed.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state_dir()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// This test binary as the guard.
pub(crate) fn guard() -> GuardProgram {
    GuardProgram::this_executable(["--exact", "testing::guard_entry", "--nocapture"])
}

/// The guard, when the last argument is a journal; else an empty test.
#[test]
fn guard_entry() {
    let journal = std::env::args().last().unwrap();
    if journal.ends_with(".journal.jsonl") {
        std::process::exit(crate::guard_main(Path::new(&journal)));
    }
}

const VICTIM: &str = "GOODPUT_TEST_VICTIM";

/// A process of its own that changes the scene's setting.
pub(crate) struct Victim {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Victim {
    /// Starts one that applies `values` one after the other. It kills itself after so many steps.
    pub(crate) fn start(scene: &Scene, values: &str, kill_after: i64) -> Self {
        let job = format!(
            "{}\n{}\n{values}\n{kill_after}",
            scene.state_dir().display(),
            scene.file().display()
        );
        let mut process = Command::new("/proc/self/exe")
            .args(["--exact", "testing::victim_entry", "--nocapture"])
            .env(VICTIM, job)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    /// Waits for the line that begins with `word` and returns the rest; `None`: it has ended.
    pub(crate) fn hear(&mut self, word: &str) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, rest)) = line.split_once(word) {
                return Some(rest.trim().into());
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Tells it to put everything back, and whether it lived to do so.
    pub(crate) fn finish(mut self) -> bool {
        // One that is dead already does not read.
        let _ = self.input.write_all(b"\n");
        self.process.wait().unwrap().success()
    }
}

/// The victim, when the environment says so; else an empty test.
#[test]
fn victim_entry() {
    let Ok(job) = std::env::var(VICTIM) else { return };
    let [state_dir, file, values, kill_after] = &job.lines().collect::<Vec<_>>()[..] else {
        panic!("{job:?}")
    };
    let setting = format!("test.file@{file}").parse().unwrap();
    let mut changes = Changes::begin(Path::new(state_dir), guard()).unwrap();
    println!("\nguard {}", changes.guard_pid().unwrap());
    KILL_AFTER.store(kill_after.parse().unwrap(), Ordering::SeqCst);
    for value in values.split(',') {
        changes.apply(&setting, value).unwrap();
    }
    println!("\napplied all");
    io::stdin().lock().read_line(&mut String::new()).unwrap();
}
