//! How long a comparison may take.

use std::time::Duration;

/// How long a comparison may take: a time for the whole, and a longer one until its arms were looked at. With fewer
/// blocks than the first look needs, it would show nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxTime {
    /// In all, once the arms were looked at.
    pub all: Duration,
    /// Until the arms are looked at.
    pub to_first_look: Duration,
}

impl MaxTime {
    /// How long it may take with this many `blocks`, if the first look comes with `first_look` blocks.
    pub fn with(self, blocks: usize, first_look: u32) -> Duration {
        if blocks < first_look as usize { self.all.max(self.to_first_look) } else { self.all }
    }
}

/// One time for all.
impl From<Duration> for MaxTime {
    fn from(all: Duration) -> Self {
        Self { all, to_first_look: all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_may_take_longer() {
        let [all, to_first_look] = [30, 120].map(Duration::from_secs);
        let time = MaxTime { all, to_first_look };
        assert_eq!(
            [0, 5, 6, 10].map(|blocks| time.with(blocks, 6)),
            [to_first_look, to_first_look, all, all]
        );
        let same = MaxTime::from(all);
        assert_eq!([5, 6].map(|blocks| same.with(blocks, 6)), [all, all]);
    }
}
