//! Interprets the header of an answer.

use ureq_proto::BodyMode;
use ureq_proto::client::state::{RecvBody, RecvResponse};
use ureq_proto::client::{Call, RecvResponseResult};
use ureq_proto::http::{HeaderName, HeaderValue, Response, StatusCode, Version, header};

use crate::connection::Parsed;
use crate::conversation::{About, Extent};
use crate::error::FileError;
use crate::words::{LOGIN_ADVICE, shown};

/// Fields on the origin of an answer: from a cache (RFC 9111, RFC 9211), and the parts of the server's time (W3C
/// Server Timing).
const REMARKS: [&str; 6] =
    ["age", "cache-status", "server-timing", "via", "x-cache", "x-cache-hits"];

/// A usable answer.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// Decodes the body, if it is in chunks.
    pub(super) chunks: Option<Call<RecvBody>>,
    /// Whether the connection ends with this answer.
    pub(super) closes: bool,
}

/// The content of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The file.
    Body { extent: Extent, announced_bytes: Option<u64> },
    /// The new location, as the server wrote it.
    Moved(Vec<u8>),
}

/// Parses a header as far as it has arrived.
pub(super) fn parse(call: &mut Call<RecvResponse>, words: &[u8]) -> Parsed<Response<()>> {
    call.try_response(words, false).map_err(|why| {
        if begins_as_http_2(words) {
            let why = "the server speaks only HTTP/2 here, and goodput only HTTP/1.1";
            return FileError::Refused(why.into());
        }
        let begin = shown(&words[..words.len().min(40)]);
        FileError::Protocol(format!("the server's answer is no HTTP ({why}); it begins: {begin}"))
    })
}

/// Whether an answer begins with the settings of a server that speaks HTTP/2 and did not negotiate it (RFC 9113 sections
/// 3.4, 4.1, 6.5): 24 bits of length, the type SETTINGS, flags, and stream 0.
fn begins_as_http_2(words: &[u8]) -> bool {
    const SETTINGS: u8 = 4;
    matches!(words, [0, _, _, SETTINGS, 0, 0, 0, 0, 0, ..])
}

impl Answer {
    pub(super) fn of(
        response: &Response<()>,
        call: Call<RecvResponse>,
        wanted: Option<u64>,
        about: &mut About,
    ) -> Result<Self, FileError> {
        note(response, about);
        let closes = closes(response);
        let part = Part::of(response, wanted)?;
        if let Some(outcome) = without_body(response, part.is_some(), wanted.is_some())? {
            return Ok(Self { outcome, chunks: None, closes });
        }
        let body = match call.proceed() {
            Some(RecvResponseResult::RecvBody(call)) => call,
            _ => {
                let outcome = Outcome::Body { extent: Extent::Bytes(0), announced_bytes: Some(0) };
                return Ok(Self { outcome, chunks: None, closes });
            }
        };
        let (extent, announced_bytes) = match body.body_mode() {
            BodyMode::NoBody => (Extent::Bytes(0), Some(0)),
            BodyMode::LengthDelimited(bytes) => (Extent::Bytes(bytes), Some(bytes)),
            BodyMode::CloseDelimited => (Extent::ToClose, None),
            BodyMode::Chunked => (Extent::Decoded, None),
        };
        let announced_bytes = match part {
            Some(part) => part.check(announced_bytes)?,
            None => announced_bytes,
        };
        let closes = closes || extent == Extent::ToClose;
        let chunks = (extent == Extent::Decoded).then_some(body);
        Ok(Self { outcome: Outcome::Body { extent, announced_bytes }, chunks, closes })
    }
}

/// The part of the file that an answer brings, as its field `Content-Range` says (RFC 9110 section 14.4).
struct Part {
    bytes: u64,
    /// Bytes of the whole file, if the server knows them.
    of: Option<u64>,
}

impl Part {
    /// The part of this answer; `None`: the answer is no part. Fails if it is another part than the wanted one.
    fn of(response: &Response<()>, wanted: Option<u64>) -> Result<Option<Self>, FileError> {
        let Some(wanted) = wanted.filter(|_| response.status() == StatusCode::PARTIAL_CONTENT)
        else {
            return Ok(None);
        };
        let said = response.headers().get(header::CONTENT_RANGE).map(HeaderValue::as_bytes);
        let said = shown(said.unwrap_or_default());
        let part = said.strip_prefix("bytes 0-").and_then(|range| range.split_once('/'));
        let part = part.and_then(|(last, of)| Some((last.parse::<u64>().ok()?, of.parse().ok())));
        match part {
            Some((last, of)) if last < wanted && of.is_none_or(|of| last < of) => {
                Ok(Some(Self { bytes: last + 1, of }))
            }
            _ => Err(FileError::Protocol(format!(
                "the server was asked for the first {wanted} bytes, and sends another part: \"{said}\""
            ))),
        }
    }

    /// Bytes of the whole file. Fails if the body has another length than the part.
    fn check(self, body_bytes: Option<u64>) -> Result<Option<u64>, FileError> {
        match body_bytes {
            Some(bytes) if bytes != self.bytes => Err(FileError::Protocol(format!(
                "the server announces a part of {} bytes, and a body of {bytes}",
                self.bytes
            ))),
            _ => Ok(self.of),
        }
    }
}

/// The outcome of an answer without a file.
fn without_body(
    response: &Response<()>,
    is_part: bool,
    asked_for_part: bool,
) -> Result<Option<Outcome>, FileError> {
    let status = response.status();
    let words = shown(status.to_string().as_bytes());
    match status {
        StatusCode::OK => {}
        _ if is_part => {}
        // No byte of the file can be had, not even the first.
        StatusCode::RANGE_NOT_SATISFIABLE if asked_for_part => {
            return Ok(Some(Outcome::Body { extent: Extent::Bytes(0), announced_bytes: Some(0) }));
        }
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => {
            let to = response.headers().get(header::LOCATION);
            let to = to.ok_or_else(|| {
                FileError::Protocol(format!("the server redirects ({words}) to nowhere"))
            })?;
            return Ok(Some(Outcome::Moved(to.as_bytes().to_vec())));
        }
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => return Err(unknown_to_proxy(&words)),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Err(not_permitted("the server does not give the file to this user", status));
        }
        _ => return Err(FileError::Refused(format!("the server does not give the file: {words}"))),
    }
    match coding(response) {
        Some(coding) => Err(FileError::Protocol(format!(
            "the server sent the file compressed ({}), though it was asked not to; what that unpacks to is not measured",
            shown(coding.as_bytes())
        ))),
        None => Ok(None),
    }
}

/// The error of a server that wants another login, or denies this user access.
pub(super) fn not_permitted(what: &str, status: StatusCode) -> FileError {
    let words = shown(status.to_string().as_bytes());
    let advice = match status {
        StatusCode::UNAUTHORIZED => format!("; {LOGIN_ADVICE}"),
        _ => String::new(),
    };
    FileError::NotPermitted(format!("{what}: {words}{advice}"))
}

/// The compression of a body, if any: end to end, or on this connection under its chunks.
fn coding(response: &Response<()>) -> Option<&HeaderValue> {
    let others = |name: HeaderName, plain: &'static [&'static str]| {
        response.headers().get_all(name).into_iter().find(move |coding| {
            let words = coding.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            words
                .into_iter()
                .any(|word| !plain.iter().any(|plain| word.eq_ignore_ascii_case(plain.as_bytes())))
        })
    };
    others(header::CONTENT_ENCODING, &["identity"])
        .or_else(|| others(header::TRANSFER_ENCODING, &["chunked", "identity"]))
}

/// A proxy that wants a login.
pub(super) fn unknown_to_proxy(words: &str) -> FileError {
    FileError::NotPermitted(format!(
        "the proxy lets nobody through without a login: {words}; write it into the proxy's URL, as http://USER:PASSWORD@HOST:PORT in \
         the environment"
    ))
}

/// Whether the server ends the connection after this answer (RFC 9112 section 9.3).
pub(super) fn closes(response: &Response<()>) -> bool {
    let said = |option: &str| {
        let fields = response.headers().get_all(header::CONNECTION);
        fields
            .iter()
            .filter_map(|field| field.to_str().ok())
            .any(|field| field.split(',').any(|word| word.trim().eq_ignore_ascii_case(option)))
    };
    said("close") || (response.version() == Version::HTTP_10 && !said("keep-alive"))
}

pub(super) fn note(response: &Response<()>, about: &mut About) {
    let said = |name: &HeaderName| response.headers().get(name).map(|said| shown(said.as_bytes()));
    about.version = Some(format!("{:?}", response.version()));
    about.server = said(&header::SERVER);
    let remark = |name: &'static str| {
        said(&HeaderName::from_static(name)).map(|said| (name.to_owned(), said))
    };
    about.remarks = REMARKS.into_iter().filter_map(remark).collect();
}
