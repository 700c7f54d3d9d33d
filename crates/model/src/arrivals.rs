//! When each datagram of a flow was sent, and when it arrived.

use base64ct::{Base64, Encoding};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Number of datagrams of a flow whose times are kept at most.
pub const MAX_ARRIVALS: usize = 250_000;

/// Bytes of packed times in one string of the JSON. As Base64 they are 4096 characters, the longest text that a
/// message may have.
const CHUNK_BYTES: usize = 3072;

/// One datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Sequence number of the datagram, from 0.
    pub number: u64,
    /// When the sender handed the datagram to its kernel, nanoseconds of a clock of the sender.
    pub sent_ns: u64,
    /// When the receiver's kernel took the datagram from the device, nanoseconds of a clock of the receiver.
    pub came_ns: u64,
}

/// The first [`MAX_ARRIVALS`] datagrams of one flow that arrived, in order of arrival.
///
/// In JSON they are packed into strings. Each datagram's number, sending time and arrival time are stored as
/// differences from the previous datagram. The differences are zigzag varints (the encoding of Protocol Buffers'
/// `sint64`) in Base64 (RFC 4648).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowArrivals {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// The datagrams that arrived, packed.
    #[serde(serialize_with = "pack", deserialize_with = "unpack")]
    #[schemars(with = "Vec<String>")]
    pub datagrams: Vec<Arrival>,
}

const START: Arrival = Arrival { number: 0, sent_ns: 0, came_ns: 0 };

impl Arrival {
    fn numbers(self) -> [u64; 3] {
        [self.number, self.sent_ns, self.came_ns]
    }
}

fn pack<S: Serializer>(datagrams: &[Arrival], to: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::new();
    let mut before = START;
    for datagram in datagrams {
        for (now, then) in datagram.numbers().into_iter().zip(before.numbers()) {
            write_varint(&mut bytes, zigzag(now.wrapping_sub(then).cast_signed()));
        }
        before = *datagram;
    }
    to.collect_seq(bytes.chunks(CHUNK_BYTES).map(Base64::encode_string))
}

fn unpack<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arrival>, D::Error> {
    let mut bytes = Vec::new();
    for chunk in Vec::<String>::deserialize(from)? {
        bytes.extend(Base64::decode_vec(&chunk).map_err(|_| D::Error::custom("no Base64"))?);
    }
    let mut rest = &bytes[..];
    let (mut datagrams, mut before) = (Vec::new(), START);
    while !rest.is_empty() {
        if datagrams.len() >= MAX_ARRIVALS {
            return Err(D::Error::custom(format!("more than {MAX_ARRIVALS} datagrams")));
        }
        let mut next =
            |then: u64| read_varint(&mut rest).map(|by| then.wrapping_add_signed(unzigzag(by)));
        let each = (next(before.number), next(before.sent_ns), next(before.came_ns));
        let (Some(number), Some(sent_ns), Some(came_ns)) = each else {
            return Err(D::Error::custom("a number is cut short"));
        };
        before = Arrival { number, sent_ns, came_ns };
        datagrams.push(before);
    }
    Ok(datagrams)
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

fn write_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// `None` if the number is cut short or longer than 64 bits.
fn read_varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_times_come_back(numbers in proptest::collection::vec(any::<(u64, u64, u64)>(), 0..600)) {
            let arrival = |(number, sent_ns, came_ns)| Arrival { number, sent_ns, came_ns };
            let datagrams = numbers.into_iter().map(arrival).collect();
            let flow = FlowArrivals { flow: 3, datagrams };
            let json = serde_json::to_string(&flow).unwrap();
            prop_assert_eq!(serde_json::from_str::<FlowArrivals>(&json).unwrap(), flow);
        }

        #[test]
        fn any_text_is_read_or_refused(texts in proptest::collection::vec("[A-Za-z0-9+/=]{0,40}", 0..4)) {
            let json = serde_json::json!({ "flow": 0, "datagrams": texts });
            let _ = serde_json::from_value::<FlowArrivals>(json);
        }
    }

    #[test]
    fn datagrams_at_an_even_rate_take_few_bytes() {
        let datagrams = (0..10_000u64).map(|n| Arrival {
            number: n,
            sent_ns: (1 << 60) + n * 30_280,
            came_ns: (1 << 61) + n * 121_120,
        });
        let flow = FlowArrivals { flow: 0, datagrams: datagrams.collect() };
        let json = serde_json::to_string(&flow).unwrap();
        assert!(json.len() < 10_000 * 10, "{}", json.len());
        assert!(json.split('"').all(|text| text.len() <= 4096));
    }
}
