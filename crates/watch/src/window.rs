//! How many of the newest tests are compared with those before them.

/// Fewest: a change lasts.
pub(crate) const MIN_WINDOW: usize = 4;
/// Most. A longer window would find smaller changes, later.
pub(crate) const MAX_WINDOW: usize = 32;
