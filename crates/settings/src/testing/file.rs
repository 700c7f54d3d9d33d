//! A setting that is a plain file, and that can kill its process at any step.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use goodput_model::SettingRef;

use crate::error::{SettingError, from_io};
use crate::footprint::Footprint;
use crate::setting::{Backend, Machine, Scope, Setting};

/// `test.file@/path`: the content of that file. A number becomes the next multiple of ten, a value `clamp` becomes
/// `clamped`, and a value `spoil` is half written and then fails.
pub(crate) static SETTING: Setting = Setting {
    id: "test.file",
    title: "a file",
    why: "Tests need a setting that does no harm.",
    scope: Scope::Device,
    values: "any text",
    example: "test.file@/tmp/x=a,b",
    unset: None,
    permanent: |_, _| Vec::new(),
    backend: Backend::Machine(&TestFile),
};

struct TestFile;

/// Steps until this process kills itself; negative if it does not.
static KILL_AFTER: AtomicI64 = AtomicI64::new(-1);

/// Lets this process kill itself after this many steps.
pub(super) fn kill_after(steps: i64) {
    KILL_AFTER.store(steps, Ordering::SeqCst);
}

/// One more step of this process.
pub(crate) fn step() {
    if KILL_AFTER.fetch_sub(1, Ordering::SeqCst) == 0 {
        die();
    }
}

thread_local! {
    static WHEN_NOTED: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `other` between this thread's next note on disk and the corresponding change.
pub(crate) fn when_noted(other: impl FnOnce() + 'static) {
    WHEN_NOTED.set(Some(Box::new(other)));
}

thread_local! {
    static WHEN_WAITING: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `other` as soon as this thread waits for a journal that another process holds.
pub(crate) fn when_waiting(other: impl FnOnce() + 'static) {
    WHEN_WAITING.set(Some(Box::new(other)));
}

/// This thread waits for a journal that another process holds.
pub(crate) fn waiting() {
    if let Some(other) = WHEN_WAITING.take() {
        other();
    }
}

/// An intent is on disk.
pub(crate) fn noted() {
    if let Some(other) = WHEN_NOTED.take() {
        other();
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
        let written = match (value, value.parse::<u64>()) {
            (_, Ok(number)) => number.next_multiple_of(10).to_string(),
            ("clamp", _) => "clamped".into(),
            ("spoil", _) => "spoilt".into(),
            (other, _) => other.to_owned(),
        };
        // Renaming makes the change atomic, like a system call.
        let new = format!("{path}.new");
        let result = fs::write(&new, written).and_then(|()| fs::rename(&new, path));
        step();
        let result = result.and_then(|()| match value {
            "spoil" => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            _ => Ok(()),
        });
        result.map_err(|e| from_io(setting, "write it", path, e))
    }

    fn footprint(&self, _: &SettingRef) -> Footprint {
        Footprint::Nothing
    }

    fn normalise(&self, _: &SettingRef, value: &str) -> Result<String, SettingError> {
        Ok(value.into())
    }
}
