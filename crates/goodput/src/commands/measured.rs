//! The common part of the verbs that measure: a runtime, Ctrl-C, the output.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use goodput_engine::{EngineError, Interrupt, Listener};
use goodput_model::Record;
use rustix::io::Errno;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::OutputArgs;
use crate::data_dirs::Keeper;
use crate::exit::{self, Exit};
use crate::report::live::Live;
use crate::screen;

/// How long cleanup threads, such as the removal of files at a server, may run after the end of their work.
pub(super) const CLEAN_UP: Duration = Duration::from_secs(15);

/// Runs `work` to its end. The first of [`Signals`] asks it to end early with its results so far; the second drops it,
/// which stops its flows and, by their own drop, restores settings. Returns whether it was interrupted.
pub fn block_on<T>(
    work: impl AsyncFnOnce(Interrupt) -> Result<T, EngineError>,
) -> Result<(T, bool)> {
    let (raise, interrupt) = goodput_engine::interrupt();
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let twice = async {
            signals.next().await;
            raise.raise();
            signals.next_but_hangup().await;
        };
        tokio::select! {
            outcome = work(interrupt.clone()) => Ok(outcome?),
            () = twice => Err(anyhow::Error::from(EngineError::Interrupted)),
        }
    });
    // Dropping the runtime would wait for ever for a thread blocked on a dead mount.
    runtime.shutdown_timeout(CLEAN_UP);
    Ok((outcome?, interrupt.is_raised()))
}

/// Ends this run as Ctrl-C does once standard input ends, if `output` asks for it. The program that started it holds the
/// other side, which the kernel closes with that program.
pub fn end_with_input(output: &OutputArgs) {
    if !output.end_with_input {
        return;
    }
    let end = || {
        let ended = kill_process(getpid(), rustix::process::Signal::INT);
        ended.unwrap_or_else(|cause| tracing::debug!("can't send SIGINT to this process: {cause}"));
    };
    if let Err(cause) = at_end_of_input(end) {
        tracing::warn!("this run goes on if the program that started it ends: {cause}");
    }
}

/// Does this once standard input ends. A thread of its own reads: it may wait until this process ends.
///
/// # Errors
/// If this process can't have another thread.
pub fn at_end_of_input(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let wait = || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        then();
    };
    std::thread::Builder::new().name("input".into()).spawn(wait).map(drop)
}

/// This thread runs the conversations; blocking calls get threads of their own.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    if let Err(cause) = goodput_engine::run_promptly() {
        tracing::debug!("can't get a higher priority than busy flows: {cause}");
    }
    plain_runtime()
}

/// The same at the usual priority, for what must not take a CPU from flows.
pub fn plain_runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => anyhow!("{cause}; raise the limit on open files (ulimit -n)"),
            _ => cause.into(),
        })
        .context("can't start the runtime")
}

/// Ctrl-C, SIGTERM and, unless it is ignored as under nohup(1), SIGHUP, caught as soon as this exists.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Catches the signals. Must be called within the runtime.
    pub fn listen() -> Result<Self> {
        let take = |kind| signal(kind).context("can't handle signals");
        let interrupt = take(SignalKind::interrupt())?;
        let (terminate, hangup) = (SignalKind::terminate(), SignalKind::hangup());
        let hangup = if hangup_is_ignored() { None } else { Some(take(hangup)?) };
        Ok(Self { interrupt, terminate: take(terminate)?, hangup })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hung_up(self.hangup.as_mut()) => {}
        }
    }

    /// Waits for the next signal except Ctrl-C, which a terminal also sends to the programs that this one started.
    pub async fn next_but_interrupt(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            () = hung_up(self.hangup.as_mut()) => {}
        }
    }

    /// Waits for the next signal except SIGHUP: a lost terminal sends SIGHUP twice, once by its shell and once by the
    /// kernel, so the second is not a user's wish.
    async fn next_but_hangup(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Waits for SIGHUP; for ever, if it is ignored.
async fn hung_up(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored, so that it outlives its terminal.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // proc_pid_status(5): a mask in hexadecimal, in which signal 1, SIGHUP, is the lowest bit.
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 != 0))
}

/// The present time, in the format of records.
pub fn now() -> String {
    in_records(jiff::Timestamp::now())
}

/// A moment later than now, in the same form: what began after it has its time from a clock that was ahead. Clocks that are
/// kept right differ by less.
pub fn soon() -> String {
    in_records(jiff::Timestamp::now() + jiff::SignedDuration::from_mins(5))
}

fn in_records(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Stores a finished record, prints it as requested, and checks the expectations. Storing comes first: the reader of
/// standard output may stall for ever.
pub fn finish(
    record: &Record,
    text: impl FnOnce() -> String,
    output: &OutputArgs,
    keeper: Keeper,
) -> Result<Exit> {
    let kept = keeper.keep(record);
    end_at_the_next_signal();
    // Standard output may have gone with its terminal, and the disk may be full; both are tried anyway.
    let printed = print(record, text, output);
    kept?;
    printed?;
    Ok(check(record, output))
}

/// The end that all verbs of several runs share: work, show, store, print, judge.
pub struct Runs<'a> {
    /// What the user wants to see.
    pub output: &'a OutputArgs,
    /// Shows what happens meanwhile.
    pub live: Live,
    /// The report.
    pub text: &'a dyn Fn(&Record) -> String,
    /// What the record shows, if nothing went wrong.
    pub judge: fn(&Record) -> Exit,
}

impl Runs<'_> {
    /// Does the work to its end, and reports.
    pub fn report(
        self,
        work: impl AsyncFnOnce(&Interrupt, &mut Listener<'_>) -> Result<Record, EngineError>,
    ) -> Result<Exit> {
        self.report_after(work, |_| Ok(()))
    }

    /// The same. `last` comes between the work and the report, and may add to the record; an error of it is reported
    /// after the record.
    pub fn report_after(
        self,
        work: impl AsyncFnOnce(&Interrupt, &mut Listener<'_>) -> Result<Record, EngineError>,
        last: impl FnOnce(&mut Record) -> Result<()>,
    ) -> Result<Exit> {
        let Self { output, mut live, text, judge } = self;
        let keeper = Keeper::open(output)?;
        end_with_input(output);
        let worked =
            block_on(async |interrupt| work(&interrupt, &mut |event| live.show(&event)).await);
        let (mut record, interrupted) =
            worked.inspect_err(|why| live.fail(&exit::in_words(why)))?;
        live.close();
        let last = last(&mut record);
        let exit = finish(&record, || screen::fitted(&text(&record)), output, keeper)?;
        last?;
        Ok(match &record.incomplete {
            Some(why) => {
                screen::say(format_args!("goodput: {why}"));
                Exit::CouldNot
            }
            None if interrupted => Exit::CouldNot,
            None if exit == Exit::Fine => judge(&record),
            None => exit,
        })
    }
}

/// Lets Ctrl-C and SIGTERM end the program: only printing remains, and the reader may stall for ever.
pub fn end_at_the_next_signal() {
    let wait = || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        let signals = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            signals.next_but_hangup().await;
            anyhow::Ok(())
        });
        if signals.is_ok() {
            std::process::exit(Exit::CouldNot.code().into());
        }
    };
    let thread = std::thread::Builder::new().name("signals".into()).spawn(wait);
    if let Err(cause) = thread {
        tracing::debug!("can't wait for signals while it prints: {cause}");
    }
}

fn print(record: &Record, text: impl FnOnce() -> String, output: &OutputArgs) -> io::Result<()> {
    if output.json {
        return screen::print_data(|out| {
            record.write_json(&mut *out)?;
            writeln!(out)
        });
    }
    if output.json_stream {
        return screen::print_data(|out| {
            write!(out, r#"{{"event":"record","record":"#)?;
            record.write_json_line(&mut *out)?;
            writeln!(out, "}}")
        });
    }
    screen::print(&text())
}

fn check(record: &Record, output: &OutputArgs) -> Exit {
    let misses: Vec<_> = output.expect.iter().filter_map(|e| e.miss(record)).collect();
    for miss in &misses {
        screen::say(format_args!("goodput: {miss}"));
    }
    if misses.is_empty() { Exit::Fine } else { Exit::Problem }
}
