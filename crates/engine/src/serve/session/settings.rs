//! Changes of this host's settings at the request of a client with the right to them. They last no longer than the
//! client's session, and the settings helper makes them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use goodput_model::SettingRef;
use goodput_settings::helper::{Helper, Request, Work};
use goodput_wire::session::{MAX_ECHO_BYTES, MAX_ECHO_TEXTS, SettingRefusal, SettingRequest};

use super::unconfirmed::Unconfirmed;

/// The changes of one session, none so far.
pub struct SessionSettings {
    helper: Option<Arc<Helper>>,
    client: u64,
    is_here: bool,
    asked: bool,
    unconfirmed: Unconfirmed,
}

impl SessionSettings {
    /// Nothing is changed yet for the client at `peer`. Without a helper nothing ever is.
    pub fn new(helper: Option<Arc<Helper>>, peer: SocketAddr) -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let is_here = helper.is_some() && is_own(peer);
        Self { helper, client, is_here, asked: false, unconfirmed: Unconfirmed::default() }
    }

    /// Carries out a request. Returns the effective value, or a confirmation.
    pub fn carry_out(&mut self, request: &SettingRequest) -> Result<String, SettingRefusal> {
        match request {
            SettingRequest::Read(setting) => self.ask(Work::Read(setting.clone())),
            SettingRequest::Check(arm) => self.ask(Work::Check(arm.clone())),
            SettingRequest::Apply(setting, value) => {
                let made = self.apply(setting, value)?;
                self.unconfirmed.superseded(setting);
                Ok(made)
            }
            SettingRequest::Try(setting, value) => {
                let before = self.ask(Work::Read(setting.clone()))?;
                let made = self.apply(setting, value)?;
                self.unconfirmed.tried(setting.clone(), before, Instant::now());
                Ok(made)
            }
            SettingRequest::Echo(text) => echo(text),
            SettingRequest::EchoAll(texts) => echo_all(texts),
            SettingRequest::Confirm => match self.unconfirmed.confirm() {
                Ok(()) => Ok("confirmed".into()),
                Err(why) => Err(SettingRefusal { why, ..Default::default() }),
            },
            SettingRequest::Place => place(),
            SettingRequest::Hold => {
                self.asked = true;
                self.ask(Work::Hold)
            }
            SettingRequest::Restore => self.restore(),
        }
    }

    fn apply(&mut self, setting: &SettingRef, value: &str) -> Result<String, SettingRefusal> {
        self.asked = true;
        self.ask(Work::Apply(setting.clone(), value.to_owned()))
    }

    /// When to put back what is not confirmed by then, if something is unconfirmed.
    pub fn due(&self) -> Option<Instant> {
        self.unconfirmed.due()
    }

    /// Puts back what nobody has confirmed. Returns each setting, and how that ended. What could not be put back is
    /// [due](Self::due) again later.
    pub fn put_back_unconfirmed(&mut self) -> Vec<(SettingRef, Result<String, SettingRefusal>)> {
        let back = self.unconfirmed.expire(Instant::now()).into_iter();
        back.map(|(setting, before)| {
            let done = self.apply(&setting, &before);
            if done.is_err() {
                self.unconfirmed.failed((setting.clone(), before), Instant::now());
            }
            (setting, done)
        })
        .collect()
    }

    /// Puts everything back.
    pub fn restore(&mut self) -> Result<String, SettingRefusal> {
        self.unconfirmed = Unconfirmed::default();
        if !std::mem::take(&mut self.asked) {
            return Ok("nothing was changed".into());
        }
        self.ask(Work::Restore)
    }

    fn ask(&self, work: Work) -> Result<String, SettingRefusal> {
        let Some(helper) = &self.helper else {
            return Err(SettingRefusal {
                not_permitted: true,
                why: "this server doesn't change settings for clients".into(),
                ..Default::default()
            });
        };
        let request = Request { client: self.client, is_here: self.is_here, work };
        helper.carry_out(&request).map_err(|refusal| SettingRefusal {
            not_permitted: refusal.not_permitted,
            not_taken: refusal.not_taken,
            busy: refusal.busy,
            why: refusal.why,
        })
    }
}

/// This host's place in the order in which every run takes hosts.
fn place() -> Result<String, SettingRefusal> {
    let words = goodput_settings::identity_here();
    words
        .map(|words| words.join(" "))
        .map_err(|error| SettingRefusal { why: error.to_string(), ..Default::default() })
}

/// The answer to a text that fills packets. Only what is as long in an answer as in a question.
fn echo(text: &str) -> Result<String, SettingRefusal> {
    match text.len() <= MAX_ECHO_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => Ok(text.to_owned()),
        false => {
            let why = format!("an echo takes at most {MAX_ECHO_BYTES} letters and digits");
            Err(SettingRefusal { why, ..Default::default() })
        }
    }
}

/// The answer to several such texts: all of them together.
fn echo_all(texts: &[String]) -> Result<String, SettingRefusal> {
    if texts.len() > MAX_ECHO_TEXTS {
        let why = format!("an echo takes at most {MAX_ECHO_TEXTS} texts");
        return Err(SettingRefusal { why, ..Default::default() });
    }
    texts.iter().map(|text| echo(text)).collect()
}

/// Whether an address belongs to this host: only its own addresses can be bound.
fn is_own(peer: SocketAddr) -> bool {
    let mut own = peer;
    own.set_port(0);
    UdpSocket::bind(own).is_ok()
}

/// Logs when the helper ends before the server does. The helper's guards put back what it had changed.
pub fn watch(helper: &Helper) {
    let Some(mut process) = helper.process() else { return };
    let pid = helper.pid();
    let wait = move || match process.wait() {
        // It was asked to end.
        Ok(status) if status.success() => {}
        Ok(status) => tracing::error!(
            "the settings helper (process {pid}) ended, {status}: the server changes no more settings, and has put back those it changed"
        ),
        Err(why) => tracing::warn!("can't wait for the settings helper (process {pid}): {why}"),
    };
    if let Err(why) = std::thread::Builder::new().name("helper-watch".into()).spawn(wait) {
        tracing::warn!("can't watch the settings helper: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_as_long_as_its_question_and_has_an_end() {
        let asked = |text: &str| echo(text).map_err(|refusal| refusal.why.contains("at most"));
        assert_eq!(asked("aB9"), Ok("aB9".into()));
        assert_eq!(asked(&"x".repeat(MAX_ECHO_BYTES)).map(|text| text.len()), Ok(MAX_ECHO_BYTES));
        for bad in [&*"x".repeat(MAX_ECHO_BYTES + 1), "\u{1}", "\""] {
            assert_eq!(asked(bad), Err(true));
        }
    }

    #[test]
    fn several_texts_come_back_together_and_have_an_end() {
        let texts = |text: &str, count: usize| vec![text.to_owned(); count];
        assert_eq!(echo_all(&texts("ab", 3)), Ok("ababab".into()));
        assert!(echo_all(&texts(&"x".repeat(MAX_ECHO_BYTES), MAX_ECHO_TEXTS)).is_ok());
        for bad in [texts("a", MAX_ECHO_TEXTS + 1), texts("\u{1}", 2)] {
            assert!(echo_all(&bad).unwrap_err().why.contains("at most"));
        }
    }
}
