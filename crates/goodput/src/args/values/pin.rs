//! `--pin`: on which CPUs the flows' threads of an end run.

use std::str::FromStr;

use goodput_model::{EndName, Pin, Pins};

use super::unfit;

/// One value of `--pin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinArg {
    end: EndName,
    pin: Pin,
}

/// The values of one command line together; of several for one end the last one counts.
pub fn pins(given: &[PinArg]) -> Pins {
    let mut pins = Pins::default();
    for PinArg { end, pin } in given {
        match end {
            EndName::Near => pins.near = pin.clone(),
            EndName::Far => pins.far = pin.clone(),
        }
    }
    pins
}

/// The values that ask for these.
pub fn typed(pins: &Pins) -> impl Iterator<Item = String> {
    let ends = [("", &pins.near), ("far:", &pins.far)];
    ends.into_iter().filter_map(|(end, pin)| match pin {
        Pin::None => None,
        Pin::Auto => Some(format!("{end}auto")),
        Pin::Cpus(cpus) => {
            let cpus: Vec<_> = cpus.iter().map(u16::to_string).collect();
            Some(format!("{end}{}", cpus.join(",")))
        }
    })
}

impl FromStr for PinArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (end, rest) = match text.split_once(':') {
            None => (EndName::Near, text),
            Some(("far", rest)) => (EndName::Far, rest),
            Some(_) => return Err(wrong(text)),
        };
        let pin = match rest {
            "none" => Pin::None,
            "auto" => Pin::Auto,
            list => Pin::Cpus(cpus(list).ok_or_else(|| wrong(text))?),
        };
        Ok(Self { end, pin })
    }
}

fn wrong(text: &str) -> String {
    let like = "it like 2,4-7, or far:2,4-7 for the far end";
    unfit(text, "a list of CPUs, auto or none", like)
}

/// The CPUs of a list, in its order.
fn cpus(list: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => cpus.extend(first..=last),
            _ => return None,
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_own_and_the_last_word_counts() {
        let read = |texts: &[&str]| {
            let given: Result<Vec<PinArg>, _> = texts.iter().map(|t| t.parse()).collect();
            given.map(|given| pins(&given))
        };
        let both = read(&["auto", "far:4-6,1", "3"]).unwrap();
        assert_eq!(both, Pins { near: Pin::Cpus(vec![3]), far: Pin::Cpus(vec![4, 5, 6, 1]) });
        assert!(read(&["none"]).unwrap().are_none());
        for wrong in ["", "a", "1-", "5-4", "near:1", "far:", "1,,2", "-1", "65536", "1;2"] {
            assert!(read(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
