//! A tunnel through a proxy to a server (RFC 9110 section 9.3.6).

use std::time::Instant;

use ureq_proto::client::{Call, SendRequestResult};
use ureq_proto::http::{Method, Request, StatusCode, header};

use crate::connection::{Broken, Connection};
use crate::error::FileError;
use crate::link::Wait;
use crate::place::Place;
use crate::proxy::Proxy;
use crate::words::shown;

/// Longest header of an answer, bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Turns `connection`, which leads to `proxy`, into one to the server of `place`.
pub(super) fn open(
    proxy: &Proxy,
    connection: &mut Connection,
    place: &Place,
    wait: &dyn Wait,
    until: Instant,
) -> Result<(), FileError> {
    let unfit =
        |why: String| FileError::Place(format!("{place} can't be reached by a proxy: {why}"));
    let host = place.host();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let authority = format!("{host}:{}", place.port());
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(&authority)
        .header(header::HOST, &authority)
        .header(header::USER_AGENT, concat!("goodput/", env!("CARGO_PKG_VERSION")));
    if let Some(authorization) = proxy.authorization() {
        request = request.header(header::PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(()).map_err(|why| unfit(why.to_string()))?;
    let mut call = Call::new(request).map_err(|why| unfit(why.to_string()))?.proceed();
    let mut bytes = vec![0; MAX_HEADER_BYTES];
    let length = call.write(&mut bytes).map_err(|why| unfit(why.to_string()))?;
    let Ok(Some(SendRequestResult::RecvResponse(mut call))) = call.proceed() else {
        return Err(unfit("its name is too long".into()));
    };
    connection.say(&bytes[..length], wait, until).map_err(Broken::error)?;
    let heard = connection.hear(MAX_HEADER_BYTES, wait, until, |words| {
        call.try_response(words, false).map_err(|why| {
            FileError::Protocol(format!("the answer of the proxy is no HTTP: {why}"))
        })
    });
    let status = heard.map_err(Broken::error)?.said.status();
    let words = shown(status.to_string().as_bytes());
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Err(FileError::NotPermitted(format!(
                "the proxy {proxy} does not let this user to {authority}: {words}"
            )))
        }
        _ => Err(FileError::Refused(format!(
            "the proxy {proxy} does not connect to {authority}: {words}"
        ))),
    }
}
