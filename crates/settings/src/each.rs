//! Values of several objects of one kind in one text: one value if all have the same, otherwise one each in the order
//! of the objects, separated by spaces.

/// The text of these values.
pub fn joined(mut values: Vec<String>) -> String {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.truncate(1);
    }
    values.join(" ")
}

/// The part of `text` for the object in this place; `None` if the text has values for fewer objects.
pub fn own(text: &str, place: usize) -> Option<&str> {
    if text.contains(' ') { text.split(' ').nth(place) } else { Some(text) }
}

/// Whether each object has one of its own `values`: a change from one to another that was cut short may leave this.
pub fn is_between(now: &str, values: &[&str]) -> bool {
    let count = values.iter().chain([&now]).map(|text| text.split(' ').count()).max();
    (0..count.unwrap_or(1))
        .all(|place| values.iter().any(|value| own(value, place) == own(now, place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_for_all_and_several_are_for_one_each() {
        assert_eq!([0, 5].map(|place| own("f", place)), [Some("f"), Some("f")]);
        assert_eq!([0, 1, 2].map(|place| own("1 2", place)), [Some("1"), Some("2"), None]);
        let joined = |values: &[&str]| joined(values.iter().map(|v| (*v).to_owned()).collect());
        assert_eq!((joined(&["f", "f"]), joined(&["f", "1"])), ("f".into(), "f 1".into()));
    }

    #[test]
    fn a_change_that_was_cut_short_is_between_its_ends() {
        assert!(is_between("c 3", &["3", "c"]) && is_between("3", &["3", "c"]));
        assert!(!is_between("c 1", &["3", "c"]) && !is_between("3 1", &["1 3", "1 2"]));
    }
}
