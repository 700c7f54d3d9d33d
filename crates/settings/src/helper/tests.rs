//! Whatever comes, the messages of the server and its helper survive it, and only a request passes for a request.

use goodput_model::{EndName, SettingRef};
use proptest::prelude::*;

use crate::error::SettingError;

use super::message::{Answer, LONGEST_PACKET_BYTES, Refusal, Request, Work, answer_packet, hear};

fn setting() -> impl Strategy<Value = SettingRef> {
    let scope = proptest::option::of("[a-z0-9.:/]{1,12}");
    ("[a-z]{1,8}\\.[a-z_/0-9-]{1,40}", scope).prop_map(|(name, scope)| SettingRef {
        end: EndName::Near,
        name,
        scope,
    })
}

fn request() -> impl Strategy<Value = Request> {
    let work = prop_oneof![
        setting().prop_map(Work::Read),
        proptest::collection::vec((setting(), ".{0,200}"), 0..4).prop_map(Work::Check),
        (setting(), ".{0,200}").prop_map(|(setting, value)| Work::Apply(setting, value)),
        Just(Work::Hold),
        Just(Work::Restore),
    ];
    (any::<u64>(), any::<bool>(), work).prop_map(|(client, is_here, work)| Request {
        client,
        is_here,
        work,
    })
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in request()) {
        let packet = request.packet().expect("it is short");
        prop_assert_eq!(Request::parse(&packet), Ok(request));
    }

    #[test]
    fn garbage_is_refused_and_nothing_else_happens(packet in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Request::parse(&packet).is_err());
        let _ = hear(&packet);
    }

    #[test]
    fn a_request_with_a_byte_changed_is_read_strictly(request in request(), at: usize, byte: u8) {
        let mut packet = request.packet().expect("it is short");
        let at = at % packet.len();
        packet[at] = byte;
        // Whatever was parsed serialises to exactly the same meaning.
        if let Ok(read) = Request::parse(&packet) {
            prop_assert_eq!(Request::parse(&read.packet().expect("it is short")), Ok(read));
        }
    }

    #[test]
    fn a_request_cut_short_is_refused(request in request(), at: usize) {
        let packet = request.packet().expect("it is short");
        prop_assert!(Request::parse(&packet[..at % packet.len()]).is_err());
    }

    #[test]
    fn an_answer_fits_into_a_packet(why in "\\PC{0,4000}", refused: [bool; 3], done: bool) {
        let [not_permitted, not_taken, busy] = refused;
        let answer: Answer =
            if done { Ok(why) } else { Err(Refusal { not_permitted, not_taken, busy, why }) };
        let packet = answer_packet(answer.clone());
        prop_assert!(packet.len() <= LONGEST_PACKET_BYTES);
        let heard = hear(&packet).expect("it is an answer");
        prop_assert!(heard == answer || heard.is_err());
    }
}

#[test]
fn a_value_that_the_kernel_does_not_take_is_reported_as_such() {
    let refused = |not_back| {
        let setting = "offload.tso@eth0".parse().expect("a setting");
        let [asked, effective] = ["on", "off"].map(str::to_owned);
        Refusal::from(SettingError::NotEffective { setting, asked, effective, not_back })
    };
    let refusal = refused(None);
    assert!(refusal.not_taken && !refusal.not_permitted);
    let packet = answer_packet(Err(refusal.clone()));
    assert_eq!(hear(&packet).expect("it is an answer"), Err(refusal));
    let why = Box::new(SettingError::Guard("it ended".into()));
    assert!(!refused(Some(why)).not_taken, "something stayed changed");
}

#[test]
fn more_or_less_than_a_request_has_is_refused() {
    for text in [
        r#"{"client":1,"work":"read"}"#,
        r#"{"client":1,"work":"read","setting":"a.b","value":"c"}"#,
        r#"{"client":1,"work":"apply","setting":"a.b"}"#,
        r#"{"client":1,"work":"check","setting":"a.b","value":"c"}"#,
        r#"{"client":1,"work":"check","arm":[["a b","c"]]}"#,
        r#"{"client":1,"work":"restore","setting":"a.b"}"#,
        r#"{"client":1,"work":"run","setting":"a.b"}"#,
        r#"{"client":1,"work":"read","setting":"a b"}"#,
        r#"{"client":1,"work":"read","setting":"a.b","more":1}"#,
        r#"{"client":-1,"work":"restore"}"#,
        r#"{"client":1,"work":"restore"} {"client":1,"work":"restore"}"#,
        r#"{"client":1,"client":2,"work":"restore"}"#,
        "",
    ] {
        assert!(Request::parse(text.as_bytes()).is_err(), "{text}");
    }
    let fine = br#"{"client":1,"work":"read","setting":"a.b"}"#;
    assert!(Request::parse(fine).is_ok());
    let long = Request {
        client: 1,
        is_here: false,
        work: Work::Apply("a.b".parse().unwrap(), "x".repeat(LONGEST_PACKET_BYTES)),
    };
    assert_eq!(long.packet(), None);
    assert!(Request::parse(&[b' '; LONGEST_PACKET_BYTES + 1]).unwrap_err().contains("more than"));
}
