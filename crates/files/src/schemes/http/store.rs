//! Storing a file (PUT, RFC 9110 section 9.3.4) and removing it (DELETE, section 9.3.5).

use std::time::{Duration, Instant};

use ureq_proto::BodyMode;
use ureq_proto::client::state::{RecvBody, RecvResponse};
use ureq_proto::client::{Call, RecvResponseResult};
use ureq_proto::http::{Response, StatusCode};

use super::answer::{self, closes};
use super::question::{Question, Wish};
use super::{HEADER_BYTES, Http, RESPONSE_TIMEOUT};
use crate::connection::{Broken, Connection, Heard};
use crate::conversation::{Body, Conversation, Extent};
use crate::error::FileError;
use crate::link::Wait;
use crate::patience;
use crate::words::shown;

/// How long to wait until the server accepts a body; then the body is sent anyway (RFC 9110 section 10.1.1), as in
/// curl.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the message of a server that takes no more.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest page that confirms a stored file, bytes; after a longer one the connection is closed.
const MAX_PAGE_BYTES: u64 = 64 << 10;

/// The state of a file being stored.
#[derive(Default)]
pub(super) struct Storing {
    /// Whether the server has taken a body on this connection, so that the next one needs no permission.
    takes: bool,
    /// Parses the answer to the body being written, and the body's length, bytes.
    call: Option<Call<RecvResponse>>,
    bytes: u64,
}

impl Storing {
    pub(super) fn hang_up(&mut self) {
        *self = Self::default();
    }
}

impl Http {
    pub(super) fn begin_storing(
        &mut self,
        bytes: Option<u64>,
        wait: &dyn Wait,
    ) -> Result<Body, FileError> {
        let bytes = bytes.ok_or_else(|| {
            FileError::Place("HTTP wants to know the length of a body before it: leave out --source -, or use ftp://".into())
        })?;
        if self.storing.call.is_some() {
            self.hang_up();
        }
        let (asked, answered) = self.on_connection(|http| {
            let asks = !http.storing.takes;
            let Question { mut call, .. } = http.say(Wish::Store { bytes, asks }, wait)?;
            let asked = Instant::now();
            let answered = match asks {
                true => http.await_go_ahead(&mut call, wait).map(|()| Instant::now())?,
                false => asked,
            };
            (http.storing.call, http.storing.bytes) = (Some(call), bytes);
            Ok((asked, answered))
        })?;
        let encrypted = self.connection.as_ref().is_some_and(Connection::is_encrypted);
        let extent = if encrypted { Extent::Decoded } else { Extent::Bytes(bytes) };
        let anew = std::mem::take(&mut self.anew);
        Ok(Body { extent, announced_bytes: Some(bytes), anew, asked, answered })
    }

    /// Waits until the server accepts the body, or its time to do so is over.
    fn await_go_ahead(
        &mut self,
        call: &mut Call<RecvResponse>,
        wait: &dyn Wait,
    ) -> Result<(), Broken> {
        let Some(connection) = &mut self.connection else { return Err(Broken::Before) };
        if !connection.is_spoken_on(wait, Instant::now() + CONTINUE_TIMEOUT)? {
            return Ok(());
        }
        let until = Instant::now() + RESPONSE_TIMEOUT;
        let heard = connection.hear(HEADER_BYTES, wait, until, |words| {
            Ok(match answer::parse(call, words)? {
                (0, None) => (0, None),
                // An interim response is not an answer yet: 100 (RFC 9110 section 15.2).
                (used, said) => (used, Some(said)),
            })
        })?;
        match heard.said {
            None => Ok(()),
            Some(response) => {
                judge(&response, "take the file")?;
                let why = "the server says that it has the file before any of it was sent";
                Err(FileError::Protocol(why.into()).into())
            }
        }
    }

    pub(super) fn hear_stored(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let Some(mut call) = self.storing.call.take() else { return Ok(()) };
        let Some(connection) = &mut self.connection else { return Err(FileError::Stopped) };
        let patience = patience::to_confirm(Some(self.storing.bytes));
        let until = Instant::now() + patience;
        let heard = connection.flush(wait, until).and_then(|()| {
            connection.hear(HEADER_BYTES, wait, until, |words| answer::parse(&mut call, words))
        });
        let heard = heard.map_err(|broken| patience::unconfirmed(broken.error(), patience));
        let Heard { said, .. } = heard?;
        answer::note(&said, &mut self.about);
        judge_body(&said)?;
        self.storing.takes = true;
        self.pass_over(&said, call, wait)
    }

    pub(super) fn hear_refusal(&mut self, wait: &dyn Wait) -> Option<FileError> {
        let (connection, call) = (self.connection.as_mut()?, self.storing.call.as_mut()?);
        let until = Instant::now() + REFUSAL_TIMEOUT;
        let heard = connection.hear(HEADER_BYTES, wait, until, |words| answer::parse(call, words));
        judge_body(&heard.ok()?.said).err()
    }

    pub(super) fn ask_to_remove(&mut self, wait: &dyn Wait) -> Result<bool, FileError> {
        if self.storing.call.is_some() {
            self.hang_up();
        }
        let (said, call) = self.on_connection(|http| {
            let Question { mut call, .. } = http.say(Wish::Remove, wait)?;
            let Some(connection) = &mut http.connection else { return Err(Broken::Before) };
            let until = Instant::now() + RESPONSE_TIMEOUT;
            let heard = connection
                .hear(HEADER_BYTES, wait, until, |words| answer::parse(&mut call, words))?;
            Ok((heard.said, call))
        })?;
        let was_there = match said.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => false,
            _ => {
                judge(&said, "remove the file")?;
                true
            }
        };
        self.pass_over(&said, call, wait)?;
        Ok(was_there)
    }

    /// Reads the page of an answer, or closes its connection.
    fn pass_over(
        &mut self,
        response: &Response<()>,
        call: Call<RecvResponse>,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        self.anew = false;
        self.closes = closes(response);
        let page = match call.proceed() {
            Some(RecvResponseResult::RecvBody(body)) => page_bytes(&body),
            _ => Some(0),
        };
        let (Some(page), Some(connection)) = (page, &mut self.connection) else {
            self.hang_up();
            return Ok(());
        };
        if page > 0 && !self.closes {
            let whole = usize::try_from(page).unwrap_or(usize::MAX);
            let until = Instant::now() + RESPONSE_TIMEOUT;
            let heard = connection.hear(whole, wait, until, |words| {
                Ok(if words.len() < whole { (0, None) } else { (whole, Some(())) })
            });
            heard.map_err(Broken::error)?;
        }
        Ok(())
    }
}

/// The length of a page that is short enough to read.
fn page_bytes(body: &Call<RecvBody>) -> Option<u64> {
    match body.body_mode() {
        BodyMode::NoBody => Some(0),
        BodyMode::LengthDelimited(bytes) if bytes <= MAX_PAGE_BYTES => Some(bytes),
        _ => None,
    }
}

/// Whether the server has taken a body of which it received a part.
fn judge_body(response: &Response<()>) -> Result<(), FileError> {
    let judged = judge(response, "take the file");
    // A server that doesn't know the method has done nothing. After another failure of its own, its progress is
    // unknown (RFC 9110 section 15.6).
    let failed =
        |status: StatusCode| status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    if failed(response.status()) { judged.map_err(FileError::after_payload) } else { judged }
}

/// Whether the server did what was requested; if not, why, with advice for the user.
fn judge(response: &Response<()>, what: &str) -> Result<(), FileError> {
    let status = response.status();
    let words = shown(status.to_string().as_bytes());
    let refused =
        |advice: &str| FileError::Refused(format!("the server does not {what}: {words}{advice}"));
    Err(match status {
        status if status.is_success() => return Ok(()),
        status if status.is_redirection() => refused(
            "; it redirects, which an upload does not follow: name the place where it leads",
        ),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => answer::unknown_to_proxy(&words),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            answer::not_permitted(&format!("the server does not let this user {what}"), status)
        }
        // nginx answers 500, and others report that the directory doesn't exist.
        StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR => {
            refused(
                "; is there such a folder, and may the server write there? The path of a folder ends with a slash",
            )
        }
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            refused("; it takes no uploads there (PUT and DELETE, as WebDAV has them)")
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            refused("; choose a smaller --size, or raise its limit (client_max_body_size in nginx)")
        }
        StatusCode::INSUFFICIENT_STORAGE => {
            refused("; it has no room left: choose a smaller --size or fewer --flows")
        }
        _ => refused(""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_can_be_done() {
        let said = |status: u16| {
            let response = Response::builder().status(status).body(()).unwrap();
            judge(&response, "take the file").map_err(|why| (why.not_permitted(), why.to_string()))
        };
        assert!([200, 201, 204].iter().all(|status| said(*status).is_ok()));
        for (status, permission, words) in [
            (403, true, "this user"),
            (405, false, "WebDAV"),
            (409, false, "slash"),
            (413, false, "--size"),
            (507, false, "no room"),
            (302, false, "redirects"),
        ] {
            let (not_permitted, why) = said(status).unwrap_err();
            assert!(not_permitted == permission && why.contains(words), "{why}");
        }
    }

    #[test]
    fn only_a_server_that_failed_may_hold_what_it_did_not_take() {
        for (status, is_refusal) in
            [(403, true), (405, true), (501, true), (500, false), (507, false)]
        {
            let response = Response::builder().status(status).body(()).unwrap();
            assert_eq!(judge_body(&response).unwrap_err().is_refusal(), is_refusal, "{status}");
        }
    }
}
