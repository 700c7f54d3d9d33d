//! `goodput lab up`: a scenario's hosts stay up, for whatever the user wants to try in them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use goodput_lab::{Lab, Scenario, Server};
use goodput_model::Family;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::commands::measured::{self, Signals};
use crate::exit::Exit;
use crate::screen;

/// Keeps the hosts up until `command`, which runs in the near host, ends; without a command until a signal.
pub fn run(name: &str, command: &[OsString]) -> Result<Exit> {
    goodput_lab::privilege::enter()?;
    let scenario = Scenario::load(name)?;
    let runtime = measured::runtime()?;
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    let lab = Lab::up(&scenario)?;
    if let Some((program, arguments)) = command.split_first() {
        let exe = env::current_exe().context("can't find the program that runs")?;
        let server = Server::start(&lab, &scenario, &exe)?;
        let mut command = in_near(&lab, &scenario, &server, &exe, program)?;
        command.args(arguments);
        return runtime.block_on(attend(command, program, &mut signals)).map(exit);
    }
    screen::line(format_args!("{}: {}", scenario.case, scenario.title))?;
    for host in lab.hosts() {
        let address = host.address(Family::V4);
        let enter = lab.enter_hint(host);
        screen::line(format_args!("  {:6}  {address:15}  {enter}", host.name()))?;
    }
    screen::line("Ctrl-C takes it down.")?;
    runtime.block_on(signals.next());
    Ok(Exit::Fine)
}

/// A command in the near host. It finds this goodput in its `PATH`, the server's address in `FAR`, and in `ON_FAR` and
/// `ON_ROUTER` what runs a command in the far host, and in the router if there is one.
fn in_near(
    lab: &Lab,
    scenario: &Scenario,
    server: &Server,
    exe: &Path,
    program: &OsStr,
) -> Result<Command> {
    let family = if scenario.run.ipv6 { Family::V6 } else { Family::V4 };
    let folder = exe.parent().map(Path::to_path_buf);
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(folder.into_iter().chain(env::split_paths(&others)))
        .context("the directory of goodput can't be part of PATH")?;
    let mut command = lab.near().command(program)?;
    command.env("FAR", server.target()).env("NEAR", lab.near().address(family).to_string());
    command.env("ON_FAR", lab.enter_from_inside(lab.far())).env("PATH", path);
    if let Some(router) = lab.host("router") {
        command.env("ON_ROUTER", lab.enter_from_inside(router));
    }
    Ok(command)
}

/// Runs it to its end. Ctrl-C reaches it through the terminal, as its own; SIGTERM and SIGHUP are passed on.
async fn attend(
    mut command: Command,
    program: &OsStr,
    signals: &mut Signals,
) -> Result<ExitStatus> {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(why) => bail!("can't run {} in the near host: {why}", program.display()),
    };
    // A descriptor can't come to mean another process, as a number can.
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let mut end = tokio::task::spawn_blocking(move || child.wait());
    loop {
        tokio::select! {
            ended = &mut end => return Ok(ended.map_err(io::Error::other)??),
            () = signals.next_but_interrupt() => {
                // Fails only if it has just ended.
                let _ = pidfd_send_signal(&process, Signal::TERM);
            }
        }
    }
}

/// That of the command; 128 and the number of the signal that ended it, as in a shell.
fn exit(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) => Exit::Fine,
        Some(code) => Exit::Command(code),
        None => Exit::Problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_as_its_command() {
        let ended = |wait_status| exit(ExitStatus::from_raw(wait_status)).code();
        assert_eq!((ended(0), ended(7 << 8)), (0, 7));
        assert_eq!((ended(15), ended(2)), (143, 130), "SIGTERM and SIGINT");
    }
}
