//! The keys that are pressed on a terminal, and how it is seen that the terminal is gone.

use std::io::{self, IsTerminal, stdin, stdout};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

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

    /// What has come. If nothing has, this waits for it, at most so long.
    ///
    /// # Errors
    /// If the terminal is gone. It is asked first: crossterm reads the end of a terminal again and again, and never returns.
    pub fn input(&self, patience: Duration) -> io::Result<Input> {
        let until = Instant::now() + patience;
        self.wait(PollFlags::IN, patience)?;
        let input = waiting()?;
        if input.is_empty() {
            // crossterm leaves a key where it is that comes in the same moment as another size, until the next one comes.
            self.wait(PollFlags::empty(), until.saturating_duration_since(Instant::now()))?;
        }
        Ok(input)
    }

    /// Waits until the terminal has one of these, at most so long. A signal ends it, too.
    fn wait(&self, wanted: PollFlags, patience: Duration) -> io::Result<()> {
        let (stdin, stdout) = (stdin(), stdout());
        let mut asked = vec![PollFd::new(&stdout, wanted)];
        if self.reads_stdin {
            asked.push(PollFd::new(&stdin, wanted));
        }
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut asked, Some(&timeout)) {
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

fn waiting() -> io::Result<Input> {
    let mut input = Input::default();
    while event::poll(Duration::ZERO)? {
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => input.keys.push(key),
            _ => input.has_more = true,
        }
    }
    Ok(input)
}
