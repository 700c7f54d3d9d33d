//! Where results are printed: standard output, unless it takes the payload (`--sink -`). Output during a measurement
//! goes through a thread of its own, because a reader may stall (^S, a pipe that nobody drains).

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use goodput_model::{Direction, Plan};

use crate::fit::fit;
use crate::os_error::without_numbers;
use crate::report::style::harmless;
use crate::speaker::signed;

static TAKEN: AtomicBool = AtomicBool::new(false);

static ALONE: AtomicBool = AtomicBool::new(false);

/// Bytes that may wait for a reader. Beyond them lines are dropped, and their number is reported.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// How long the end of the program waits for a reader that reads nothing at all. A reader that paused for a moment
/// (^S, a slow pager) resumes within this time; a reader that has stalled for good does not keep the program alive.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that are written at once, or one line: this shows that a slow reader still reads.
const PIECE_BYTES: usize = 4096;

static OUT: QueuedText = QueuedText::new(print_now);
static ERR: QueuedText = QueuedText::new(|text| io::stderr().write_all(text.as_bytes()));

/// Whether each thread prints directly, because the process must be single-threaded for a while.
pub fn stay_alone(alone: bool) {
    ALONE.store(alone, Ordering::Relaxed);
}

/// Leaves standard output to the payload, if `plan` requests this; results then go to standard error.
pub fn leave_to_payload(plan: &Plan) {
    let sink = plan.storage.sink.as_ref().is_some_and(|sink| sink.name == "-");
    TAKEN.store(sink && plan.direction == Direction::Reverse, Ordering::Relaxed);
}

/// Keeps all output back while something else has the terminal; `false` prints it. Standard error may go elsewhere, such
/// as to a log that someone reads meanwhile.
pub fn hold(held: bool) {
    OUT.hold(held);
    ERR.hold(held && io::stderr().is_terminal());
}

/// Prints data for programs, which has no colours to strip: searching for them took most of the time of a record of
/// many flows. Goes after all waiting output. Written as `write` produces it, so that the whole text is never in
/// memory.
pub fn print_data(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    OUT.wait();
    let out: Box<dyn Write> = match TAKEN.load(Ordering::Relaxed) {
        true => Box::new(io::stderr().lock()),
        false => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    write(&mut out).and_then(|()| out.flush()).map_err(unprinted)
}

/// Columns if neither the terminal nor `COLUMNS` says how many there are.
const USUAL_COLUMNS: u16 = 80;

thread_local! {
    /// Columns of what this thread writes for something else than the screen.
    static ELSEWHERE: Cell<Option<u16>> = const { Cell::new(None) };
}

/// Makes a text for something that has so many columns, such as a page, whatever terminal goodput runs on.
pub fn in_columns<T>(columns: u16, make: impl FnOnce() -> T) -> T {
    let before = ELSEWHERE.replace(Some(columns));
    let made = make();
    ELSEWHERE.set(before);
    made
}

/// Columns of a text for people.
pub fn columns() -> u16 {
    ELSEWHERE.get().or_else(known_columns).unwrap_or(USUAL_COLUMNS)
}

/// Columns of the terminal; in a file or pipe, those of `COLUMNS` (environ(7)).
pub fn known_columns() -> Option<u16> {
    let named = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    terminal_columns().or_else(named)
}

/// A text for people, in lines that fit the screen.
pub fn fitted(text: &str) -> String {
    fit(text, Some(columns().into()))
}

/// Prints a text for people, in lines that fit the screen.
pub fn print_fitted(text: &str) -> io::Result<()> {
    print(&fitted(text))
}

/// Prints a text for people, in lines that fit the terminal. In a file or a journal no line is broken: whoever looks for a
/// word there gets the whole line.
pub fn print_unwrapped(text: &str) -> io::Result<()> {
    print(&fit(text, terminal_columns().map(usize::from)))
}

/// Prints a line of a result. Unlike `println!` it never panics: a reader that has seen enough (`| head`) is an error
/// of a kind that ends goodput cleanly.
pub fn line(text: impl Display) -> io::Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a line on standard error. Unlike `eprintln!` it never panics. If nobody can read standard error
/// (`2>&1 | head`, a full disk), goodput works and ends as usual.
pub fn say(text: impl Display) {
    let line = format!("{text}\n");
    let line = without_numbers(&line);
    let line = harmless(&line);
    let line = signed(&line);
    if ERR.held.load(Ordering::Relaxed) {
        return ERR.add(&line);
    }
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a part of a result, after all waiting output.
pub fn print(text: &str) -> io::Result<()> {
    OUT.wait();
    print_now(&harmless(text))
}

/// Whether a printed line can be redrawn: standard output is a terminal with control sequences. Where `CI` is set,
/// colours go even to a terminal that calls itself dumb.
pub fn can_redraw() -> bool {
    let out = io::stdout();
    let plain = anstream::AutoStream::choice(&out) == anstream::ColorChoice::Never;
    let dumb = std::env::var_os("TERM").is_none_or(|kind| kind == "dumb");
    out.is_terminal() && !plain && !dumb && !TAKEN.load(Ordering::Relaxed)
}

/// A terminal of unknown size reports 0 (ioctl_tty(2)).
fn terminal_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Prints a part of a result when the reader takes it, and never waits for this.
pub fn later(text: &str) {
    OUT.add(text);
}

/// Waits until all output is printed, as long as its reader reads. `false`: the reader has stopped, and the end of the
/// output is lost, which is reported on standard error.
pub fn finish() -> bool {
    let complete = OUT.finish(GOODBYE_TIMEOUT);
    if !complete {
        ERR.add(CUT);
    }
    // If nobody reads standard error either, nothing more can be reported.
    ERR.finish(GOODBYE_TIMEOUT);
    complete
}

/// The message about output that nobody has read.
const CUT: &str =
    "goodput: the end of the output was not printed because its reader stopped reading\n";

fn print_now(text: &str) -> io::Result<()> {
    let printed = match TAKEN.load(Ordering::Relaxed) {
        true => write!(anstream::stderr(), "{text}"),
        false => {
            let mut out = anstream::stdout();
            write!(out, "{text}").and_then(|()| out.flush())
        }
    };
    printed.map_err(unprinted)
}

/// Names the failed operation. The kind stays, because it identifies a closed reader.
pub fn unprinted(cause: io::Error) -> io::Error {
    let place = if TAKEN.load(Ordering::Relaxed) { "standard error" } else { "standard output" };
    io::Error::new(cause.kind(), format!("can't print the result on {place}: {cause}"))
}

/// The log, which never waits for its reader either.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ERR.add(&signed(&without_numbers(&String::from_utf8_lossy(bytes))));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Text for a reader that may stall, and the thread that waits for the reader.
struct QueuedText {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    started: OnceLock<bool>,
    /// Nothing is written for now.
    held: AtomicBool,
    /// Blocks while the reader does.
    write: fn(&str) -> io::Result<()>,
}

struct Waiting {
    text: String,
    /// Whether a write is in progress, which may take for ever.
    writing: bool,
    /// Bytes written so far.
    written: usize,
    left_out: usize,
}

impl QueuedText {
    const fn new(write: fn(&str) -> io::Result<()>) -> Self {
        let waiting = Waiting { text: String::new(), writing: false, written: 0, left_out: 0 };
        Self {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            started: OnceLock::new(),
            held: AtomicBool::new(false),
            write,
        }
    }

    fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
        // A printer that has just looked waits by now, and so hears this.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Whether something is left to write. Text that is held is not waited for.
    fn is_busy(&self, waiting: &Waiting) -> bool {
        waiting.writing || !waiting.text.is_empty() && !self.held.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic in between leaves no partial state.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, text: &str) {
        if text.is_empty() {
            return;
        }
        let start = || {
            let printer = std::thread::Builder::new().name("printer".into());
            printer.spawn(move || self.run()).is_ok()
        };
        if ALONE.load(Ordering::Relaxed) || !*self.started.get_or_init(start) {
            // Without a thread, this thread waits. A closed reader is noticed at the end.
            let _ = (self.write)(text);
            return;
        }
        let mut waiting = self.lock();
        // A reader that keeps up gets text of any length.
        if !waiting.text.is_empty() && waiting.text.len() + text.len() > MAX_WAITING_BYTES {
            waiting.left_out += text.lines().count();
        } else {
            waiting.text.push_str(text);
            self.changed.notify_all();
        }
    }

    /// Writes queued text for as long as the program runs.
    fn run(&self) {
        loop {
            let mut waiting = self.lock();
            while waiting.text.is_empty() || self.held.load(Ordering::Relaxed) {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let (text, left_out) =
                (std::mem::take(&mut waiting.text), std::mem::take(&mut waiting.left_out));
            waiting.writing = true;
            drop(waiting);
            for piece in pieces(&text) {
                // A closed reader must not stop the measurement; it is noticed at the end.
                let _ = (self.write)(piece);
                self.lock().written += piece.len();
                self.changed.notify_all();
            }
            if left_out > 0 {
                ERR.add(&format!(
                    "goodput: {left_out} lines were not printed because nobody read them in time\n"
                ));
            }
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits until everything is written.
    fn wait(&self) {
        drop(self.changed.wait_while(self.lock(), |waiting| self.is_busy(waiting)));
    }

    /// Waits until everything is written, or until nothing was written for this time. Returns whether everything is
    /// written.
    fn finish(&self, patience: Duration) -> bool {
        let mut waiting = self.lock();
        while self.is_busy(&waiting) {
            let before = waiting.written;
            let stands = |waiting: &mut Waiting| self.is_busy(waiting) && waiting.written == before;
            let waited = self.changed.wait_timeout_while(waiting, patience, stands);
            let (now, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            if timed_out.timed_out() {
                return false;
            }
            waiting = now;
        }
        true
    }
}

/// Whole lines, as many as fit into a piece: a colour sequence must not be cut.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let whole = text.floor_char_boundary(PIECE_BYTES);
        let end =
            text[..whole].rfind('\n').or_else(|| text.find('\n')).map_or(text.len(), |at| at + 1);
        let end = if text.len() <= PIECE_BYTES { text.len() } else { end };
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static WRITTEN: Mutex<usize> = Mutex::new(0);
    static STALLED: QueuedText = QueuedText::new(|text| {
        let open = GATE.0.lock().unwrap();
        drop(GATE.1.wait_while(open, |open| !*open).unwrap());
        *WRITTEN.lock().unwrap() += text.len();
        Ok(())
    });

    #[test]
    fn a_reader_that_stalls_holds_nobody_up_and_costs_little() {
        let line = "x".repeat(1023) + "\n";
        STALLED.add(&line);
        while !STALLED.lock().writing {
            std::thread::yield_now();
        }
        (1..10_000).for_each(|_| STALLED.add(&line));
        assert!(!STALLED.finish(Duration::from_millis(1)), "nobody reads");
        let (held, left_out) = {
            let waiting = STALLED.lock();
            (waiting.text.len(), waiting.left_out)
        };
        assert!(held <= MAX_WAITING_BYTES && left_out >= 7000, "{held} bytes, {left_out} left out");
        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
        STALLED.wait();
        assert_eq!(*WRITTEN.lock().unwrap() + left_out * 1024, 10_000 * 1024);
    }

    static TICKS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
    static SLOW: QueuedText = QueuedText::new(|_| {
        let mut left = TICKS.1.wait_while(TICKS.0.lock().unwrap(), |left| *left == 0).unwrap();
        *left -= 1;
        Ok(())
    });

    /// Each piece that is read restarts the full patience.
    #[test]
    fn a_slow_reader_gets_everything_and_one_that_stops_is_reported() {
        let line = "x".repeat(PIECE_BYTES - 1) + "\n";
        SLOW.add(&line.repeat(3));
        for _ in 0..3 {
            assert!(!SLOW.finish(Duration::from_millis(20)), "it has not read on");
            *TICKS.0.lock().unwrap() += 1;
            TICKS.1.notify_all();
        }
        assert!(SLOW.finish(Duration::from_secs(60)));
    }

    #[test]
    fn pieces_are_whole_lines_and_all_of_the_text() {
        let text = format!("{}\n{}ä", "short\n".repeat(2000), "long".repeat(3000));
        let all: Vec<_> = pieces(&text).collect();
        assert_eq!(all.concat(), text);
        let but_last = all.split_last().expect("there are some").1;
        assert!(but_last.iter().all(|piece| piece.ends_with('\n') && piece.len() <= PIECE_BYTES));
    }
}
