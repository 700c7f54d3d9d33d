//! The files of a system that keep values over a reboot.

/// A file of a system that keeps values over a reboot.
#[derive(Debug, PartialEq, Eq)]
pub struct Keeper {
    /// Its path.
    pub path: &'static str,
    /// Whether all of it is goodput's; otherwise only the marked lines are.
    pub whole: bool,
}
