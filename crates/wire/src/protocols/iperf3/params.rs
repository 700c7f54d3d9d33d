//! The parameters of a test: JSON that the client sends (3.21, `send_parameters` and
//! `get_parameters` in `iperf_api.c`).

use serde::Serialize;
use serde_json::Value;

use super::number::{flag, is_absurd, whole};
use crate::plain;

/// Longest text of a client that is kept, bytes.
const MAX_TEXT_BYTES: usize = 64;

/// Parameters, as a client writes them and a server reads them. The server chooses absent ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Params {
    #[serde(skip_serializing_if = "is_off")]
    pub tcp: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub udp: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub sctp: bool,
    /// Seconds of warm-up.
    pub omit: u64,
    /// CPU to which the server binds its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_affinity: Option<u64>,
    /// Seconds; 0 if another condition ends the test.
    pub time: Option<u64>,
    /// Payload bytes over all streams of a direction; 0 for none.
    pub num: u64,
    /// Writes over all streams of a direction; 0 for none.
    pub blockcount: u64,
    #[serde(rename = "MSS", skip_serializing_if = "Option::is_none")]
    pub mss: Option<u64>,
    #[serde(skip_serializing_if = "is_off")]
    pub nodelay: bool,
    /// Streams of each direction.
    pub parallel: Option<u64>,
    #[serde(skip_serializing_if = "is_off")]
    pub reverse: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub bidirectional: bool,
    /// Bytes of both socket buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Bytes of a write or a datagram.
    pub len: Option<u64>,
    /// Bits per second of each stream; 0 for unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// Rate at which the kernel paces each socket, bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqrate: Option<u64>,
    /// Type of service: DSCP and ECN.
    #[serde(rename = "TOS", skip_serializing_if = "Option::is_none")]
    pub tos: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    #[serde(skip_serializing_if = "is_off", serialize_with = "one")]
    pub get_server_output: bool,
    #[serde(skip_serializing_if = "is_off", serialize_with = "one")]
    pub udp_counters_64bit: bool,
    #[serde(skip_serializing_if = "is_off", serialize_with = "one")]
    pub zerocopy: bool,
    #[serde(skip_serializing_if = "is_off", serialize_with = "one")]
    pub dont_fragment: bool,
    #[serde(skip_serializing_if = "is_off", serialize_with = "one")]
    pub skip_rx_copy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// The first key whose number is not a valid amount.
    #[serde(skip)]
    pub absurd: Option<&'static str>,
}

/// Keys with numbers.
const NUMBERS: [&str; 12] = [
    "omit",
    "server_affinity",
    "time",
    "num",
    "blockcount",
    "MSS",
    "parallel",
    "window",
    "len",
    "bandwidth",
    "fqrate",
    "TOS",
];

/// serde passes the flag by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_off(flag: &bool) -> bool {
    !flag
}

/// These flags are numbers in every version.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn one<S: serde::Serializer>(flag: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u8(u8::from(*flag))
}

impl Params {
    /// Reads a client's parameters: unknown keys and values of another type are ignored, as in every version.
    pub fn read(json: &Value) -> Self {
        let is_set = |key: &str| json.get(key).is_some_and(flag);
        let number = |key: &str| json.get(key).and_then(whole);
        let text = |key: &str| json.get(key).and_then(Value::as_str);
        let short = |key| text(key).map(|text| plain::short(text, MAX_TEXT_BYTES));
        Self {
            tcp: is_set("tcp"),
            udp: is_set("udp"),
            sctp: is_set("sctp"),
            omit: number("omit").unwrap_or(0),
            server_affinity: number("server_affinity"),
            time: number("time"),
            num: number("num").unwrap_or(0),
            blockcount: number("blockcount").unwrap_or(0),
            mss: number("MSS").filter(|mss| *mss > 0),
            nodelay: is_set("nodelay"),
            parallel: number("parallel"),
            reverse: is_set("reverse"),
            bidirectional: is_set("bidirectional"),
            window: number("window").filter(|window| *window > 0),
            len: number("len"),
            bandwidth: number("bandwidth").filter(|rate| *rate > 0),
            fqrate: number("fqrate").filter(|rate| *rate > 0),
            tos: number("TOS"),
            congestion: short("congestion"),
            get_server_output: is_set("get_server_output"),
            udp_counters_64bit: is_set("udp_counters_64bit"),
            zerocopy: is_set("zerocopy"),
            dont_fragment: is_set("dont_fragment"),
            skip_rx_copy: is_set("skip_rx_copy"),
            authtoken: text("authtoken").map(str::to_owned),
            client_version: short("client_version"),
            absurd: NUMBERS.into_iter().find(|key| json.get(key).is_some_and(is_absurd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Params {
        Params::read(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn parameters_of_3_12_are_read() {
        let params = read(
            r#"{"udp":true,"omit":0,"time":0,"num":3072,"blockcount":0,"parallel":1,"reverse":true,
            "len":512,"bandwidth":10000000,"pacing_timer":1000,"udp_counters_64bit":1,
            "client_version":"3.12"}"#,
        );
        let wanted = Params {
            udp: true,
            time: Some(0),
            num: 3072,
            parallel: Some(1),
            reverse: true,
            len: Some(512),
            bandwidth: Some(10_000_000),
            udp_counters_64bit: true,
            client_version: Some("3.12".into()),
            ..Params::default()
        };
        assert_eq!(params, wanted);
    }

    #[test]
    fn what_3_21_adds_changes_nothing_for_a_server() {
        let params = read(
            r#"{"udp":true,"omit":0,"time":5,"num":0,"blockcount":0,"parallel":1,"mptcp":true,
            "len":1448,"bandwidth":1048576,"pacing_timer":1000,"burst":10,"gso":1,
            "gso_dg_size":1448,"gso_bf_size":64512,"gro":1,"gro_bf_size":65507,"flowlabel":7,
            "title":"t","extra_data":"e","congestion_used":"bbr","repeating_payload":1,
            "udp_counters_64bit":1,"skip_rx_copy":1,"client_version":"3.21"}"#,
        );
        let wanted = Params {
            udp: true,
            time: Some(5),
            parallel: Some(1),
            len: Some(1448),
            bandwidth: Some(1_048_576),
            udp_counters_64bit: true,
            skip_rx_copy: true,
            client_version: Some("3.21".into()),
            ..Params::default()
        };
        assert_eq!(params, wanted);
    }

    #[test]
    fn whatever_json_it_is_there_are_parameters() {
        for odd in ["{}", "[]", "7", r#"{"time":"ten","udp":"yes","parallel":[4]}"#] {
            assert_eq!(read(odd), Params::default(), "{odd}");
        }
    }

    #[test]
    fn numbers_that_are_no_amount_are_reported_by_their_key() {
        for (json, key) in [(r#"{"TOS":-1}"#, "TOS"), (r#"{"num":1e300,"bandwidth":-5}"#, "num")] {
            assert_eq!(read(json), Params { absurd: Some(key), ..Params::default() }, "{json}");
        }
    }

    #[test]
    fn what_is_written_is_read_the_same_and_says_no_more_than_it_must() {
        let params = Params {
            tcp: true,
            time: Some(10),
            parallel: Some(2),
            len: Some(131_072),
            skip_rx_copy: true,
            ..Params::default()
        };
        let json = serde_json::to_string(&params).unwrap();
        let wanted = r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":2,"len":131072,"skip_rx_copy":1}"#;
        assert_eq!(json, wanted);
        assert_eq!(read(&json), params);
    }
}
