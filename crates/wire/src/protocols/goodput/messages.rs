//! What is said on the control connection: one JSON object with one member, the kind.
//!
//! The promise: fields that a receiver does not know are ignored, new fields are optional, and
//! `hello.version` keeps its name and type for ever. Any other change makes
//! [`PROTOCOL_VERSION`] grow.

use goodput_model::{End, Host, Known, Plan, ReceiveHash, Sample};
use serde::{Deserialize, Serialize};

use super::PROTOCOL_VERSION;
use crate::plain;
use crate::session::{Cookie, SettingRefusal, SettingRequest};

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
    /// Both: counters of this end.
    Sample(OneSample),
    /// Both: senders stop now.
    Finish(Finish),
    /// Both: what this end saw; the last message about a measurement.
    Report(Report),
    /// Client: read or change a setting.
    Setting(AskSetting),
    /// Server: what came of it.
    SettingDone(SettingAnswer),
    /// Both: still here.
    Ping(Ping),
    /// Both: the reason of closing; the last message of a connection.
    Goodbye(Goodbye),
}

impl Message {
    /// The message with every text in it that may be shown made fit for that. What a setting is
    /// stays as it came, as it may be compared.
    pub fn made_plain(mut self) -> Self {
        match &mut self {
            Self::Accept(Accept { note: Some(text), .. })
            | Self::Refuse(Refuse { why: text, .. })
            | Self::Finish(Finish { why: Some(text), .. })
            | Self::Goodbye(Goodbye { why: text, .. })
            | Self::SettingDone(SettingAnswer {
                answer: Answer::Refused(SettingRefusal { why: text, .. }),
                ..
            }) => *text = plain::phrase(text),
            _ => {}
        }
        match self {
            Self::Sample(OneSample { measurement, sample }) => {
                Self::Sample(OneSample { measurement, sample: Box::new(plain::sample(*sample)) })
            }
            Self::Report(Report { measurement, end }) => {
                Self::Report(Report { measurement, end: plain::known_end(end) })
            }
            other => other,
        }
    }
}

/// Who speaks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol; compared before anything else is understood.
    pub version: u32,
    /// The machine, a [`Host`] in this version. Kept as it came until the version is known.
    #[serde(default)]
    host: serde_json::Value,
    /// The speaker's time of day, microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_us: Option<u64>,
    /// Whether the speaker takes bodies that are zlib streams.
    #[serde(default)]
    pub inflates: bool,
}

impl Hello {
    /// The greeting of `host` at its time of day, microseconds since 1970.
    pub fn of(host: &Host, unix_us: u64) -> Result<Self, serde_json::Error> {
        let host = serde_json::to_value(host)?;
        Ok(Self { version: PROTOCOL_VERSION, host, unix_us: Some(unix_us), inflates: true })
    }

    /// The machine that speaks, where it speaks this version.
    pub fn host(self) -> Result<Host, serde_json::Error> {
        serde_json::from_value(self.host).map(plain::host)
    }
}

/// A measurement that the client asks for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Propose {
    /// Number of the measurement on this connection: 1, 2, and so on.
    pub measurement: u32,
    /// What shall be measured; its near end is the client.
    pub plan: Box<Plan>,
}

/// The server's agreement.
#[derive(Debug, Serialize, Deserialize)]
pub struct Accept {
    /// Which measurement.
    pub measurement: u32,
    /// One cookie for each flow, in the order of [`Plan::flow_plans`], as 32 hexadecimal digits.
    pub cookies: Vec<HexCookie>,
    /// TCP port of the data connections, where it is not that of the control connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_port: Option<std::num::NonZeroU16>,
    /// Cookie of the echoes that the server answers over UDP while the measurement lasts, where the
    /// plan asks for the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<HexCookie>,
    /// How the server's card spreads what it receives, where the plan asks for it, or why it is not
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_hash: Option<Known<Box<ReceiveHash>>>,
    /// Seconds from `begin` after which the server ends the measurement by itself.
    pub longest_s: f64,
    /// What the client's user should know, such as a rate that the server holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A measurement that will not be, or will not go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refuse {
    /// Which measurement.
    pub measurement: u32,
    /// Why, in words for the user at the other end.
    pub why: String,
}

/// A message that says nothing but which measurement it is about.
#[derive(Debug, Serialize, Deserialize)]
pub struct About {
    /// Which measurement.
    pub measurement: u32,
}

/// Counters of the end that speaks.
#[derive(Debug, Serialize, Deserialize)]
pub struct OneSample {
    /// Which measurement.
    pub measurement: u32,
    /// The counters.
    pub sample: Box<Sample>,
}

/// The end of the payload.
#[derive(Debug, Serialize, Deserialize)]
pub struct Finish {
    /// Which measurement.
    pub measurement: u32,
    /// Why, where it was not the plan's own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether receivers shall wait hardly for what is still on its way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soon: bool,
}

/// What one end saw.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Which measurement.
    pub measurement: u32,
    /// What it saw; or why it does not say.
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

/// What came of a question about a setting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The value that is now effective.
    Value(String),
    /// It was not done.
    Refused(SettingRefusal),
}

/// A sign of life.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ping {}

/// The reason of closing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Goodbye {
    /// What kind of reason.
    pub code: Code,
    /// In words.
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
    /// A token is lacking or wrong.
    NotPermitted,
    /// The other side broke the protocol.
    Protocol,
    /// The other side did not answer in time.
    TimedOut,
    /// The side that speaks can't go on.
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
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Message, serde_json::Error> {
        serde_json::from_str(text)
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

    /// The list in serde's own words for an unknown kind holds every kind there is.
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
