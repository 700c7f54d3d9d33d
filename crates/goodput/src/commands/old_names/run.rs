//! Carries out a program's command line, and exits as this program would.

use std::os::unix::net::UnixDatagram;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use goodput_compat::programs::arguments::{Invocation, translate};
use goodput_compat::programs::files::Files;
use goodput_compat::programs::option::Refusal;
use goodput_compat::programs::program::Program;

use crate::args::{Cli, refused};
use crate::exit::{self, Exit};
use crate::screen;

/// 1, which all these programs return after an error.
const FAILURE: Exit = Exit::Problem;
/// How often to check whether a server that does not listen yet has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs goodput as `program` with `arguments`, without the program's name. `show` prints the command instead.
pub fn run(program: &'static Program, arguments: &[String], show: bool) -> Exit {
    let work = match translate(program, arguments) {
        Ok(work) => work,
        Err(Refusal(why)) => {
            complain(program, &why);
            let [client, server] = program.usage;
            screen::say(format_args!(
                "Usage: {client}\n       {server}\nTry `{} -h`.",
                program.name
            ));
            return FAILURE;
        }
    };
    let runs = match &work {
        Invocation::Run { arguments, again, .. } => [Some(arguments), again.as_ref()],
        Invocation::Print(_) => [None, None],
    };
    // Nothing has begun yet, so there is no JSON output that could contain this error.
    if let Err(error) = runs.into_iter().flatten().try_for_each(|run| parsed(run).map(drop)) {
        complain(program, &exit::in_words(&error));
        return FAILURE;
    }
    match carry_out(work, show) {
        Ok(Exit::Fine) => Exit::Fine,
        Ok(_) => FAILURE,
        Err(error) if exit::is_seen_enough(&error) => Exit::Fine,
        Err(error) => {
            // JSON output contains its own error (iperf3 -J).
            if !is_json(arguments) {
                complain(program, &exit::in_words(&error));
            }
            FAILURE
        }
    }
}

fn is_json(arguments: &[String]) -> bool {
    arguments.iter().any(|a| ["-J", "--json", "--json-stream"].contains(&a.as_str()))
}

/// `iperf3: error - …`, iperf3's prefix; the others have none.
fn complain(program: &Program, why: &str) {
    let error = if program.name == "iperf3" && !why.contains("error -") { "error - " } else { "" };
    screen::say(format_args!("{}: {error}{why}", program.name));
}

fn carry_out(work: Invocation, show: bool) -> Result<Exit> {
    match work {
        Invocation::Print(text) => {
            screen::print(&text)?;
            Ok(Exit::Fine)
        }
        Invocation::Run { arguments, again, .. } if show => {
            for run in [Some(arguments), again].into_iter().flatten() {
                let words: Vec<_> =
                    run.iter().map(|word| goodput_model::shell::word(word)).collect();
                screen::line(format_args!("goodput {}", words.join(" ")))?;
            }
            Ok(Exit::Fine)
        }
        Invocation::Run { arguments, background: true, files, .. } => {
            in_background(&arguments, &files)
        }
        Invocation::Run { arguments, again, files, .. } => {
            let _pid_file = files.begin()?;
            match (crate::commands::run(parsed(&arguments)?)?, again) {
                (Exit::Fine, Some(again)) => crate::commands::run(parsed(&again)?),
                (exit, _) => Ok(exit),
            }
        }
    }
}

/// goodput's own parsing of the arguments: invalid and out-of-range numbers fail here.
pub fn parsed(arguments: &[String]) -> Result<Cli> {
    let words = std::iter::once("goodput").chain(arguments.iter().map(String::as_str));
    Cli::from_words(words.map(Into::into)).map_err(|error| anyhow!(refused::in_words(&error)))
}

/// Starts the server detached from the terminal, and returns once it listens.
fn in_background(arguments: &[String], files: &Files) -> Result<Exit> {
    use std::os::unix::process::CommandExt;
    parsed(arguments)?;
    let program = std::env::current_exe().context("can't find goodput's own file")?;
    // The server reports that it listens in the same way as to systemd (sd_notify(3)).
    let place = tempfile::tempdir().context("can't make a directory for the server's socket")?;
    let socket = place.path().join("listens");
    let hears = UnixDatagram::bind(&socket).context("can't listen to the server")?;
    hears.set_read_timeout(Some(POLL_INTERVAL)).context("can't wait for the server")?;
    let mut server = Process::new(program);
    server.args(arguments).env("NOTIFY_SOCKET", &socket).stdin(Stdio::null()).process_group(0);
    files.give_to(&mut server)?;
    let mut child = server.spawn().context("can't start the server")?;
    files.note_pid(child.id())?;
    loop {
        let mut said = [0; 256];
        let length = hears.recv(&mut said).unwrap_or(0);
        if String::from_utf8_lossy(&said[..length]).contains("READY=1") {
            return Ok(Exit::Fine);
        }
        if let Some(status) = child.try_wait().context("can't wait for the server")? {
            bail!("the server ended with {status} before it listened");
        }
    }
}
