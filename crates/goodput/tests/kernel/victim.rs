//! This test binary in other parts: as the guard of changes, and as a run that is killed while it has made some.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use goodput_settings::{Changes, GuardProgram, guard_main};
use libtest_mimic::Failed;

/// This executable as the guard.
pub fn guard() -> GuardProgram {
    GuardProgram::this_executable(["guard"])
}

/// What this process is to do instead of running tests, if its first argument says so.
pub fn play_a_part() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let code = match words[..] {
        ["guard", journal] => guard_main(Path::new(journal)),
        ["victim", state_dir, setting, value] => match change_and_wait(state_dir, setting, value) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("{}", error.message().unwrap_or_default());
                1
            }
        },
        _ => return None,
    };
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn change_and_wait(state_dir: &str, setting: &str, value: &str) -> Result<(), Failed> {
    let mut changes = Changes::begin(Path::new(state_dir), guard())?;
    changes.apply(&setting.parse()?, value)?;
    println!("{}", changes.guard_pid().ok_or("the guard is gone")?);
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// A process that has changed a setting and waits.
pub struct Victim {
    process: Child,
    guard: u32,
}

impl Victim {
    /// Starts it, and waits until the setting is changed.
    pub fn start(state_dir: &Path, setting: &str, value: &str) -> Result<Self, Failed> {
        let mut command = Command::new("/proc/self/exe");
        command.arg("victim").arg(state_dir).args([setting, value]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("stdout is piped")?;
        BufReader::new(stdout).read_line(&mut line)?;
        match line.trim().parse() {
            Ok(guard) => Ok(Self { process, guard }),
            Err(_) => {
                Err(format!("{setting}={value}: the victim ended with {:?}", process.wait()?)
                    .into())
            }
        }
    }

    /// Kills it; its guard lives.
    pub fn kill(mut self) -> Result<(), Failed> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Kills its guard first, so that nobody is left to put anything back.
    pub fn kill_with_guard(self) -> Result<(), Failed> {
        let guard = i32::try_from(self.guard).ok().and_then(rustix::process::Pid::from_raw);
        let guard = guard.ok_or("the guard has no number")?;
        rustix::process::kill_process(guard, rustix::process::Signal::KILL)?;
        self.kill()
    }
}
