//! The deadlines of an iperf3 conversation. The protocol itself has few; a comment names each of them.

use std::time::Duration;

use crate::patience;

/// From the cookie to the server's first byte.
pub const GREETING_TIMEOUT: Duration = patience::GREETING_TIMEOUT;

/// From the invitation to the parameters. A server of 3.15 and later waits 10 s for each part of a
/// message (`net.c`).
pub const PARAMS_TIMEOUT: Duration = Duration::from_secs(10);

/// From acceptable parameters to the server's request for the data connections: a busy server may take its turn first.
pub const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);

/// From then to all data connections: 30 s for each answer over UDP (`iperf_udp.c`), and 128 of them one after the
/// other over a long path.
pub const STREAMS_TIMEOUT: Duration = Duration::from_secs(60);

/// From the server's start to the client's first payload: the time for its observations.
pub const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How much longer than its duration a measurement may last before the server ends it: the same as in iperf3's own
/// server (`iperf_server_api.c`).
pub const GRACE_TIME: Duration = Duration::from_secs(40);

/// From the end of the payload to the last state.
pub const RESULTS_TIMEOUT: Duration = Duration::from_secs(30);

/// From the last state to the client's goodbye.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(10);

/// From the announcement of an error to its number, which some versions omit.
pub const ERROR_TIMEOUT: Duration = Duration::from_secs(2);

/// From the parameters to a refusal for lack of permission. It is the same for every reason, so that the time doesn't
/// reveal how far the decryption of a token got.
pub const DENIAL_DELAY: Duration = Duration::from_secs(1);

/// From a login to the host's verdict: other logins are checked first.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
