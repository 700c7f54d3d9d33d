//! iperf3's error numbers (3.12 to 3.21, `iperf_api.h`): the meanings of a server's, and the ones that goodput sends.

/// Names of the numbers that this end sends.
pub mod number {
    /// The duration is too long.
    pub const DURATION: u32 = 5;
    /// Too many streams.
    pub const STREAMS: u32 = 6;
    /// A block that is too large.
    pub const BLOCK_SIZE: u32 = 7;
    /// A socket buffer that is too large.
    pub const BUFFER_SIZE: u32 = 8;
    /// An MSS that is too large.
    pub const MSS: u32 = 10;
    /// A warm-up that is too long.
    pub const OMIT: u32 = 12;
    /// Something that is not implemented.
    pub const NOT_IMPLEMENTED: u32 = 13;
    /// SCTP is not supported.
    pub const NO_SCTP: u32 = 18;
    /// A datagram that is too small or too large.
    pub const UDP_BLOCK_SIZE: u32 = 20;
    /// An invalid TOS.
    pub const TOS: u32 = 21;
    /// Reverse and bidirectional at once.
    pub const REVERSE_BIDIR: u32 = 25;
    /// More than the server's rate.
    pub const TOTAL_RATE: u32 = 27;
    /// Longer than the server's longest duration.
    pub const MAX_DURATION: u32 = 37;
    /// Parameters that can't be read.
    pub const RECEIVE_PARAMS: u32 = 114;
    /// Results that can't be read.
    pub const RECEIVE_RESULTS: u32 = 117;
    /// An invalid message.
    pub const MESSAGE: u32 = 110;
    /// The CPU affinity can't be set.
    pub const AFFINITY: u32 = 132;
    /// The congestion control can't be set.
    pub const CONGESTION: u32 = 134;
    /// Not authorised.
    pub const AUTH: u32 = 142;
    /// The test lasted longer than announced.
    pub const DURATION_EXPIRED: u32 = 160;
    /// The data connections can't be made.
    pub const CREATE_STREAM: u32 = 200;
    /// A data connection did not come.
    pub const STREAM_ACCEPT: u32 = 204;
    /// A data connection broke.
    pub const STREAM_CLOSE: u32 = 207;
}

/// The meanings of the numbers, in words that fit behind "the server says:".
const MEANINGS: &[(u32, &str)] = &[
    (number::DURATION, "the duration is longer than iperf3 allows"),
    (number::STREAMS, "more parallel streams than it allows"),
    (number::BLOCK_SIZE, "the block (--chunk) is larger than it allows"),
    (number::BUFFER_SIZE, "the socket buffer is larger than it allows"),
    (9, "the report interval is out of its range"),
    (number::MSS, "the MSS is larger than it allows"),
    (11, "its system has no sendfile"),
    (number::OMIT, "the warm-up is longer than it allows"),
    (number::NOT_IMPLEMENTED, "it does not implement the request"),
    (14, "it can't open its file"),
    (15, "the burst is larger than it allows"),
    (16, "more than one end condition was given"),
    (number::NO_SCTP, "it has no SCTP"),
    (number::UDP_BLOCK_SIZE, "the datagram (--chunk) is too small or too large"),
    (number::TOS, "the type of service is out of its range"),
    (22, "the client's credentials are incomplete"),
    (23, "its own authentication is set up badly"),
    (number::REVERSE_BIDIR, "reverse and both directions exclude each other"),
    (26, "the port is out of its range"),
    (number::TOTAL_RATE, "the total rate is above its limit (--server-bitrate-limit)"),
    (28, "the interval of its rate limit is out of range"),
    (29, "its skew threshold is out of range"),
    (30, "its idle time-out is out of range"),
    (31, "its receive time-out is out of range"),
    (32, "a receive time-out has no place in this direction"),
    (33, "its send time-out is out of range"),
    (34, "UDP has no file transfer"),
    (number::MAX_DURATION, "the duration is above its limit (--server-max-duration)"),
    (100, "it can't create the test"),
    (101, "it can't initialise the test"),
    (102, "it can't listen"),
    (103, "it can't connect"),
    (104, "it can't accept a connection"),
    (105, "the cookie could not be sent"),
    (106, "it received no cookie"),
    (107, "it can't write to the control connection"),
    (108, "it can't read from the control connection"),
    (109, "the control connection was closed unexpectedly"),
    (number::MESSAGE, "it received an unknown message"),
    (111, "it can't send a message"),
    (112, "it can't receive a message"),
    (113, "the parameters could not be sent"),
    (number::RECEIVE_PARAMS, "it could not read the parameters"),
    (115, "it can't put its results together"),
    (116, "it can't send its results"),
    (number::RECEIVE_RESULTS, "it could not read this end's results"),
    (118, "select failed there"),
    (119, "the client was interrupted"),
    (120, "the server was interrupted"),
    (121, "it is busy with another test"),
    (122, "it can't set TCP_NODELAY"),
    (123, "it can't set the MSS"),
    (124, "it can't set the socket buffer size"),
    (125, "it can't set the type of service"),
    (126, "it can't set the IPv6 traffic class"),
    (127, "it can't set the IPv6 flow label"),
    (128, "it can't reuse the address"),
    (129, "it can't make a socket non-blocking"),
    (130, "it can't set the window size"),
    (131, "it does not know the transport protocol"),
    (number::AFFINITY, "it can't set its CPU affinity"),
    (133, "it can't become a daemon"),
    (number::CONGESTION, "it can't set the congestion control; it may not be available there"),
    (135, "it can't write its PID file"),
    (136, "it can't set IPV6_V6ONLY"),
    (140, "it can't set the pacing rate"),
    (141, "the socket buffer there is smaller than requested (net.core.rmem_max, wmem_max)"),
    (number::AUTH, "the user name or the password is wrong, or the two clocks differ"),
    (143, "it can't be bound to the device"),
    (144, "no data reached it for too long"),
    (145, "it can't set the don't-fragment bit"),
    (number::DURATION_EXPIRED, "the test lasted longer than announced"),
    (number::CREATE_STREAM, "it can't create a stream"),
    (201, "it can't initialise a stream"),
    (202, "it can't listen for streams"),
    (203, "it can't connect a stream"),
    (number::STREAM_ACCEPT, "it can't accept a stream"),
    (205, "it can't write to a stream"),
    (206, "it can't read from a stream"),
    (number::STREAM_CLOSE, "a stream was closed unexpectedly"),
    (208, "it does not know a stream's number"),
    (300, "it can't create a timer"),
    (301, "it can't update a timer"),
    (400, "it can't create a thread"),
];

/// The meaning of a server's error. `errno` is 0 if there was none.
pub fn words(number: u32, errno: u32) -> String {
    let known = MEANINGS.iter().find(|(known, _)| *known == number);
    let meaning = known.map_or("an error that goodput does not know", |(_, words)| words);
    match errno {
        0 => format!("{meaning} (iperf3's error {number})"),
        errno => format!("{meaning} (iperf3's error {number}, errno {errno} of its system)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reported_in_words_and_the_unknown_as_a_number() {
        assert!(words(37, 0).starts_with("the duration is above its limit"));
        assert!(words(205, 32).contains("errno 32"));
        assert!(words(9999, 0).contains("9999"));
    }

    #[test]
    fn the_table_is_in_order_and_names_each_number_once() {
        assert!(MEANINGS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
