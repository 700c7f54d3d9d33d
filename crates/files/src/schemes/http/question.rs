//! The header of a request, in bytes, and the parser of its answer.

use base64ct::{Base64, Encoding};
use ureq_proto::client::state::{RecvResponse, SendBody};
use ureq_proto::client::{Await100Result, Call, SendRequestResult};
use ureq_proto::http::{Method, Request, header};

use crate::error::FileError;
use crate::login::Login;
use crate::place::Place;
use crate::proxy::Proxy;

/// Longest request, bytes.
const QUESTION_BYTES: usize = 32 << 10;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Fetch the file, or this many bytes from its beginning.
    Fetch { wanted: Option<u64> },
    /// Store this many bytes in it.
    Store {
        bytes: u64,
        /// Whether the server must accept them before they are sent (RFC 9110 section 10.1.1).
        asks: bool,
    },
    /// Remove it.
    Remove,
}

/// A request.
pub(super) struct Question {
    /// Its header.
    pub(super) bytes: Vec<u8>,
    /// Parses the answer.
    pub(super) call: Call<RecvResponse>,
}

impl Question {
    /// For the server of `place`, or for a proxy that forwards it.
    pub(super) fn new(
        wish: Wish,
        place: &Place,
        login: Option<&Login>,
        proxy: Option<&Proxy>,
    ) -> Result<Self, FileError> {
        let unfit = |why: String| FileError::Place(format!("{place} can't be asked for: {why}"));
        let (method, verb) = match wish {
            Wish::Fetch { .. } => (Method::GET, "fetched"),
            Wish::Store { .. } => (Method::PUT, "stored"),
            Wish::Remove => (Method::DELETE, "removed"),
        };
        let mut request = Request::builder().method(method).uri(place.request());
        if let Some(Login { user, password }) = login {
            let basic = Base64::encode_string(format!("{user}:{password}").as_bytes());
            request = request.header(header::AUTHORIZATION, format!("Basic {basic}"));
        }
        if let Some(authorization) = proxy.and_then(Proxy::authorization) {
            request = request.header(header::PROXY_AUTHORIZATION, authorization);
        }
        if let Wish::Fetch { wanted: Some(bytes) } = wish {
            request = request.header(header::RANGE, format!("bytes=0-{}", bytes.saturating_sub(1)));
        }
        if let Wish::Store { bytes, asks } = wish {
            request = request.header(header::CONTENT_LENGTH, bytes);
            request = request.header(header::CONTENT_TYPE, "application/octet-stream");
            if asks {
                request = request.header(header::EXPECT, "100-continue");
            }
        }
        let request = request
            .header(header::USER_AGENT, concat!("goodput/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "*/*")
            // Compressed, it would be a different file.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(())
            .map_err(|why| unfit(why.to_string()))?;
        let mut call = Call::new(request).map_err(|why| unfit(why.to_string()))?.proceed();
        let mut bytes = vec![0; QUESTION_BYTES];
        let length = call.write(&mut bytes).map_err(|why| unfit(why.to_string()))?;
        bytes.truncate(length);
        if proxy.is_some() {
            bytes = absolute(&bytes, &place.request());
        }
        let call = match call.proceed().map_err(|why| unfit(why.to_string()))? {
            Some(SendRequestResult::RecvResponse(call)) => Some(call),
            Some(SendRequestResult::SendBody(call)) => answer_to(call, wish),
            Some(SendRequestResult::Await100(call)) => match call.proceed() {
                Ok(Await100Result::SendBody(call)) => answer_to(call, wish),
                _ => None,
            },
            None => None,
        };
        match call {
            Some(call) => Ok(Self { bytes, call }),
            None => Err(unfit(format!("its name is too long to be {verb}"))),
        }
    }
}

/// A request with the whole URL, as a proxy needs (RFC 9112 section 3.2.2).
fn absolute(question: &[u8], url: &str) -> Vec<u8> {
    let mut parts = question.splitn(3, |byte| *byte == b' ');
    let (method, _path, rest) = (parts.next(), parts.next(), parts.next());
    [method.unwrap_or_default(), url.as_bytes(), rest.unwrap_or_default()].join(&b' ')
}

/// Parses the answer to a body that others write: an answer may arrive before the body's end.
fn answer_to(mut call: Call<SendBody>, wish: Wish) -> Option<Call<RecvResponse>> {
    if let Wish::Store { bytes, .. } = wish {
        call.consume_direct_write(usize::try_from(bytes).ok()?).ok()?;
    }
    call.proceed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes;

    fn said(wish: Wish) -> String {
        let place = schemes::parse("http://nas:81/a%20b/c").unwrap();
        let question = Question::new(wish, &place, Some(&Login::new("me", "x")), None).unwrap();
        String::from_utf8(question.bytes).unwrap().to_lowercase()
    }

    #[test]
    fn a_proxy_gets_the_whole_url() {
        let place = schemes::parse("http://me@nas:81/a b").unwrap();
        let proxy = Proxy::parse("http://you:y@cache").unwrap();
        let question =
            Question::new(Wish::Fetch { wanted: None }, &place, None, Some(&proxy)).unwrap();
        let said = String::from_utf8(question.bytes).unwrap();
        assert!(said.starts_with("GET http://nas:81/a%20b HTTP/1.1\r\n"), "{said}");
        assert!(said.to_lowercase().contains("proxy-authorization: basic "), "{said}");
    }

    #[test]
    fn each_wish_has_its_header() {
        let whole = said(Wish::Fetch { wanted: None });
        assert!(
            whole.starts_with("get /a%20b/c http/1.1\r\n") && !whole.contains("range"),
            "{whole}"
        );
        let part = said(Wish::Fetch { wanted: Some(4 << 20) });
        assert!(part.contains("range: bytes=0-4194303\r\n"), "{part}");
        let stored = said(Wish::Store { bytes: 7 << 40, asks: true });
        assert!(stored.starts_with("put /a%20b/c http/1.1\r\n"), "{stored}");
        for field in [
            "host: nas:81",
            "content-length: 7696581394432",
            "expect: 100-continue",
            "authorization: basic ",
        ] {
            assert!(stored.contains(field), "{stored}");
        }
        let stored = said(Wish::Store { bytes: 1, asks: false });
        assert!(!stored.contains("expect") && !stored.contains("transfer-encoding"), "{stored}");
        let removed = said(Wish::Remove);
        assert!(
            removed.starts_with("delete /a%20b/c ") && !removed.contains("content-length: 7"),
            "{removed}"
        );
    }
}
