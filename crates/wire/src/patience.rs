//! How long a peer has for its first words, in every protocol.

use std::time::Duration;

/// How long to wait for a greeting. TCP repeats a lost packet after 1, 2 and 4 s at most while it has no round trip to go
/// by, so the third copy leaves after 7 s (RFC 6298, sections 2.1 and 5.5). It has one more second to arrive and to be
/// answered. A path that loses packets in runs needs that; after 5 s only two copies had been sent.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(1 + 2 + 4 + 1);
