//! What the verbs that measure have in common: a runtime, Ctrl-C, the output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use goodput_engine::{EngineError, Interrupt};
use goodput_model::Record;
use rustix::io::Errno;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::OutputArgs;
use crate::data_dirs::Keeper;
use crate::exit::Exit;
use crate::screen;

/// Runs `work` to its end. The first Ctrl-C or SIGTERM asks it to end early with what it has; the
/// second drops it, which stops its flows, and settings are put back by their own drop. Tells
/// whether it was interrupted.
pub fn block_on<T>(
    work: impl AsyncFnOnce(Interrupt) -> Result<T, EngineError>,
) -> Result<(T, bool)> {
    let (raise, interrupt) = goodput_engine::interrupt();
    let outcome = runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let twice = async {
            signals.next().await;
            raise.raise();
            signals.next().await;
        };
        tokio::select! {
            outcome = work(interrupt.clone()) => Ok(outcome?),
            () = twice => Err(anyhow::Error::from(EngineError::Interrupted)),
        }
    });
    Ok((outcome?, interrupt.is_raised()))
}

/// One thread for the conversations, which is this one; what blocks gets threads of its own.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    if let Err(cause) = goodput_engine::run_promptly() {
        tracing::debug!("cannot get a higher priority than busy flows: {cause}");
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => anyhow!("{cause}; raise the limit on open files (ulimit -n)"),
            _ => cause.into(),
        })
        .context("cannot start the runtime")
}

/// Ctrl-C and SIGTERM, from the moment it is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over. Needs the runtime around it.
    pub fn listen() -> Result<Self> {
        let take = |kind| signal(kind).context("cannot handle signals");
        let interrupt = take(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: take(SignalKind::terminate())? })
    }

    /// Waits for the next of either.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Now, as records have it.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Prints a finished record as the options say, keeps it, and checks what was expected of it.
pub fn finish(
    record: &Record,
    text: impl FnOnce() -> String,
    output: &OutputArgs,
    keeper: &Keeper,
) -> Result<Exit> {
    if output.json {
        screen::print_data(|out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            writeln!(out)
        })?;
    } else if output.json_stream {
        screen::print_data(|out| {
            serde_json::to_writer(&mut *out, &Last { event: "record", record })?;
            writeln!(out)
        })?;
    } else {
        screen::print(&text())?;
    }
    if let Some(file) = &output.record {
        write_file(file, record).with_context(|| format!("cannot write {}", file.display()))?;
    }
    keeper.keep(record)?;
    Ok(check(record, output))
}

/// The last event of a stream.
#[derive(Serialize)]
struct Last<'a> {
    event: &'static str,
    record: &'a Record,
}

/// As it is made: the record of a long measurement takes several times as much memory as text.
fn write_file(file: &Path, record: &Record) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    serde_json::to_writer_pretty(&mut out, record)?;
    out.flush()
}

fn check(record: &Record, output: &OutputArgs) -> Exit {
    let misses: Vec<_> = output.expect.iter().filter_map(|e| e.miss(record)).collect();
    for miss in &misses {
        screen::say(format_args!("goodput: {miss}"));
    }
    if misses.is_empty() { Exit::Fine } else { Exit::Problem }
}
