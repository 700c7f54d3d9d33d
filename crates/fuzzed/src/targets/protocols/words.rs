//! What a peer that knows the protocol says, so that every state of a session is reached.

/// Something that is said.
pub enum Word {
    /// A body behind its length, four bytes.
    Frame(&'static str),
    /// Text as it is.
    Text(&'static str),
    /// Bytes as they are.
    Bytes(&'static [u8]),
}

/// The words of a protocol, at either end; none if its first bytes are all it says.
pub fn words(protocol: &str) -> Vec<Word> {
    match protocol {
        "goodput" => GOODPUT.iter().copied().map(Word::Frame).collect(),
        "nuttcp" => NUTTCP.iter().copied().map(Word::Text).collect(),
        "iperf3" => {
            let states = IPERF3_STATES.iter().copied().map(Word::Bytes);
            states.chain(IPERF3.iter().copied().map(Word::Frame)).collect()
        }
        _ => Vec::new(),
    }
}

const GOODPUT: &[&str] = &[
    r#"{"hello":{"version":1,"host":{"name":"x","kernel":"y","goodput":"z","cpus":1}}}"#,
    r#"{"propose":{"measurement":1,"plan":{"transport":"tcp","direction":"both","flows":1,
        "length":{"seconds":1.5},"interval_s":0.5,"mover":"copy","chunk_bytes":4096,
        "rate_bits_per_s":null,"observe":true,"socket":{}}}}"#,
    r#"{"accept":{"measurement":1,"cookies":["000102030405060708090a0b0c0d0e0f"],
        "data_port":9,"longest_s":1.5,"note":"slowly","capture":"eth0"}}"#,
    r#"{"refuse":{"measurement":1,"why":"no"}}"#,
    r#"{"flows-ready":{"measurement":1}}"#,
    r#"{"begin":{"measurement":1}}"#,
    r#"{"sample":{"measurement":1,"sample":{"at_s":1,"sent_bytes":2,"received_bytes":3}}}"#,
    r#"{"finish":{"measurement":1,"why":null}}"#,
    r#"{"report":{"measurement":1,"end":{"host":{"name":"x","kernel":"y","goodput":"z","cpus":1},
        "before":{"facts":{},"missing":{}},"after":{"facts":{"a.b":1},"missing":{}},"samples":[]}}}"#,
    r#"{"setting":{"id":1,"request":"restore"}}"#,
    r#"{"setting-done":{"id":1,"answer":{"value":"x"}}}"#,
    r#"{"ping":{}}"#,
    r#"{"goodbye":{"code":"done","why":"bye"}}"#,
    r#"{"captured":{"measurement":1,"part":{"heads":["AAAAAAAAAAEAAAAoBABFAAAo"],"dropped":1}}}"#,
];

/// As each end says them.
const NUTTCP: &[&str] = &[
    "HELO nuttcp v8.2.2\n",
    "HELO nuttcp v6.1.2\n",
    "buflen = 1024, nbuf = 4, win = 0, nstream = 1, rate = 4294967295, port = 5001, trans = 1, \
        braindead = 0, timeout = 0.000000, udp = 0, vers = 6.1.2, interval = 1.000000, \
        reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , \
        multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n",
    "buflen = 1400, port = 5101, trans = 0, udp = 1, timeout = 1.0, interval = 0.5, nstream = 2\n",
    "OK v6.1.2\n",
    "KO\n",
    "DONE\n",
    "nuttcp-r: megabytes=2.4375 real_seconds=1.02 rate_KBps=2438.62 rate_Mbps=19.9772\n",
    "nuttcp-r: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=0% memory=0i+0d-764maxrss\n",
];

/// The cookie, each state, and errors with their words.
const IPERF3_STATES: &[&[u8]] = &[
    b"to6orkg3aukzfrx3ka2w4iqdn6fkb3iztjdq\0",
    &[9],
    &[10],
    &[1, 2],
    &[4],
    &[11],
    &[12],
    &[13],
    &[14],
    &[16],
    &[0xff],
    &[0xfe, 0, 0, 0, 37, 0, 0, 0, 0],
    &[0xfe, 0, 0, 0, 142],
];

/// Parameters and results.
const IPERF3: &[&str] = &[
    "{}",
    r#"{"tcp":true,"omit":1,"time":2,"num":0,"blockcount":0,"parallel":2,"reverse":true,
        "bidirectional":false,"window":65536,"len":1024,"bandwidth":1000000,"MSS":1000,"TOS":16,
        "fqrate":1000000,"congestion":"reno","get_server_output":1,"client_version":"3.12"}"#,
    r#"{"udp":true,"time":0,"num":3072,"parallel":3,"bidirectional":true,"len":512,
        "udp_counters_64bit":1,"get_server_output":1,"dont_fragment":1,"authtoken":"AAAA"}"#,
    r#"{"cpu_util_total":78.8,"cpu_util_user":0,"cpu_util_system":78.5,
        "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr",
        "server_output_text":"[  5] x\n","streams":[{"id":1,"bytes":4096,
        "retransmits":18446744073709551615,"jitter":1e-5,"errors":1,"omitted_errors":1,"packets":2,
        "omitted_packets":1,"start_time":0,"end_time":4e-05},{"id":3,"bytes":-1}]}"#,
];
