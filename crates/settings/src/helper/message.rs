//! The messages between the server and its settings helper: one JSON object per packet, nothing else.

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::error::SettingError;
use crate::setting::Assignment;

/// Longest packet in either direction, bytes. A value of a setting is one line.
pub(super) const LONGEST_PACKET_BYTES: usize = 8 << 10;

/// Longest reason, bytes: with its quotes escaped it still fits into a packet.
const LONGEST_REASON_BYTES: usize = 1 << 10;

/// A request of the server, for one of its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The client; the server numbers them.
    pub client: u64,
    /// Whether the client is on the server's own host.
    pub is_here: bool,
    /// What to do.
    pub work: Work,
}

/// The possible requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Return the effective value.
    Read(SettingRef),
    /// Refuse values that changes in this order would refuse, and change nothing.
    Check(Vec<Assignment>),
    /// Change a setting until the client leaves or the server ends.
    Apply(SettingRef, String),
    /// Keep other runs from changing this host until the client leaves or everything is put back. Change nothing.
    Hold,
    /// Put back everything that this client changed.
    Restore,
}

/// The answer: the effective value, or a confirmation.
pub type Answer = Result<String, Refusal>;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Whether a missing privilege is the reason.
    pub not_permitted: bool,
    /// Whether the kernel did not take the value, and nothing stayed changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_taken: bool,
    /// Whether another run changes this host now, or somebody puts back here what a run left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// In words.
    pub why: String,
}

impl From<SettingError> for Refusal {
    fn from(error: SettingError) -> Self {
        let (not_permitted, not_taken) = (error.not_permitted(), error.not_taken().is_some());
        Self { not_permitted, not_taken, busy: error.is_busy(), why: error.to_string() }
    }
}

/// A packet from the server.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    client: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_here: bool,
    work: Word,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arm: Option<Vec<(String, String)>>,
}

/// The whole vocabulary.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Read,
    Check,
    Apply,
    Hold,
    Restore,
}

/// A packet from the helper.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Reply {
    Done(String),
    Refused(Refusal),
}

impl Request {
    /// The message as a packet; `None` if it would be too long for one.
    pub(super) fn packet(&self) -> Option<Vec<u8>> {
        let word = |(setting, value): &Assignment| (setting.to_string(), value.clone());
        let (work, setting, value, arm) = match &self.work {
            Work::Read(setting) => (Word::Read, Some(setting.to_string()), None, None),
            Work::Check(arm) => (Word::Check, None, None, Some(arm.iter().map(word).collect())),
            Work::Apply(setting, value) => {
                (Word::Apply, Some(setting.to_string()), Some(value.clone()), None)
            }
            Work::Hold => (Word::Hold, None, None, None),
            Work::Restore => (Word::Restore, None, None, None),
        };
        let (client, is_here) = (self.client, self.is_here);
        let asked = Asked { client, is_here, work, setting, value, arm };
        serde_json::to_vec(&asked).ok().filter(|packet| packet.len() <= LONGEST_PACKET_BYTES)
    }

    /// Parses a packet, or reports what is wrong with it.
    pub(super) fn parse(packet: &[u8]) -> Result<Self, String> {
        if packet.len() > LONGEST_PACKET_BYTES {
            return Err(format!("a request of more than {LONGEST_PACKET_BYTES} bytes"));
        }
        let Asked { client, is_here, work, setting, value, arm } =
            serde_json::from_slice(packet).map_err(|why| format!("not a request: {why}"))?;
        let named = |text: String| text.parse::<SettingRef>().map_err(|why| why.to_string());
        let setting = setting.map(named).transpose()?;
        let work = match (work, setting, value, arm) {
            (Word::Read, Some(setting), None, None) => Work::Read(setting),
            (Word::Check, None, None, Some(arm)) => {
                let arm = arm.into_iter().map(|(setting, value)| Ok((named(setting)?, value)));
                Work::Check(arm.collect::<Result<_, String>>()?)
            }
            (Word::Apply, Some(setting), Some(value), None) => Work::Apply(setting, value),
            (Word::Hold, None, None, None) => Work::Hold,
            (Word::Restore, None, None, None) => Work::Restore,
            _ => return Err("a request with too many or too few fields".into()),
        };
        Ok(Self { client, is_here, work })
    }
}

/// An answer as a packet. A text that does not fit is cut.
pub(super) fn answer_packet(answer: Answer) -> Vec<u8> {
    let reply = match answer {
        Ok(value) => Reply::Done(value),
        Err(refusal) => Reply::Refused(refusal),
    };
    let whole = serde_json::to_vec(&reply).unwrap_or_default();
    if !whole.is_empty() && whole.len() <= LONGEST_PACKET_BYTES {
        return whole;
    }
    let cut = match reply {
        Reply::Done(_) => {
            Refusal { why: "the value is too long to report".into(), ..Refusal::default() }
        }
        Reply::Refused(refusal) => {
            let end = refusal.why.floor_char_boundary(LONGEST_REASON_BYTES);
            Refusal { why: refusal.why[..end].into(), ..refusal }
        }
    };
    // JSON of a text of this length is always shorter than a packet.
    serde_json::to_vec(&Reply::Refused(cut)).unwrap_or_default()
}

/// An answer from its packet.
pub(super) fn hear(packet: &[u8]) -> Result<Answer, serde_json::Error> {
    Ok(match serde_json::from_slice(packet)? {
        Reply::Done(value) => Ok(value),
        Reply::Refused(refusal) => Err(refusal),
    })
}
