//! What is said of a turn that the user ends.

use super::plan::named;

/// How many of all tests are made, and which are `left`, if they were few enough to be named.
pub fn part(done: usize, all: usize, left: &[String]) -> String {
    let made = match (done, all) {
        (0, 1) => "ended before its test".into(),
        (0, _) => format!("ended before the first of {all} tests"),
        _ => format!("ended after {done} of {all} tests"),
    };
    let names = match left.is_empty() {
        true => String::new(),
        false => format!(". Not made: {}", named(left.iter().cloned())),
    };
    format!(
        "{made}{names}. A test that has begun goes on, and its agent keeps the record; the next `goodput fleet run` with this mesh \
         file goes on with the others"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_counted_and_what_is_not_is_named() {
        let left = |count: usize| (0..count).map(|n| format!("a → {n}")).collect::<Vec<_>>();
        let said = part(4, 6, &left(2));
        assert!(said.starts_with("ended after 4 of 6 tests. Not made: a → 0, a → 1. "), "{said}");
        let said = part(0, 7, &left(7));
        assert!(said.starts_with("ended before the first of 7 tests. Not made: a → 0, "), "{said}");
        assert!(said.contains("a → 5 and 1 other. A test"), "{said}");
        assert!(part(1, 999_000, &[]).starts_with("ended after 1 of 999000 tests. A test"));
    }
}
