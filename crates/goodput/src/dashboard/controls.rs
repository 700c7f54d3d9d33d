//! What keys do to a view. The run or the server goes on whatever is pressed, except `q`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys while a run is watched, as the help shows them.
pub const RUN_KEYS: [(&str, &str); 6] = [
    ("q, Ctrl-C", "end the run now and print the report"),
    ("space", "pause this view; the run goes on"),
    ("u", "bits or bytes per second"),
    ("↓ ↑", "show one flow"),
    ("Esc", "show all flows"),
    ("h", "this help"),
];

/// The keys while a server is watched.
pub const SERVER_KEYS: [(&str, &str); 6] = [
    ("q, Ctrl-C", "end the server"),
    ("space", "pause this view; the server goes on"),
    ("u", "bits or bytes per second"),
    ("↓ ↑", "show one client"),
    ("Esc", "show all clients"),
    ("h", "this help"),
];

/// How the user looks at the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Controls {
    /// The view stands still.
    pub paused: bool,
    /// Rates in bytes per second instead of bits.
    pub bytes: bool,
    /// The help is shown.
    pub help: bool,
    /// Place of the shown flow or client in the table. Absent: all.
    pub selected: Option<usize>,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Draw again.
    Redraw,
    /// End the run.
    Quit,
}

impl Controls {
    /// Takes a key. `rows` is the number of flows or clients in the table.
    pub fn press(&mut self, key: KeyEvent, rows: usize) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::Redraw;
        }
        // In raw mode the terminal makes no signal of it.
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Asked::Quit,
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('u') => self.bytes = !self.bytes,
            KeyCode::Char('h' | '?') => self.help = !self.help,
            KeyCode::Down | KeyCode::Char('j') => {
                let next = self.selected.map_or(0, |at| at + 1);
                self.selected = rows.checked_sub(1).map(|last| next.min(last));
            }
            KeyCode::Up | KeyCode::Char('k') => {
                self.selected = self.selected.and_then(|at| at.checked_sub(1));
            }
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc => self.selected = None,
            _ => {}
        }
        Asked::Redraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(controls: &mut Controls, code: KeyCode) -> Asked {
        controls.press(KeyEvent::new(code, KeyModifiers::NONE), 3)
    }

    #[test]
    fn arrows_stay_within_the_flows() {
        let mut controls = Controls::default();
        (0..9).for_each(|_| assert_eq!(pressed(&mut controls, KeyCode::Down), Asked::Redraw));
        assert_eq!(controls.selected, Some(2));
        (0..9).for_each(|_| assert_eq!(pressed(&mut controls, KeyCode::Up), Asked::Redraw));
        assert_eq!(controls.selected, None);
        assert_eq!(controls.press(KeyCode::Down.into(), 0), Asked::Redraw);
        assert_eq!(controls.selected, None, "without flows there is none to show");
    }

    #[test]
    fn only_q_and_ctrl_c_end_the_run() {
        let mut controls = Controls::default();
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(controls.press(ctrl_c, 3), Asked::Quit);
        assert_eq!(pressed(&mut controls, KeyCode::Char('q')), Asked::Quit);
        for key in [KeyCode::Char('c'), KeyCode::Char(' '), KeyCode::Esc, KeyCode::Enter] {
            assert_eq!(pressed(&mut controls, key), Asked::Redraw);
        }
        assert!(controls.paused);
    }
}
