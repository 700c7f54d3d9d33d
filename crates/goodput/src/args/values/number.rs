//! Whole numbers within a range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::unfit;

/// The parser of whole numbers of `noun`, like "a number of flows", that are in `range`.
pub fn whole<T>(
    noun: &'static str,
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (least, most) = (range.start(), range.end());
        number.ok_or_else(|| unfit(text, noun, format_args!("a whole number, {least} to {most}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_and_what_is_no_number_are_refused_alike() {
        let flows = whole("a number of flows", 1..=u16::MAX);
        assert_eq!((flows("1"), flows("65535")), (Ok(1), Ok(65535)));
        for text in ["0", "65536", "-1", "1.5", "x", ""] {
            let why =
                format!("{text:?} is not a number of flows; write a whole number, 1 to 65535");
            assert_eq!(flows(text), Err(why));
        }
    }
}
