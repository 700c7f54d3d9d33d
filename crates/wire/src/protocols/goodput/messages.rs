//! The messages of the control connection: one JSON object with one member, the kind.
//!
//! The promise: a receiver ignores unknown fields, new fields are optional, and `hello.version` keeps its name and
//! type for ever. A new kind of message goes only to peers that have asked for it. Any other change increases
//! [`PROTOCOL_VERSION`].

use goodput_model::{End, FarHeads, Host, Known, Plan, ReceiveHash, Sample};
use serde::{Deserialize, Deserializer, Serialize};

use super::PROTOCOL_VERSION;
use crate::plain;
use crate::session::{Cookie, SettingRefusal, SettingRequest};
use crate::untrusted;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// Both: who speaks, and which version.
    Hello(Hello),
    /// Client: let us measure this.
    Propose(Propose),
    /// Server: yes, with these cookies.
    Accept(Accept),
    /// Both: no, or not any more. The connection goes on.
    Refuse(Refuse),
    /// Server: all data connections have arrived and proven themselves.
    FlowsReady(About),
    /// Client: let the payload move.
    Begin(About),
    /// Both: counters of the sending end.
    Sample(OneSample),
    /// Both: senders stop now.
    Finish(Finish),
    /// Server: heads of packets that it captured for the client, or a part of them.
    Captured(Captured),
    /// Both: this end's observations; the last message about a measurement.
    Report(Report),
    /// Client: read or change a setting.
    Setting(AskSetting),
    /// Server: the result.
    SettingDone(SettingAnswer),
    /// Both: still here.
    Ping(Ping),
    /// Both: the reason of closing; the last message of a connection.
    Goodbye(Goodbye),
}

impl Message {
    /// Reads a message of a peer: bounded, and with every text made safe for logs and terminals.
    ///
    /// Errors: the bytes are not a message, or have too many values for their length.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match untrusted::read(body)? {
            Self::Report(Report { measurement, end }) => {
                let end = end.map(|end| Box::new(plain::end(*end)));
                Self::Report(Report { measurement, end })
            }
            other => other,
        })
    }
}

/// Who sends this.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol; compared before anything else is understood.
    pub version: u32,
    /// The machine, a [`Host`] in this version. Anything else until the version is known.
    #[serde(default)]
    host: serde_json::Value,
    /// The sender's time of day, microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_us: Option<u64>,
    /// Whether the sender accepts zlib streams as bodies.
    #[serde(default)]
    pub inflates: bool,
    /// Whether the sender knows [`SettingRequest::Check`].
    #[serde(default)]
    pub checks_arms: bool,
    /// Whether the sender knows [`SettingRequest::Try`], [`SettingRequest::Echo`] and [`SettingRequest::Confirm`].
    #[serde(default)]
    pub confirms_changes: bool,
    /// Whether the sender knows [`SettingRequest::EchoAll`].
    #[serde(default)]
    pub echoes_all: bool,
    /// Whether the sender knows [`SettingRequest::Place`] and [`SettingRequest::Hold`].
    #[serde(default)]
    pub takes_turns: bool,
}

impl Hello {
    /// The greeting of `host` at its time of day, microseconds since 1970.
    pub fn of(host: &Host, unix_us: u64) -> Result<Self, serde_json::Error> {
        let host = serde_json::to_value(host)?;
        Ok(Self {
            version: PROTOCOL_VERSION,
            host,
            unix_us: Some(unix_us),
            inflates: true,
            checks_arms: true,
            confirms_changes: true,
            echoes_all: true,
            takes_turns: true,
        })
    }

    /// The sender's machine, if it speaks this version.
    pub fn host(self) -> Result<Host, serde_json::Error> {
        serde_json::from_value(self.host).map(plain::host)
    }
}

/// A measurement that the client asks for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Propose {
    /// Number of the measurement on this connection: 1, 2, and so on.
    pub measurement: u32,
    /// The plan; its near end is the client.
    pub plan: Box<Plan>,
}

/// The server's agreement.
#[derive(Debug, Serialize, Deserialize)]
pub struct Accept {
    /// Which measurement.
    pub measurement: u32,
    /// One cookie for each flow, in the order of [`Plan::flow_plans`], as 32 hexadecimal digits.
    pub cookies: Vec<HexCookie>,
    /// TCP port of the data connections, if it differs from the control connection's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_port: Option<std::num::NonZeroU16>,
    /// Cookie of the echoes that the server answers over UDP while the measurement lasts, if the
    /// plan observes or asks for the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<HexCookie>,
    /// How the server's card spreads received packets, if the plan asks for it, or why this is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_hash: Option<Known<Box<ReceiveHash>>>,
    /// Name of the device at which the server captures the flows' packets, if the plan asks for a capture, or why it
    /// captures nothing. A server that does not know captures leaves this out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Known<String>>,
    /// Names of the plan's socket options that the server sets, among those newer than version 1 (the module `later`).
    /// A server leaves out an option that it does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Seconds from `begin` after which the server ends the measurement on its own.
    pub longest_s: f64,
    /// What the client's user should know, such as a rate limit of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A measurement that won't begin, or won't go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refuse {
    /// Which measurement.
    pub measurement: u32,
    /// The reason, for the user at the other end.
    #[serde(deserialize_with = "reason")]
    pub why: String,
}

/// A message that only names its measurement.
#[derive(Debug, Serialize, Deserialize)]
pub struct About {
    /// Which measurement.
    pub measurement: u32,
}

/// Counters of the sending end.
#[derive(Debug, Serialize, Deserialize)]
pub struct OneSample {
    /// Which measurement.
    pub measurement: u32,
    /// The counters.
    pub sample: Box<Sample>,
}

/// Heads of packets that the server captured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Captured {
    /// Which measurement.
    pub measurement: u32,
    /// The heads, in the order in which the packets passed. Further messages have those of later packets.
    pub part: Box<FarHeads>,
}

/// The end of the payload.
#[derive(Debug, Serialize, Deserialize)]
pub struct Finish {
    /// Which measurement.
    pub measurement: u32,
    /// Why, if it was not the plan's own end.
    #[serde(default, deserialize_with = "some_reason", skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether receivers should wait only briefly for payload in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soon: bool,
}

/// The observations of one end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Which measurement.
    pub measurement: u32,
    /// The observations, or why they are not reported.
    pub end: Known<Box<End>>,
}

/// A question about a setting.
#[derive(Debug, Serialize, Deserialize)]
pub struct AskSetting {
    /// Number of the question on this connection.
    pub id: u32,
    /// The question.
    pub request: SettingRequest,
}

/// The answer to a question about a setting.
#[derive(Debug, Serialize, Deserialize)]
pub struct SettingAnswer {
    /// Number of the question.
    pub id: u32,
    /// The value, or why not.
    pub answer: Answer,
}

/// The result of a question about a setting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The value that is now effective.
    Value(String),
    /// All texts of an echo.
    Echoed(Vec<String>),
    /// It was not done.
    Refused(SettingRefusal),
}

/// A sign of life. It may ask for the other side's clock, or answer such a question; a peer that does not know these
/// fields ignores them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ping {
    /// Client: number of a question for the server's `CLOCK_MONOTONIC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u64>,
    /// Server: the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<ClockTimes>,
}

/// Readings of the server's monotonic clock, nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ClockTimes {
    /// Number of the question.
    pub number: u64,
    /// When the server had read the question.
    pub received_ns: u64,
    /// Before the answer left.
    pub answered_ns: u64,
}

/// Why a connection is closed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Goodbye {
    /// The kind of reason.
    pub code: Code,
    /// In words.
    #[serde(deserialize_with = "reason")]
    pub why: String,
}

/// Kinds of reasons to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// All is done.
    Done,
    /// The versions differ.
    Version,
    /// A token is missing or wrong.
    NotPermitted,
    /// The other side broke the protocol.
    Protocol,
    /// The other side did not answer in time.
    TimedOut,
    /// The side that sends this can't go on.
    Unable,
    /// A reason that a later version knows.
    #[serde(other)]
    Other,
}

/// A cookie in JSON: 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HexCookie(pub Cookie);

impl From<HexCookie> for String {
    fn from(cookie: HexCookie) -> Self {
        cookie.0.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A reason, cut to a length that a person would read on a screen.
fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| plain::phrase(&text))
}

fn some_reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.map(|text| plain::phrase(&text)))
}

impl TryFrom<String> for HexCookie {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u128::from_str_radix(&text, 16).ok().filter(|_| digits);
        value.map(|v| Self(Cookie(v.to_be_bytes()))).ok_or("a cookie is 32 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{FlowSample, Role};
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(text: &str) -> Result<Message, serde_json::Error> {
        Message::read(text.as_bytes())
    }

    #[test]
    fn fields_of_a_later_release_are_ignored() {
        let text = r#"{"finish":{"measurement":3,"why":null,"mood":"good"}}"#;
        assert!(matches!(
            read(text),
            Ok(Message::Finish(Finish { measurement: 3, why: None, soon: false }))
        ));
        let text = r#"{"ping":{"load":0.7}}"#;
        assert!(matches!(read(text), Ok(Message::Ping(_))));
    }

    #[test]
    fn a_refusal_of_an_earlier_release_has_less() {
        let earlier = r#"{"id":1,"answer":{"refused":{"not_permitted":false,"why":"no"}}}"#;
        let answer: SettingAnswer = serde_json::from_str(earlier).unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap(), earlier);
        let Answer::Refused(refusal) = answer.answer else { panic!("it is refused") };
        assert!(!refusal.not_taken && !refusal.busy);
        let written = |refusal| serde_json::to_string(&Answer::Refused(refusal)).unwrap();
        let taken = SettingRefusal { not_taken: true, ..refusal.clone() };
        let known = r#"{"refused":{"not_permitted":false,"not_taken":true,"why":"no"}}"#;
        assert_eq!(written(taken), known);
        let busy = SettingRefusal { busy: true, ..refusal };
        let known = r#"{"refused":{"not_permitted":false,"busy":true,"why":"no"}}"#;
        assert_eq!(written(busy), known);
    }

    #[test]
    fn a_reason_is_short_enough_for_a_screen() {
        let why = "z".repeat(40_000);
        let refuse = serde_json::json!({ "refuse": { "measurement": 1, "why": why } });
        let Ok(Message::Refuse(refuse)) = read(&refuse.to_string()) else { panic!("no refusal") };
        assert!(refuse.why.len() < 2000, "{} bytes", refuse.why.len());
    }

    #[test]
    fn an_unknown_kind_is_named_in_the_error() {
        let error = read(r#"{"dance":{}}"#).unwrap_err().to_string();
        assert!(error.contains("unknown variant `dance`"), "{error}");
    }

    #[test]
    fn the_version_of_any_later_hello_can_be_read() {
        let text = r#"{"hello":{"version":9,"host":["something","else"],"more":1}}"#;
        let Ok(Message::Hello(hello)) = read(text) else { panic!("{:?}", read(text)) };
        assert_eq!(hello.version, 9);
        assert!(matches!(read(r#"{"hello":{"version":9}}"#), Ok(Message::Hello(_))));
    }

    #[test]
    fn an_unknown_code_of_a_goodbye_is_still_a_goodbye() {
        let text = r#"{"goodbye":{"code":"bored","why":"nothing happens"}}"#;
        let Ok(Message::Goodbye(goodbye)) = read(text) else { panic!("{:?}", read(text)) };
        assert_eq!(goodbye.code, Code::Other);
    }

    /// serde's error for an unknown kind lists every kind.
    #[test]
    fn the_specification_has_every_kind() {
        let page = include_str!("../../../../../docs/protocol.md");
        let error = read(r#"{"dance":{}}"#).unwrap_err().to_string();
        let kinds: Vec<_> = error.split('`').skip(3).step_by(2).collect();
        assert!(kinds.len() >= 13, "{kinds:?}");
        for kind in kinds {
            assert!(page.contains(&format!("\n| `{kind}` |")), "{kind} is not specified");
        }
    }

    #[test]
    fn the_specification_has_every_field_of_an_acceptance() {
        let page = include_str!("../../../../../docs/protocol.md");
        let row = page.lines().find(|line| line.starts_with("| `accept` |")).unwrap();
        let cookie = HexCookie(Cookie([7; 16]));
        let accept = Accept {
            measurement: 1,
            cookies: vec![cookie],
            data_port: std::num::NonZeroU16::new(9),
            echo: Some(cookie),
            receive_hash: Some(Known::missing("private")),
            capture: Some(Known::missing("private")),
            sets: vec!["quickack".into()],
            longest_s: 1.0,
            note: Some("slowly".into()),
        };
        let fields = serde_json::to_value(accept).unwrap();
        for field in fields.as_object().unwrap().keys() {
            assert!(row.contains(&format!("`{field}`")), "{field} is not specified");
        }
    }

    #[test]
    fn json_nested_too_deep_is_an_error() {
        let text = [r#"{"hello":{"version":1,"host":"#, &"[".repeat(100_000)].concat();
        assert!(read(&text).unwrap_err().to_string().contains("recursion limit"));
    }

    /// One message of each kind with every field that can hold a text.
    fn wordy() -> Vec<Value> {
        let full = Value::String("full".into());
        let why = serde_json::json!({ "missing": "why" });
        let flow = FlowSample::unreported(0, Role::Sender, 1, "why");
        let mut flow = serde_json::to_value(flow).unwrap();
        for field in ["source_us", "sink_us", "mptcp_subflows", "tcp", "memory"] {
            flow[field] = why.clone();
        }
        let sample = serde_json::json!({
            "at_s": 1, "sent_bytes": 1, "received_bytes": 1, "flows": [flow]
        });
        let snapshot =
            serde_json::json!({ "facts": { "a.b": full, "a.n": 1 }, "missing": { "c": "why" } });
        let host = serde_json::json!({ "name": "n", "kernel": "k", "goodput": "g", "cpus": 1 });
        let end = serde_json::json!({
            "host": host, "before": snapshot, "after": snapshot, "samples": [sample],
            "placement": { "chosen": "by", "flows": [] },
            "movers": [{ "role": "sender", "mover": "m", "why": "w" }],
        });
        let mut plan = Plan { receive_mover: Some("r".into()), ..Plan::standard() };
        plan.socket.device = Some("d".into());
        plan.socket.congestion = Some("c".into());
        let mut plan = serde_json::to_value(plan).unwrap();
        plan["storage"] = serde_json::json!({
            "source": { "file": { "name": "a", "cache": "warm" } }, "sink": { "name": "b" }
        });
        let hash = serde_json::json!({ "device": "d", "key": [1], "table": [1] });
        let setting = serde_json::json!({ "end": "far", "name": "n", "scope": "s" });
        let cookie = "00".repeat(16);
        serde_json::from_value(serde_json::json!([
            { "hello": { "version": 1, "host": host } },
            { "propose": { "measurement": 1, "plan": plan } },
            { "accept": { "measurement": 1, "cookies": [cookie], "longest_s": 1, "note": "n", "receive_hash": hash } },
            { "accept": { "measurement": 1, "cookies": [], "longest_s": 1, "receive_hash": why } },
            { "accept": { "measurement": 1, "cookies": [], "longest_s": 1, "capture": "eth0" } },
            { "accept": { "measurement": 1, "cookies": [], "longest_s": 1, "capture": why } },
            { "captured": { "measurement": 1, "part": { "heads": [], "failure": "w" } } },
            { "refuse": { "measurement": 1, "why": "w" } },
            { "sample": { "measurement": 1, "sample": sample } },
            { "finish": { "measurement": 1, "why": "w" } },
            { "report": { "measurement": 1, "end": end } },
            { "report": { "measurement": 1, "end": why } },
            { "setting": { "id": 1, "request": { "read": setting } } },
            { "setting": { "id": 1, "request": { "check": [[setting, "v"]] } } },
            { "setting": { "id": 1, "request": { "apply": [setting, "v"] } } },
            { "setting-done": { "id": 1, "answer": { "value": "v" } } },
            { "setting-done": { "id": 1, "answer": { "refused": { "not_permitted": true, "why": "w" } } } },
            { "goodbye": { "code": "done", "why": "w" } },
        ]))
        .unwrap()
    }

    /// Every place of a text or a key, as a path of members.
    fn places(json: &Value, here: &str, found: &mut Vec<(String, bool)>) {
        match json {
            Value::String(_) => found.push((here.into(), false)),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    places(item, &format!("{here}/{at}"), found);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    found.push((format!("{here}/{key}"), true));
                    places(member, &format!("{here}/{key}"), found);
                }
            }
            _ => {}
        }
    }

    /// The message with the text, or the key, at this place replaced.
    fn with(mut message: Value, (place, is_key): &(String, bool), text: &str) -> Value {
        if !is_key {
            *message.pointer_mut(place).unwrap() = text.into();
            return message;
        }
        let (parent, key) = place.rsplit_once('/').unwrap();
        let members = message.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let value = members.remove(key).unwrap();
        members.insert(text.into(), value);
        message
    }

    fn paints(c: char) -> bool {
        c.is_control() && c != '\t'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    /// The result of an evil text in every place that accepts it, and the number of such places.
    fn taken(evil: &str) -> usize {
        let mut taken = 0;
        for message in wordy() {
            assert!(Message::read(message.to_string().as_bytes()).is_ok(), "{message}");
            let mut all = Vec::new();
            places(&message, "", &mut all);
            for place in all {
                let json = with(message.clone(), &place, evil).to_string();
                let outcome = Message::read(json.as_bytes());
                taken += usize::from(outcome.is_ok());
                let said = match outcome.map(|message| serde_json::to_value(message).unwrap()) {
                    Ok(value) => {
                        let mut texts = Vec::new();
                        words(&value, &mut texts);
                        texts.concat()
                    }
                    Err(error) => crate::error::WireError::broken(error).to_string(),
                };
                assert!(!said.contains(paints), "{place:?}: {said:?}");
            }
        }
        taken
    }

    /// Every text and key.
    fn words(json: &Value, found: &mut Vec<String>) {
        match json {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| words(item, found)),
            Value::Object(members) => members.iter().for_each(|(key, member)| {
                found.push(key.clone());
                words(member, found);
            }),
            _ => {}
        }
    }

    #[test]
    fn a_text_is_made_plain_in_whatever_field_it_stands() {
        assert!(taken("a\nb\r\x1b[2J\u{9b}31m\u{202e}\u{2066}\x07") > 50);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        #[test]
        fn any_text_is_made_plain_in_whatever_field_it_stands(evil: String) {
            taken(&evil);
        }
    }

    proptest! {
        #[test]
        fn cookies_survive_json(bytes: [u8; 16]) {
            let cookie = HexCookie(Cookie(bytes));
            let text = serde_json::to_string(&cookie).unwrap();
            prop_assert_eq!(serde_json::from_str::<HexCookie>(&text).unwrap(), cookie);
        }

        #[test]
        fn plans_survive_json(flows in 1u16.., interval_s in 0.1f64..100.0, dscp in proptest::option::of(0u8..64)) {
            let mut plan = Plan { flows, interval_s, ..Plan::standard() };
            plan.socket.dscp = dscp;
            let proposal = Message::Propose(Propose { measurement: 1, plan: Box::new(plan.clone()) });
            let text = serde_json::to_string(&proposal).unwrap();
            let Message::Propose(back) = read(&text).unwrap() else { panic!("{text}") };
            prop_assert_eq!(back.plan.flows, plan.flows);
            prop_assert!((back.plan.interval_s - plan.interval_s).abs() < 1e-9);
            prop_assert_eq!(back.plan.socket.dscp, plan.socket.dscp);
        }

        #[test]
        fn any_text_is_a_message_or_an_error(kind in "[a-z-]{0,12}", body in ".{0,80}") {
            let _ = read(&format!("{{\"{kind}\":{body}}}"));
            let _ = read(&body);
        }

        #[test]
        fn cookies_of_any_text_are_read_or_refused(text in "[0-9a-g+]{0,40}") {
            let _ = HexCookie::try_from(text);
        }
    }
}
