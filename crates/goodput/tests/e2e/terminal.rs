//! Programs on a terminal, and who looks at it and presses keys.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Leaves the other screen of a terminal (DECSET 1049, xterm's control sequences).
pub const LEAVES_OTHER_SCREEN: &str = "\x1b[?1049l";

/// Rows of a terminal, before and after it has got another size.
pub const ROWS: [u16; 2] = [30, 40];

/// The size for each of several pictures. A program may miss one; the next one is still another than what it has drawn.
fn size(picture: usize) -> (u16, u16) {
    (ROWS[picture % ROWS.len()], 100 + (picture % 40) as u16)
}

/// A command whose standard output is a terminal, and the other side of that.
pub fn on_a_terminal(command: &mut Command) -> File {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).expect("there are terminals");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it is ours");
    let terminal = File::from(terminal);
    command.stdout(own_side(&terminal)).env("TERM", "xterm").env_remove("NO_COLOR");
    terminal
}

/// The same command in a session of its own, which has keys too and is told when its terminal gets another size
/// (setsid(1)); and the other side of that terminal.
pub fn with_keys(command: &Command) -> (Command, File) {
    let mut own = Command::new("setsid");
    own.arg("--ctty").arg(command.get_program()).args(command.get_args());
    take_environment(&mut own, command);
    let terminal = on_a_terminal(&mut own);
    own.stdin(own_side(&terminal)).stderr(Stdio::null());
    resize(&terminal, size(0));
    (own, terminal)
}

/// The same command by a shell that ignores hang-ups, as nohup(1) does: nothing tells it that its terminal is gone.
pub fn not_told_of_hang_ups(command: &Command) -> Command {
    let mut deaf = Command::new("sh");
    deaf.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    deaf.arg(command.get_program()).args(command.get_args());
    take_environment(&mut deaf, command);
    deaf
}

fn take_environment(own: &mut Command, of: &Command) {
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
}

/// Looks at a terminal until it shows this word, and then it is gone.
pub fn gone_after(word: &str, mut terminal: File) {
    let (mut all, mut part) = (String::new(), [0; 4096]);
    while !all.contains(word) {
        let length = terminal.read(&mut part).expect("the program runs");
        all.push_str(&String::from_utf8_lossy(&part[..length]));
    }
}

/// The side of a terminal that programs have.
fn own_side(terminal: &File) -> Stdio {
    let path = ptsname(terminal, Vec::new()).expect("it has a name");
    let side = rustix::fs::open(&*path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    Stdio::from(side.expect("it can be opened"))
}

fn resize(terminal: &File, (ws_row, ws_col): (u16, u16)) {
    let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it has a size");
}

/// What a program prints there until it ends, and shows it to `sees` each time.
pub fn printed(mut terminal: File, mut sees: impl FnMut(&str)) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    // When nobody has the other side any more, reading fails with EIO.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        all.extend(&part[..length]);
        sees(&String::from_utf8_lossy(&all));
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Presses the key of each step when the view shows the step's word, and no other key: a terminal that a view has left echoes
/// it, which would be printed. Returns all that was printed. Views send only
/// the cells that change, so the terminal gets another size for each picture, which sends all of it. `foot` is a word of
/// the last row; no word may have a space, as nothing is sent for those.
pub fn play(terminal: File, foot: &str, steps: &[(&str, &str)]) -> String {
    let mut keys = terminal.try_clone().expect("it can be shared");
    let (mut step, mut picture, mut since) = (0, 0, 0);
    let shown = printed(terminal, |shown| {
        let new = &shown[shown.floor_char_boundary(since)..];
        let Some((word, key)) = steps.get(step) else { return };
        if !new.contains(foot) {
            return;
        }
        if new.contains(word) {
            keys.write_all(key.as_bytes()).expect("it takes keys");
            step += 1;
        }
        (since, picture) = (shown.len(), picture + 1);
        resize(&keys, size(picture));
    });
    assert_eq!(step, steps.len(), "{shown}");
    shown
}
