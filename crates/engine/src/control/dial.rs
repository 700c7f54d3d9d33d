//! Connects to the target: its control connection, or only its addresses if the protocol has none.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use goodput_model::SocketOptions;
use tokio::net::TcpStream;

use crate::control::target::Target;
use crate::error::EngineError;
use crate::threads::abandonable;

/// How long one address of the target may take to answer a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Segment size of the control connection, bytes: every IPv4 path carries it (RFC 9293 section 3.7.1, the default for
/// IPv4), so both ends can still talk if full-sized packets vanish.
const CONTROL_MSS_BYTES: u32 = 536;

/// Time between two attempts after a connection was refused.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A peer that can be reached.
pub struct DialedPeer {
    /// The control connection, if the protocol has one.
    pub stream: Option<TcpStream>,
    /// Addresses of the peer; several if no flow has been opened to it yet.
    pub addresses: Vec<SocketAddr>,
}

/// Connects to the target if its protocol has a control connection; otherwise only resolves its address. A refused
/// connection is tried again for `patience`.
pub async fn dial(
    target: Target,
    options: SocketOptions,
    patience: Duration,
) -> Result<DialedPeer, EngineError> {
    if !target.protocol.has_control {
        let addresses = abandonable(move || target.addresses(options.family)).await??;
        return Ok(DialedPeer { stream: None, addresses });
    }
    let (stream, address) = connect(&target, &options, patience).await?;
    stream
        .set_nodelay(true)
        .map_err(EngineError::io("set TCP_NODELAY on the control connection"))?;
    stream
        .set_nonblocking(true)
        .map_err(EngineError::io("make the control connection non-blocking"))?;
    if let Err(why) = goodput_mover::socket::apply_control(&stream) {
        tracing::debug!("the control connection can't get priority over payload: {why}");
    }
    let stream = TcpStream::from_std(stream)
        .map_err(EngineError::io("hand the control connection to the runtime"))?;
    Ok(DialedPeer { stream: Some(stream), addresses: vec![address] })
}

async fn connect(
    target: &Target,
    options: &SocketOptions,
    patience: Duration,
) -> Result<(std::net::TcpStream, SocketAddr), EngineError> {
    let give_up = Instant::now() + patience;
    loop {
        let (target, options) = (target.clone(), options.clone());
        match abandonable(move || connect_once(&target, options)).await? {
            Err(Unreached { refused: true, .. }) if Instant::now() < give_up => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(Unreached { error, .. }) => return Err(error),
            Ok(connected) => return Ok(connected),
        }
    }
}

/// Why no address of the target could be reached.
struct Unreached {
    error: EngineError,
    refused: bool,
}

/// Tries every address of the target in turn. Returns the first error, because the others are mostly the same. Blocks.
fn connect_once(
    target: &Target,
    mut options: SocketOptions,
) -> Result<(std::net::TcpStream, SocketAddr), Unreached> {
    // These belong to the flows, not to the control connection.
    (options.source_port, options.mptcp) = (None, false);
    options.mss_bytes =
        Some(options.mss_bytes.map_or(CONTROL_MSS_BYTES, |mss| mss.min(CONTROL_MSS_BYTES)));
    let mut first_error = None;
    let addresses = target.addresses(options.family);
    for address in addresses.map_err(|error| Unreached { error, refused: false })? {
        match goodput_mover::socket::tcp_connect(address, &options, CONNECT_TIMEOUT) {
            Ok(fd) => return Ok((std::net::TcpStream::from(fd), address)),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    let Some(failure) = first_error else {
        let error = EngineError::Target(format!("{target}: no address to try"));
        return Err(Unreached { error, refused: false });
    };
    let refused = failure.cause.kind() == ErrorKind::ConnectionRefused;
    Err(Unreached { error: EngineError::Socket { to: target.to_string(), failure }, refused })
}
