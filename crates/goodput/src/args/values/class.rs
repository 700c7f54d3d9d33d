//! A class of a shaper's traffic: what distinguishes its packets, and what it should get.

use goodput_engine::{ClassMark, ClassRequest};
use goodput_shaping::ClassAsked;

use super::dscp::dscp;
use super::{rate, unfit};

/// `NAME=RATE[..CEIL]`.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn class(text: &str) -> Result<ClassRequest, String> {
    let (name, rates) = text.split_once('=').ok_or_else(|| {
        unfit(
            text,
            "a class with its rate",
            "NAME=RATE or NAME=RATE..CEIL, like ef=20mbit..100mbit",
        )
    })?;
    let (least, ceil) = match rates.split_once("..") {
        Some((least, ceil)) => (least, Some(rate::positive(ceil)?)),
        None => (rates, None),
    };
    let least = rate::positive(least)?;
    if ceil.is_some_and(|ceil| ceil.0 < least.0) {
        return Err(format!("the ceil of {name} is below its rate; write the rate first"));
    }
    let asked = ClassAsked { name: name.to_owned(), rate: least, ceil };
    Ok(ClassRequest { asked, mark: mark(name)? })
}

fn mark(name: &str) -> Result<ClassMark, String> {
    let port = |text: &str| match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(unfit(name, "a class", "its port as source-port:PORT or port:PORT, 1 to 65535")),
    };
    if let Some(text) = name.strip_prefix("source-port:") {
        return port(text).map(ClassMark::SourcePort);
    }
    if let Some(text) = name.strip_prefix("port:") {
        return port(text).map(ClassMark::Port);
    }
    let write = "a DSCP (0 to 63, or a name like ef, af41 or be), source-port:PORT or port:PORT";
    dscp(name).map(ClassMark::Dscp).map_err(|_| unfit(name, "a class", write))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_a_mark_a_rate_and_perhaps_a_ceil() {
        let ef = class("ef=20mbit..100mbit").unwrap();
        assert_eq!((ef.mark, ef.asked.rate.0), (ClassMark::Dscp(46), 2e7));
        assert_eq!(ef.asked.ceil.map(|ceil| ceil.0), Some(1e8));
        assert_eq!(ef.asked.name, "ef");
        let marks = ["source-port:5000=1mbit", "port:9000=1mbit", "0=1mbit"];
        let marks = marks.map(|text| class(text).unwrap().mark);
        let expected = [ClassMark::SourcePort(5000), ClassMark::Port(9000), ClassMark::Dscp(0)];
        assert_eq!(marks, expected);
        assert_eq!(class("be=1mbit").unwrap().asked.ceil, None);
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        let cases = [
            ("ef", "NAME=RATE"),
            ("", "NAME=RATE"),
            ("ef=", "a rate above 0"),
            ("ef=0", "a rate above 0"),
            ("ef=20mbit..", "a rate above 0"),
            ("ef=20mbit..10mbit", "below its rate"),
            ("voice=1mbit", "a DSCP"),
            ("64=1mbit", "a DSCP"),
            ("port:0=1mbit", "1 to 65535"),
            ("source-port:x=1mbit", "1 to 65535"),
        ];
        for (text, words) in cases {
            let refused = class(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
