//! The keys that are pressed on a terminal, and how it is seen that the terminal is gone.
//!
//! We wait by poll(2), and ask crossterm only for what is there: it spends the last millisecond of each wait of its own in a
//! busy loop, because it gives poll(2) whole milliseconds. It must read by poll(2), too, and not by epoll(7) (its feature
//! `use-dev-tty`): the latter reports a key only once, and it was lost if it came in the same moment as another size of the
//! terminal.

use std::fs::File;
use std::io::{self, IsTerminal, stdin, stdout};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use crossterm::terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Least time that crossterm is given: without any it reads nothing.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);

/// Looks after a key in which crossterm is asked whatever the terminal has: it reads several keys at once, and keeps the later
/// ones if its patience ends before it looks at them.
const LOOKS_AFTER_A_KEY: u32 = 20;

/// What came from the terminal.
#[derive(Debug, Default)]
pub struct Input {
    /// Keys that were pressed, in their order.
    pub keys: Vec<KeyEvent>,
    /// Whether there was anything else, such as another size.
    pub has_more: bool,
}

impl Input {
    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.has_more
    }
}

/// The keyboard of the terminal to which standard output goes.
#[derive(Debug)]
pub struct Keyboard {
    /// The terminal as crossterm opens it, if standard input is none.
    opened: Option<File>,
    /// Columns and rows when they were last asked for.
    size: (u16, u16),
    /// Looks in which crossterm may still have a key.
    looks_left: u32,
}

impl Keyboard {
    /// The keyboard, while its terminal is there. A terminal that is gone is none any more (isatty(3)), so this is asked once.
    ///
    /// # Errors
    /// If this process has no terminal (tty(4)).
    pub fn new() -> io::Result<Self> {
        let opened = match stdin().is_terminal() {
            true => None,
            false => Some(File::open("/dev/tty")?),
        };
        Ok(Self { opened, size: terminal::size()?, looks_left: 0 })
    }

    /// What has come. If nothing has, this waits for keys, no longer than `patience`.
    ///
    /// # Errors
    /// If the terminal is gone: crossterm reads its end again and again, and finds nothing.
    pub fn input(&mut self, patience: Duration) -> io::Result<Input> {
        let mut input = Input::default();
        let may_have_keys = self.looks_left > 0;
        let is_readable = self.wait(if may_have_keys { Duration::ZERO } else { patience })?;
        if is_readable || may_have_keys {
            let mut patience = if may_have_keys { patience } else { Duration::ZERO };
            while event::poll(patience.max(LEAST_PATIENCE))? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => input.keys.push(key),
                    _ => input.has_more = true,
                }
                patience = Duration::ZERO;
            }
            self.looks_left = match input.is_empty() {
                true => self.looks_left.saturating_sub(1),
                false => LOOKS_AFTER_A_KEY,
            };
        }
        let size = terminal::size()?;
        input.has_more |= std::mem::replace(&mut self.size, size) != size;
        Ok(input)
    }

    /// Whether there is something to read, at once or within `patience`. A signal, as of another size, ends the wait.
    fn wait(&self, patience: Duration) -> io::Result<bool> {
        let (stdin, stdout) = (stdin(), stdout());
        let keys = match &self.opened {
            Some(opened) => PollFd::new(opened, PollFlags::IN),
            None => PollFd::new(&stdin, PollFlags::IN),
        };
        let mut asked = [keys, PollFd::new(&stdout, PollFlags::empty())];
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut asked, Some(&patience)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(cause) => return Err(cause.into()),
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        match asked.iter().any(|terminal| terminal.revents().intersects(gone)) {
            true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone")),
            false => Ok(asked[0].revents().contains(PollFlags::IN)),
        }
    }
}
