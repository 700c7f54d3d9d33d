//! Conversations of protocols that have no control connection. A connection, or an address over
//! UDP, is a flow; its first bytes are the whole request, and the rest is payload.
//!
//! ```text
//! connecting  the client: opens its flows and sends nothing else
//! answering   the server: serves the request in the first bytes, measurement by measurement
//! ```

mod answering;
mod connecting;

use std::time::Duration;

pub(crate) use answering::{Answering, ClientRequest, Order};
pub(crate) use connecting::{Connecting, Dialect, names_far_receiver, out_of_reach};

/// From the first byte to a complete request.
const GREETING_TIMEOUT: Duration = crate::patience::GREETING_TIMEOUT;

/// For the driver to prepare for flows.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// For the data connections.
pub(crate) const FLOWS_TIMEOUT: Duration = Duration::from_secs(15);

/// From all data connections to the first payload: the time for this end's first observation.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// From the end of the payload to this end's observation of it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How much longer than announced a sender may take to deliver the rest of its payload.
const LINGER_TIME: Duration = Duration::from_secs(10);

/// A sender that sends nothing for this long is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// From one measurement of a client to the next.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
