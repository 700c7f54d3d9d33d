//! Cells that expire, such as addresses with a lifetime. The text is followed by the time of expiry, in seconds of the
//! monotonic clock, so that goodput can restore the remaining lifetime. A different expiry is no difference: routers
//! and DHCP servers change it all the time.

use goodput_netlink::Lasting;

const UNTIL: &str = " until ";
const FOR_GOOD: &str = "-";

/// The text of a cell and its expiry.
pub(super) fn written(text: String, lasting: Option<Lasting>) -> String {
    written_at(text, lasting, now_s())
}

fn written_at(text: String, lasting: Option<Lasting>, now: u64) -> String {
    let end = |left: Option<u32>| {
        left.map_or(FOR_GOOD.to_owned(), |left| (now + u64::from(left)).to_string())
    };
    match lasting {
        None => text,
        Some(Lasting { preferred_s, valid_s }) => {
            format!("{text}{UNTIL}{} {}", end(preferred_s), end(valid_s))
        }
    }
}

/// The text of a cell, and its remaining lifetime.
pub(super) fn read(cell: &str) -> (&str, Option<Lasting>) {
    read_at(cell, now_s())
}

fn read_at(cell: &str, now: u64) -> (&str, Option<Lasting>) {
    let Some((text, ends)) = cell.split_once(UNTIL) else { return (cell, None) };
    let left = |end: &str| {
        let end: Option<u64> = end.parse().ok();
        end.map(|end| u32::try_from(end.saturating_sub(now)).unwrap_or(u32::MAX))
    };
    let (preferred, valid) = ends.split_once(' ').unwrap_or((ends, ends));
    (text, Some(Lasting { preferred_s: left(preferred), valid_s: left(valid) }))
}

/// Whether two cells differ at most in their expiry.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let text = |cell: &str| cell.split_once(UNTIL).map_or(cell.len(), |(text, _)| text.len());
    one[..text(one)] == other[..text(other)]
}

/// Whether the kernel has removed it by now on its own.
pub(super) fn has_ended(cell: &str) -> bool {
    read(cell).1.is_some_and(|lasting| lasting.valid_s == Some(0))
}

fn now_s() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_lasts_as_long_as_it_would_have() {
        let lasting = Lasting { preferred_s: Some(10), valid_s: Some(30) };
        let cell = written_at("ab".into(), Some(lasting), 100);
        assert_eq!(cell, "ab until 110 130");
        let later = Lasting { preferred_s: Some(0), valid_s: Some(15) };
        assert_eq!(read_at(&cell, 115), ("ab", Some(later)));
        let ended = Lasting { preferred_s: Some(0), valid_s: Some(0) };
        assert_eq!(read_at(&cell, 999), ("ab", Some(ended)));
        let old = Lasting { preferred_s: Some(0), valid_s: None };
        assert_eq!(written_at("ab".into(), Some(old), 7), "ab until 7 -");
        assert_eq!(read_at("ab until 7 -", 8), ("ab", Some(old)));
        assert_eq!(read_at("ab", 8), ("ab", None));
    }

    #[test]
    fn when_something_ends_is_no_difference() {
        assert!(same("ab until 1 2", "ab until 3 4") && same("ab", "ab until 3 -"));
        assert!(!same("ab until 1 2", "ac until 1 2") && !same("ab", "abc"));
        assert!(has_ended("ab until 0 0") && !has_ended("ab until 0 -") && !has_ended("ab"));
    }
}
