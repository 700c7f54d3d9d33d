//! How much memory reading an untrusted message takes at its most. A program of its own, because the
//! allocator counts for all threads.

use goodput_wire::protocols::goodput::messages::Message;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Longest message of a client with one flow.
const MAX_MESSAGE_BYTES: usize = (1 << 20) + 4096;

/// Bytes of memory at most for each byte of a message.
const MAX_GROWTH_FACTOR: usize = 16;

/// `piece` as often as fits between a beginning and an end.
fn filled(before: &str, piece: &str, after: &str) -> String {
    let count = (MAX_MESSAGE_BYTES - before.len() - after.len()) / piece.len();
    let body = piece.repeat(count);
    [before, body.trim_end_matches(','), after].concat()
}

fn numbered(before: &str, piece: impl Fn(usize) -> String, after: &str) -> String {
    let mut body = before.to_owned();
    for number in 0.. {
        let piece = piece(number);
        if body.len() + piece.len() + after.len() > MAX_MESSAGE_BYTES {
            break;
        }
        body.push_str(&piece);
    }
    [body.trim_end_matches(','), after].concat()
}

/// Messages of the greatest length whose values are small in JSON and large here.
fn hostile() -> Vec<(&'static str, String)> {
    let report = r#"{"report":{"measurement":1,"end":"#;
    let host = r#"{"name":"","kernel":"","goodput":"","cpus":0}"#;
    let before = format!(r#"{report}{{"host":{host},"before":{{"facts":{{"#);
    let samples = format!(
        r#"{report}{{"host":{host},"before":{{"facts":{{}},"missing":{{}}}},"after":{{"facts":{{}},"missing":{{}}}},"samples":["#
    );
    let sample = r#"{"at_s":0,"sent_bytes":0,"received_bytes":0},"#;
    let flow = r#"{"flow":0,"role":"sender","bytes":0,"blocked_us":0,"paced_us":0,"calls":0,"cpu_us":0,"tcp":{},"memory":{"missing":""},"queued_bytes":0},"#;
    let flows = r#"{"sample":{"measurement":1,"sample":{"at_s":0,"sent_bytes":0,"received_bytes":0,"flows":["#;
    let number = |n| format!("\"{n}\":1,");
    let text = |n| format!("\"{n}\":\"\",");
    vec![
        ("an array for an end", filled(&[report, "["].concat(), "0,", "]}}")),
        ("empty arrays for an end", filled(&[report, "["].concat(), "[],", "]}}")),
        ("an array for a host", filled(r#"{"hello":{"version":1,"host":["#, "0,", "]}}")),
        ("numbers as facts", numbered(&before, number, "}}}}}")),
        ("texts as facts", numbered(&before, text, "}}}}}")),
        ("an array as a fact", filled(&format!("{before}\"a\":["), "0,", "]}}}}}")),
        ("samples", filled(&samples, sample, "]}}}")),
        ("flows", filled(flows, flow, "]}}}")),
        ("what nobody knows", filled(r#"{"ping":{"x":["#, "0,", "]}}")),
        ("a deep nesting", filled(report, "[", "")),
        ("a long text", filled(r#"{"goodbye":{"code":"done","why":""#, "\\u001b", "\"}}")),
        (
            "cookies",
            filled(
                r#"{"accept":{"measurement":1,"longest_s":1,"cookies":["#,
                "\"00000000000000000000000000000000\",",
                "]}}",
            ),
        ),
    ]
}

#[test]
fn a_hostile_message_takes_little_memory() {
    for (name, body) in hostile() {
        assert!(body.len() <= MAX_MESSAGE_BYTES, "{name}");
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let outcome = Message::read(body.as_bytes());
        let most = MEMORY.peak_usage() - before;
        let factor = most as f64 / body.len() as f64;
        println!(
            "{name}: {factor:.1} bytes a byte, {}",
            if outcome.is_ok() { "taken" } else { "refused" }
        );
        assert!(
            most < MAX_GROWTH_FACTOR * MAX_MESSAGE_BYTES,
            "{name} takes {factor:.1} bytes of memory for each byte"
        );
    }
}
