//! How long a server let a test wait, as one with `--exclusive=queue` does while it measures with someone else.

use std::time::{Duration, Instant};

use goodput_engine::Event;

/// What both ends may take to agree on a test and to open its flows, besides round trips: longer than a busy host takes.
const USUAL: Duration = Duration::from_secs(1);
/// The same in times of what the connection took, which is a few round trips and perhaps a look-up of the name.
const CONNECTIONS: u32 = 4;

/// Hears when a test connected, and when its flows were open.
pub struct Waited {
    began: Instant,
    connected: Option<Instant>,
    opened: Option<Instant>,
}

impl Waited {
    /// A test begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), connected: None, opened: None }
    }

    /// Takes what happened.
    pub fn hear(&mut self, event: &Event) {
        let place = match event {
            Event::Connected { .. } => &mut self.connected,
            Event::Opened { .. } => &mut self.opened,
            _ => return,
        };
        place.get_or_insert_with(Instant::now);
    }

    /// Seconds that it waited after it had connected, if it was longer than usual.
    pub fn seconds(&self) -> Option<f64> {
        let connected = self.connected?;
        let (connecting, opening) = (connected - self.began, self.opened? - connected);
        is_long(connecting, opening).then_some(opening.as_secs_f64())
    }
}

fn is_long(connecting: Duration, opening: Duration) -> bool {
    opening > USUAL + CONNECTIONS * connecting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_path_is_no_wait_and_a_server_that_measures_with_others_is() {
        let of = |connecting, opening| {
            is_long(Duration::from_millis(connecting), Duration::from_millis(opening))
        };
        assert!(!of(2, 40) && !of(1200, 3000) && !of(0, 1000));
        assert!(of(2, 1900) && of(600, 10_000));
    }

    #[test]
    fn a_test_that_did_not_begin_waited_for_nothing_that_is_known() {
        let mut waited = Waited::begin();
        assert_eq!(waited.seconds(), None);
        waited.hear(&Event::Opened { connections: Vec::new() });
        assert_eq!(waited.seconds(), None, "it did not say when it connected");
    }
}
