//! Which part of the random faults a case belongs to: the one that rules may be fitted to, or the one that is held out.

/// Share of the cases that nothing may be fitted to, in 256ths.
const HELD_OUT_256THS: u8 = 64;

/// A part of the random faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Nothing is fitted to it, and nobody looks at its single cases.
    HeldOut,
    /// Rules and numbers may be fitted to it.
    Fit,
}

impl Part {
    /// Each part with its title, the one that says more first.
    pub const ALL: [(&str, Self); 2] = [("Held out", Self::HeldOut), ("Fitted to", Self::Fit)];

    /// The part of a fault, by the first byte of its [digest](crate::random::Case::digest). A fault and its twin share
    /// it, and so do repeated runs.
    pub fn of(digest: &str) -> Option<Self> {
        let first = u8::from_str_radix(digest.get(..2)?, 16).ok()?;
        Some(if first < HELD_OUT_256THS { Self::HeldOut } else { Self::Fit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_of_the_digest_decides() {
        assert_eq!(Part::of("3fab"), Some(Part::HeldOut));
        assert_eq!(Part::of("40ab"), Some(Part::Fit));
        assert_eq!([Part::of(""), Part::of("zz")], [None, None]);
    }
}
