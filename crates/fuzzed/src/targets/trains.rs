//! Trains of datagrams with any numbers and times, packed as a far end reports them.

use base64ct::{Base64, Encoding};
use goodput_model::{Arrival, BitRate, Estimate, FlowArrivals, Known, Missing};
use goodput_shaping::{
    ClassAsked, ClassSeen, Configured, Sizes, TcpRate, Train, behind, classes, overlapping, shaping,
    sharing,
};

/// Rate of the shaper, bits per second.
const RATE: BitRate = BitRate(1e8);

/// Takes any bytes: how many were sent, then the packed datagrams. The last eight are also how many a firewall dropped.
pub fn run(data: &[u8]) {
    let Some((sent, packed)) = data.split_first_chunk() else { return };
    let Some(arrivals) = unpacked(packed) else { return };
    let sent = u64::from_be_bytes(*sent);
    let refused = data.last_chunk().map_or(0, |last| u64::from_be_bytes(*last));
    let (one, other) = arrivals.split_at(arrivals.len() / 2);
    let (one, other) = (train(one, sent, refused), train(other, sent, refused));
    let _ = sharing(&one, &other, RATE.0);
    of_classes(vec![Ok(one), Ok(other)]);
    let whole = train(&arrivals, sent, refused);
    let _ = (shaping(&whole), behind(&whole));
    if let Ok(checked) = whole.checked() {
        assert!(checked.arrivals.iter().all(|arrival| arrival.number < sent));
        assert!(checked.refused <= sent);
    }
}

/// The datagrams, unless a number is cut short.
fn unpacked(packed: &[u8]) -> Option<Vec<Arrival>> {
    let json = serde_json::json!({ "flow": 0, "datagrams": [Base64::encode_string(packed)] });
    Some(serde_json::from_value::<FlowArrivals>(json).ok()?.datagrams)
}

fn train(arrivals: &[Arrival], sent: u64, refused: u64) -> Train {
    Train {
        arrivals: arrivals.to_vec(),
        sent,
        sizes: Sizes { payload: 1472, packet: 1500, frame: 1514 },
        held_percent: Known::missing("not counted"),
        rate_waits_per_call: Known::missing("not counted"),
        batch: 1.0, joined: None,
        refused,
    }
}

/// The trains as those of classes that sent at the same time.
fn of_classes(trains: Vec<Result<Train, Missing>>) {
    let goodput = Estimate { value: RATE.0, low: RATE.0, high: RATE.0 };
    let tcp = TcpRate { goodput, payload: 1448.0, packet: 1500.0, window_s: None };
    let none = || Missing::because("not measured");
    let seen = overlapping(trains).into_iter().map(|datagrams| ClassSeen {
        asked: ClassAsked { name: "ef".into(), rate: RATE, ceil: None },
        alone: Ok(tcp),
        beside: Ok(tcp),
        datagrams,
        sender: Err(none()),
    });
    let configured =
        Configured { rate: RATE, tolerance_percent: 2.0, max_burst: None, counts: None };
    let test = classes(configured, &seen.collect::<Vec<_>>());
    assert_eq!(test.classes.len(), 2);
}
