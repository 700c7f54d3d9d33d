//! The files of a system that keep values over a reboot.

/// A file of a system that keeps values over a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// Its path.
    pub path: String,
    /// Whether all of it is goodput's; otherwise only the marked lines are.
    pub whole: bool,
    /// The link that puts it to use, made and removed with it.
    pub link: Option<&'static str>,
    /// Whether its folder is there for such files only, and goes with the last of them.
    pub folder: bool,
}

impl Keeper {
    /// A file of others with marked lines of ours.
    pub fn lines(path: impl Into<String>) -> Self {
        Self { path: path.into(), whole: false, link: None, folder: false }
    }

    /// A file of ours.
    pub fn whole(path: impl Into<String>) -> Self {
        Self { whole: true, ..Self::lines(path) }
    }
}
