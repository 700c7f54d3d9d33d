//! Every format prints every kind of record in its own shape.

mod golden;
pub(super) mod made_up;
mod pscheduler;
mod shape;

use goodput_model::{Direction, Known, Transport};

use super::counts::directions;
use super::{ALL, Intervals, Style, find, print};
use made_up::{Far, Made, all_kinds};

#[test]
fn ids_are_distinguished_and_found() {
    for format in ALL {
        assert_eq!(find(format.id).unwrap().id, format.id);
        assert_eq!(ALL.iter().filter(|other| other.id == format.id).count(), 1);
    }
    assert!(find("iperf4").unwrap_err().contains("iperf3"));
}

#[test]
fn every_format_prints_every_record_in_its_shape() {
    for made in all_kinds() {
        let record = made.record();
        for format in ALL {
            for intervals in [Intervals::Usual, Intervals::All, Intervals::None] {
                let text = print(format, &record, Style { intervals, ..Style::default() });
                shape::check(format.id, &text).unwrap_or_else(|why| {
                    panic!("{} of {made:?} with {intervals:?}: {why}\n{text}", format.id)
                });
            }
        }
    }
}

#[test]
fn a_failure_is_printed_where_the_program_would() {
    for format in ALL {
        let made = Made {
            transport: Transport::Tcp,
            direction: Direction::Send,
            flows: 1,
            far: Far::Reported,
            samples: true,
        };
        let mut writer = (format.writer)(made.context());
        match format.id {
            "iperf3" => {
                let text = writer.fail("no route").unwrap();
                let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(tree["error"], "no route");
            }
            "iperf3-stream" => {
                let expected = "{\"event\":\"error\",\"data\":\"no route\"}\n";
                assert_eq!(writer.fail("no route").unwrap(), expected);
            }
            _ => assert_eq!(writer.fail("no route"), None),
        }
    }
}

/// A receiver that keeps reading what is still on its way must not make the sender's time longer.
#[test]
fn each_side_counted_as_long_as_its_own_end() {
    let mut record = Made::plain().record();
    let Known::Value(far) = &mut record.ends.far else { panic!("it is seen") };
    far.samples.last_mut().unwrap().at_s = 5.0;
    let counts = &directions(&record, &[])[0];
    assert_eq!((counts.sent.seconds, counts.received.seconds), (Some(2.0), Some(5.0)));
    record.ends.near = Known::missing("made up");
    let counts = &directions(&record, &[])[0];
    assert_eq!((counts.sent.seconds, counts.received.seconds), (Some(5.0), Some(5.0)));
}
