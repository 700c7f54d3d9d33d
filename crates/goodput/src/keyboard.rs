//! The keys that are pressed on a terminal, and how it is seen that the terminal is gone.
//!
//! crossterm reads by poll(2) and not by epoll(7) (its feature `use-dev-tty`): the latter reports a key only once, and it was
//! lost if it came in the same moment as another size of the terminal.

use std::io::{self, IsTerminal, stdin, stdout};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Least time that crossterm is given: without any it reads nothing.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);

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
    /// Asked once: a terminal that is gone is none any more (isatty(3)).
    reads_stdin: bool,
}

impl Keyboard {
    /// The keyboard, while its terminal is there.
    pub fn new() -> Self {
        Self { reads_stdin: stdin().is_terminal() }
    }

    /// What has come. If nothing has, this waits for it, no longer than `patience`.
    ///
    /// # Errors
    /// If the terminal is gone: crossterm reads its end again and again, and finds nothing.
    pub fn input(&self, patience: Duration) -> io::Result<Input> {
        self.ask()?;
        let mut input = Input::default();
        let mut patience = patience.max(LEAST_PATIENCE);
        while event::poll(patience)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => input.keys.push(key),
                _ => input.has_more = true,
            }
            patience = LEAST_PATIENCE;
        }
        Ok(input)
    }

    /// Whether the terminal is there.
    fn ask(&self) -> io::Result<()> {
        let (stdin, stdout) = (stdin(), stdout());
        let mut asked = vec![PollFd::new(&stdout, PollFlags::empty())];
        if self.reads_stdin {
            asked.push(PollFd::new(&stdin, PollFlags::empty()));
        }
        match poll(&mut asked, Some(&Timespec::default())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        match asked.iter().any(|terminal| terminal.revents().intersects(gone)) {
            true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone")),
            false => Ok(()),
        }
    }
}
