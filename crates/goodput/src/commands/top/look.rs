//! How a person looks at the connections, and what keys change of it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::args::Order;

/// The keys, as the help shows them.
pub const KEYS: [(&str, &str); 12] = [
    ("q, Ctrl-C", "end"),
    ("↓ ↑, j k", "one connection on or back"),
    ("PgDn PgUp", "one screen on or back"),
    ("Home End, g G", "the first or the last ones"),
    ("/", "only those with a word: a program, an address, a port, a limit"),
    ("Esc", "show all again"),
    ("r t x", "order by rate, by round trip, by resent segments"),
    ("o", "the next order"),
    ("i", "idle ones, too"),
    ("s", "summary of the last minute"),
    ("space", "pause; keys go on"),
    ("h, ?", "this help"),
];

/// How the connections are looked at.
#[derive(Debug, Default)]
pub struct Look {
    /// Their order.
    pub order: Order,
    /// Whether idle ones are shown.
    pub idle: bool,
    /// Whether the summary is shown instead.
    pub summed_up: bool,
    /// Whether it stands still.
    pub paused: bool,
    /// Whether the help is shown instead.
    pub help: bool,
    /// How many connections are above the first one on the screen.
    pub above: usize,
    /// The same of the lines of the help or the summary.
    pub lines_above: usize,
    /// Words that each shown connection has.
    pub filter: String,
    /// Whether keys are letters of the filter.
    pub typing: bool,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Draw again.
    Redraw,
    /// End.
    Quit,
}

impl Look {
    /// Takes a key. `page` is how many connections the screen shows.
    pub fn press(&mut self, key: KeyEvent, page: usize) -> Asked {
        // In raw mode the terminal makes no signal of it.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Asked::Quit;
        }
        if self.typing {
            self.type_in(key);
            return Asked::Redraw;
        }
        if key.code == KeyCode::Char('q') {
            return Asked::Quit;
        }
        self.switch(key.code);
        let above =
            if self.help || self.summed_up { &mut self.lines_above } else { &mut self.above };
        *above = moved(key.code, *above, page);
        Asked::Redraw
    }

    /// A key while the filter is written.
    fn type_in(&mut self, key: KeyEvent) {
        let is_command = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            // No letter, though it has one.
            KeyCode::Char(_) if is_command => {}
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
            _ => {}
        }
        self.above = 0;
    }

    fn switch(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('o') => self.order = self.order.next(),
            KeyCode::Char('r') => self.order = Order::Rate,
            KeyCode::Char('t') => self.order = Order::RoundTrip,
            KeyCode::Char('x') => self.order = Order::Retransmitted,
            KeyCode::Char('i') => self.idle = !self.idle,
            KeyCode::Char('s') => (self.summed_up, self.lines_above) = (!self.summed_up, 0),
            KeyCode::Char('h' | '?') => (self.help, self.lines_above) = (!self.help, 0),
            KeyCode::Char('/') => (self.typing, self.help, self.summed_up) = (true, false, false),
            KeyCode::Esc if self.help => (self.help, self.lines_above) = (false, 0),
            KeyCode::Esc => (self.filter, self.above) = (String::new(), 0),
            _ => {}
        }
    }

    /// What the heading says of the filter.
    pub fn filtered(&self) -> String {
        match self.filter.trim() {
            "" => String::new(),
            words => format!(" · with {words:?}"),
        }
    }

    /// The last row of the screen.
    pub fn foot(&self) -> String {
        if self.typing {
            return format!("filter /{}▏  Enter keeps it  Esc shows all", self.filter);
        }
        let paused = if self.paused { "paused  " } else { "" };
        let order = name(self.order);
        format!("{paused}q quit  h help  / filter  o order: {order}  i idle  s summary")
    }
}

/// How many are above after a key; who shows them keeps it within what there is.
fn moved(key: KeyCode, above: usize, page: usize) -> usize {
    match key {
        KeyCode::Down | KeyCode::Char('j') => above.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => above.saturating_sub(1),
        KeyCode::PageDown => above.saturating_add(page),
        KeyCode::PageUp => above.saturating_sub(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => above,
    }
}

fn name(order: Order) -> &'static str {
    match order {
        Order::Rate => "rate",
        Order::RoundTrip => "round trip",
        Order::Retransmitted => "resent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(look: &mut Look, keys: &[KeyCode]) {
        for key in keys {
            assert_eq!(look.press((*key).into(), 10), Asked::Redraw, "{key:?}");
        }
    }

    #[test]
    fn keys_move_by_one_and_by_a_screen_and_never_before_the_first() {
        let mut look = Look::default();
        press(
            &mut look,
            &[KeyCode::Up, KeyCode::PageDown, KeyCode::Down, KeyCode::Char('k'), KeyCode::PageDown],
        );
        assert_eq!(look.above, 20);
        press(&mut look, &[KeyCode::PageUp, KeyCode::PageUp, KeyCode::PageUp]);
        assert_eq!(look.above, 0);
        press(&mut look, &[KeyCode::End, KeyCode::Down]);
        assert_eq!(look.above, usize::MAX);
    }

    #[test]
    fn letters_are_words_of_the_filter_until_enter_or_esc() {
        let mut look = Look::default();
        press(&mut look, &['/', 'q', 'x', 'i'].map(KeyCode::Char));
        press(&mut look, &[KeyCode::Backspace]);
        assert_eq!((&*look.filter, look.idle, look.order), ("qx", false, Order::Rate));
        assert!(look.foot().starts_with("filter /qx"), "{}", look.foot());
        press(&mut look, &[KeyCode::Enter, KeyCode::Char('x')]);
        assert_eq!((&*look.filter, look.order), ("qx", Order::Retransmitted));
        press(&mut look, &[KeyCode::Esc]);
        assert_eq!(look.filter, "");
        press(&mut look, &[KeyCode::Char('/'), KeyCode::Char('a')]);
        for modifier in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
            look.press(KeyEvent::new(KeyCode::Char('u'), modifier), 10);
        }
        assert_eq!(look.filter, "a");
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(look.press(ctrl_c, 10), Asked::Quit);
    }

    #[test]
    fn every_order_has_a_key_and_the_foot_names_it() {
        let mut look = Look::default();
        for (key, order) in
            [('t', "round trip"), ('x', "resent"), ('r', "rate"), ('o', "round trip")]
        {
            press(&mut look, &[KeyCode::Char(key)]);
            assert!(look.foot().contains(&format!("order: {order}  ")), "{}", look.foot());
            look.paused = true;
            assert!(look.foot().chars().count() <= 80, "{}", look.foot());
        }
    }
}
