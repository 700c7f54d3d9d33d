//! The name of a mover.

use goodput_mover::{ALL, AUTO};

use super::unfit;

/// The id of a mover, or [`AUTO`].
///
/// # Errors
/// A sentence that says what to write instead.
pub fn mover(text: &str) -> Result<String, String> {
    let known: Vec<_> = [AUTO].into_iter().chain(ALL.iter().map(|mover| mover.id())).collect();
    match known.contains(&text) {
        true => Ok(text.into()),
        false => Err(unfit(text, "a mover", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_mover_has_is_refused_with_those_that_one_has() {
        assert_eq!(mover("auto"), Ok("auto".into()));
        assert_eq!(mover("copy"), Ok("copy".into()));
        assert!(mover("coppy").unwrap_err().contains("auto, copy, "));
    }
}
