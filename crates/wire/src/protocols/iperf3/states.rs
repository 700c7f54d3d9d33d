//! The states that one end sends to the other, a byte each (iperf3 3.21, `iperf_api.h`).

/// The server sets up counters and timers.
pub const TEST_START: u8 = 1;
/// Payload moves.
pub const TEST_RUNNING: u8 = 2;
/// The client's end condition is reached, in any direction of payload.
pub const TEST_END: u8 = 4;
/// The server awaits the parameters.
pub const PARAM_EXCHANGE: u8 = 9;
/// The server awaits the data connections.
pub const CREATE_STREAMS: u8 = 10;
/// The server was interrupted.
pub const SERVER_TERMINATE: u8 = 11;
/// The client was interrupted.
pub const CLIENT_TERMINATE: u8 = 12;
/// The server awaits the client's results, and then sends its own.
pub const EXCHANGE_RESULTS: u8 = 13;
/// Both have the other's results.
pub const DISPLAY_RESULTS: u8 = 14;
/// The client says goodbye.
pub const IPERF_DONE: u8 = 16;
/// -1: the server is busy, or the cookie of a data connection is not the client's.
pub const ACCESS_DENIED: u8 = 0xff;
/// -2: something failed; two 32-bit words follow, iperf3's number and errno.
pub const SERVER_ERROR: u8 = 0xfe;
