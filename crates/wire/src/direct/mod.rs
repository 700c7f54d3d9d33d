//! Conversations of protocols that have no control connection. A connection, or an address over UDP,
//! is a flow; its first bytes say all there is to say, and what follows is payload.
//!
//! ```text
//! connecting  the client: it opens its flows and says nothing else
//! answering   the server: what the first bytes ask for, measurement by measurement
//! ```

mod answering;
mod connecting;

use std::time::Duration;

pub(crate) use answering::{Answering, ClientRequest, Order};
pub(crate) use connecting::{Connecting, Dialect, PLAIN_MOVER, names_far_receiver, out_of_reach};

/// From the first byte to all that is needed to know what is asked for.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// For the driver to make itself ready for flows.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// For the data connections.
pub(crate) const FLOWS_TIMEOUT: Duration = Duration::from_secs(15);

/// From all data connections to the first payload: the time for this end's first observation.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// From the end of the payload to what this end saw of it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How much longer than it said a sender may take to get the rest of its payload through.
const LINGER_TIME: Duration = Duration::from_secs(10);

/// A sender from whom nothing comes for this long is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// From one measurement of a client to its next.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
