//! What someone may have meant.

/// The name that looks most like `typed`, if there are any.
pub fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &str| strsim::jaro_winkler(typed, other);
    names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}
