//! Changes of this host's settings at the request of a client with the right to them. They last no longer than the
//! client's session, and the settings helper makes them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use goodput_settings::helper::{Helper, Request, Work};
use goodput_wire::session::{SettingRefusal, SettingRequest};

/// The changes of one session, none so far.
pub struct SessionSettings {
    helper: Option<Arc<Helper>>,
    client: u64,
    is_here: bool,
    asked: bool,
}

impl SessionSettings {
    /// Nothing is changed yet for the client at `peer`. Without a helper nothing ever is.
    pub fn new(helper: Option<Arc<Helper>>, peer: SocketAddr) -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let is_here = helper.is_some() && is_own(peer);
        Self { helper, client, is_here, asked: false }
    }

    /// Carries out a request. Returns the effective value, or a confirmation.
    pub fn carry_out(&mut self, request: &SettingRequest) -> Result<String, SettingRefusal> {
        match request {
            SettingRequest::Read(setting) => self.ask(Work::Read(setting.clone())),
            SettingRequest::Check(arm) => self.ask(Work::Check(arm.clone())),
            SettingRequest::Apply(setting, value) => {
                self.asked = true;
                self.ask(Work::Apply(setting.clone(), value.clone()))
            }
            SettingRequest::Restore => self.restore(),
        }
    }

    /// Puts everything back.
    pub fn restore(&mut self) -> Result<String, SettingRefusal> {
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
            why: refusal.why,
        })
    }
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
