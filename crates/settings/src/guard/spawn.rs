//! Starts the guard, and checks that it runs.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{GuardProgram, NAME, READY};
use crate::error::SettingError;

/// How long a guard may take to start on a machine under full load.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running guard. Dropping it releases the guard, which then looks at the journal and exits.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Option<Child>,
    /// Its write end is held by this process alone (close-on-exec), so that it closes with us.
    lifeline: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard of `journal` and waits until it is ready.
    pub(crate) fn spawn(program: &GuardProgram, journal: &Path) -> Result<Self, SettingError> {
        let name = program.exe.display();
        let mut child = command(program, journal)
            .spawn()
            .map_err(|cause| SettingError::Guard(format!("can't start {name}: {cause}")))?;
        let lifeline = child.stdin.take();
        let said = child.stdout.take().map(wait_until_ready);
        let mut guard = Self { child: Some(child), lifeline };
        match said {
            Some(Ok(true)) => Ok(guard),
            Some(Err(cause)) => Err(guard.give_up(format!("can't hear {name}: {cause}"))),
            _ => Err(guard.give_up(format!("{name} did not report that it is ready"))),
        }
    }

    /// Process id, while it has not ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// An error if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), SettingError> {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(status))) => Err(SettingError::Guard(format!("it ended: {status}"))),
            Some(Err(cause)) => Err(SettingError::Guard(cause.to_string())),
            None => Err(SettingError::Guard("it was released".into())),
        }
    }

    fn give_up(&mut self, why: String) -> SettingError {
        if let Some(child) = &mut self.child {
            // Nothing was changed yet, so nothing is lost.
            let _ = child.kill();
        }
        SettingError::Guard(why)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if let Some(mut child) = self.child.take() {
            // Someone must reap it, but nobody should have to wait for it. If there is no thread for that, it is reaped when
            // this process ends.
            let reap = move || drop(child.wait());
            let _ = std::thread::Builder::new().name("guard-reaper".into()).spawn(reap);
        }
    }
}

fn command(program: &GuardProgram, journal: &Path) -> Command {
    let mut command = Command::new(&program.exe);
    command
        .arg0(NAME)
        .args(&program.args)
        .arg(journal)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    detach(&mut command);
    command
}

/// Makes a program run in its own session, which no signal of the terminal ends, with only the standard
/// descriptors.
#[expect(unsafe_code, reason = "only code between fork and exec can set a child's session")]
pub(crate) fn detach(command: &mut Command) {
    // SAFETY: the closure makes only system calls that are async-signal-safe or bare syscalls
    // (setsid, sigaction through signal, close_range), allocates nothing and touches no memory
    // that another thread of the parent could have left inconsistent.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT] {
                if libc::signal(signal, libc::SIG_IGN) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            // Closing at exec rather than now leaves std its own pipe for exec errors. A kernel
            // without close_range (before 5.11) keeps what others leaked; goodput leaks none. musl has no function for
            // this call.
            let flags = libc::CLOSE_RANGE_CLOEXEC;
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flags);
            Ok(())
        });
    }
}

/// Reads until the guard reports that it is ready (true), ends or falls silent (false).
fn wait_until_ready(mut stdout: ChildStdout) -> io::Result<bool> {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut said = Vec::new();
    let mut buffer = [0; 256];
    while !String::from_utf8_lossy(&said).contains(READY) {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
        let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))?;
        let read = if ready == 0 { 0 } else { stdout.read(&mut buffer)? };
        if read == 0 {
            return Ok(false);
        }
        said.extend_from_slice(&buffer[..read]);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(exe: &str) -> String {
        let program = GuardProgram { exe: exe.into(), args: Vec::new() };
        Guard::spawn(&program, Path::new("/nowhere")).unwrap_err().to_string()
    }

    #[test]
    fn a_program_that_is_no_guard_is_refused() {
        assert!(refusal("/bin/true").contains("did not report"));
        assert!(refusal("/no/such/program").contains("can't start"));
    }
}
