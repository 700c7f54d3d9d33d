//! Whether the comparison of a change is its proof as well: only if no other change was tried, because then nothing was
//! chosen by its result.

/// The only change that was tried, if there is one. `T` is what proves it.
#[derive(Debug)]
pub enum OnlyChange<T> {
    /// Nothing was tried.
    None,
    /// One change was tried once; its comparison, if the change was kept.
    Tried(Option<T>),
    /// Several were tried, or one several times.
    Several,
}

impl<T> OnlyChange<T> {
    /// How many comparisons the next change needs while others wait: its own and the proof, or both in one.
    pub fn comparisons(&self, waiting: usize) -> u8 {
        if matches!(self, Self::None) && waiting == 0 { 1 } else { 2 }
    }

    /// A change was compared. With its comparison, if the change was kept.
    pub fn tried(&mut self, kept: Option<T>) {
        *self = match self {
            Self::None => Self::Tried(kept),
            Self::Tried(_) | Self::Several => Self::Several,
        };
    }

    /// Whether the comparison of the only change proves it.
    pub fn is_proof(&self) -> bool {
        matches!(self, Self::Tried(Some(_)))
    }

    /// The comparison that proves the only change.
    pub fn take_proof(&mut self) -> Option<T> {
        match self {
            Self::Tried(kept) => kept.take(),
            Self::None | Self::Several => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_that_was_tried_alone_and_kept_has_its_proof() {
        let proof = |tried: &[Option<&'static str>]| {
            let mut only = OnlyChange::None;
            tried.iter().for_each(|kept| only.tried(*kept));
            only.take_proof()
        };
        assert_eq!(proof(&[Some("first")]), Some("first"));
        for tried in [&[][..], &[None], &[None, Some("second")], &[Some("first"), None]] {
            assert_eq!(proof(tried), None, "{tried:?}");
        }
    }

    #[test]
    fn only_the_first_change_with_none_behind_it_needs_one_comparison() {
        let mut only: OnlyChange<&str> = OnlyChange::None;
        assert_eq!((only.comparisons(0), only.comparisons(1)), (1, 2));
        only.tried(None);
        assert_eq!(only.comparisons(0), 2);
    }
}
