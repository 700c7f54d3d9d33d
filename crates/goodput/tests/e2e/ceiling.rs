//! `goodput ceiling`: arithmetic without traffic, and nonsense as input.

use serde_json::Value;

use crate::common::{Home, refusing, stderr, stdout};

fn computed(arguments: &[&str], code: i32) -> String {
    let output = Home::new().run(&[&["ceiling"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&computed(&[arguments, &["--json"]].concat(), 0)).expect("it is JSON")
}

#[test]
fn the_lowest_bound_is_named_with_its_arithmetic() {
    let text = computed(&["--link", "44.21mbit", "--rtt", "25ms", "--window", "64K"], 0);
    assert!(text.starts_with("ceiling     21.0 Mbit/s   one window per round trip"), "{text}");
    assert!(text.contains("44.21 Mbit/s × 25 ms / 8 = 138156.2 bytes"), "{text}");
    assert!(text.contains("65536 bytes × 8 / 25 ms = 21.0 Mbit/s"), "{text}");
}

#[test]
fn json_has_the_inputs_and_every_bound() {
    let report = json(&["--link", "1gbit", "--tunnel", "pppoe,vxlan6", "--bus", "pcie3x1"]);
    assert_eq!(report["limit"], "wire");
    assert_eq!(report["inputs"]["tunnels"], serde_json::json!(["pppoe", "vxlan6"]));
    assert_eq!(report["inputs"]["mtu_bytes"], 1500, "the default is said");
    assert!(report["inputs"]["window_bytes"].is_null(), "what was not given is absent");
    let ids: Vec<_> = report["bounds"].as_array().unwrap().iter().map(|b| &b["id"]).collect();
    assert_eq!(ids, ["wire", "bus"]);
}

#[test]
fn a_measurement_above_a_bound_is_a_problem_and_nothing_is_clipped() {
    let above = computed(&["--link", "100mbit", "--measured", "99mbit"], 1);
    assert!(above.contains("99 Mbit/s was measured") && above.contains("is wrong"), "{above}");
    assert!(above.contains("94.1 Mbit/s"), "{above}");
    computed(&["--link", "100mbit", "--measured", "94mbit"], 0);
}

#[test]
fn what_becomes_of_a_burst_is_an_answer_without_a_rate() {
    let text = computed(&["--card-buffer", "5K", "--burst-frames", "6"], 0);
    assert!(text.contains("5120 / 1514 bytes, whole ones = 3 frames"), "{text}");
    assert!(text.contains("= 3 frames") && text.contains("no longest gap"), "{text}");
}

#[test]
fn a_series_is_fitted_from_the_command_line_or_a_file() {
    let series = "6.7MHz:740KB/s,13.4MHz:970KB/s,20MHz:1030KB/s,26.7MHz:1075KB/s";
    let home = Home::new();
    let fitted = stdout(&home.run(&["ceiling", "--fit", series]));
    assert!(fitted.starts_with("asymptote   10.3 Mbit/s (1.29 MB/s)"), "{fitted}");
    let file = home.path().join("isa.txt");
    std::fs::write(&file, series.replace(',', "\n").replace(':', " ")).unwrap();
    let of_file = stdout(&home.run(&["ceiling", "--fit", file.to_str().unwrap()]));
    assert_eq!(of_file, fitted);
}

/// Loopback has neither speed nor ring, and a refused port answers.
#[test]
fn what_this_host_knows_is_read_and_what_it_does_not_is_said() {
    let (_bound, address) = refusing();
    let report = json(&["--here", "lo", "--to", &address.to_string()]);
    assert!(report["inputs"]["rtt_us"].as_f64().is_some_and(|us| us > 0.0), "{report}");
    assert!(report["inputs"]["mtu_bytes"].as_u64().is_some(), "{report}");
    let unread: Vec<_> = report["unread"].as_array().unwrap().iter().map(|u| &u["what"]).collect();
    assert!(unread.contains(&&Value::from("link speed")), "{report}");
    assert_eq!(report["limit"], "window", "{report}");
    let typed = json(&["--here", "lo", "--mtu", "1400", "--link", "1gbit"]);
    assert_eq!(typed["inputs"]["mtu_bytes"], 1400, "what was typed counts");
    let about = |list: &str| typed[list].to_string();
    assert!(!about("read").contains("MTU") && !about("unread").contains("link speed"), "{typed}");
    assert!(typed["inputs"]["rtt_us"].is_null(), "nobody was named to send a packet to");
}

#[test]
fn nonsense_is_refused_in_words() {
    for (arguments, word) in [
        (&[][..], "give --link RATE"),
        (&["--rtt", "1ms"], "give --link RATE"),
        (&["--link", "0"], "above 0"),
        (&["--link", "9999999tbit"], "1000 Tbit/s"),
        (&["--link=-1"], "not a rate"),
        (&["--link", "1g", "--mtu", "0"], "1 to 65536"),
        (&["--link", "1g", "--mtu", "99999999999999999999"], "1 to 65536"),
        (&["--link", "1g", "--mss", "0"], "at least 1 byte"),
        (&["--link", "1g", "--udp", "--mss", "9"], "can't be used with"),
        (&["--link", "1g", "--datagram", "9"], "--udp"),
        (&["--link", "1g", "--udp", "--datagram", "65508"], "1 to 65507 bytes"),
        (&["--link", "1g", "--udp", "--datagram", "0"], "1 to 65507 bytes"),
        (&["--link", "1g", "--tunnel", "vpn"], "wireguard"),
        (&["--link", "1g", "--flows", "0"], "1 to 65535"),
        (&["--window", "2G", "--rtt", "1s"], "1 to 1G bytes"),
        (&["--window", "64K", "--rtt", "0"], "above 0"),
        (&["--window", "64K", "--rtt", "NaN"], "above 0"),
        (&["--loss", "100%", "--rtt", "1s"], "below 100"),
        (&["--bus", "pcie9x1"], "pcie1x1 to pcie7x32"),
        (&["--hz", "1000"], "--poll-burst"),
        (&["--packet-rate", "inf"], "packet rate"),
        (&["--ring", "1", "--card-buffer", "1"], "can't be used with"),
        (&["--here", "nosuch0"], "no device nosuch0"),
        (&["--to", "no-such-host.invalid"], "resolve"),
        (&["--here", "lo", "--fit", "1:1"], "can't be used with"),
        (&["--fit", "1:1,2:2"], "at least 3 different clocks"),
        (&["--fit", "no-such-file"], "a series like"),
        (&["--fit", "/"], "can't read /"),
        (&["--fit", "1:1,2:2,3:3", "--link", "1g"], "can't be used with"),
    ] {
        let output = Home::new().run(&[&["ceiling"], arguments].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(word) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn contradictions_say_why_no_ceiling_is_known() {
    for (arguments, why) in [
        (&["--link", "1g", "--mtu", "60", "-6"][..], "60 bytes have no room for 72 bytes"),
        (&["--link", "1g", "--tunnel", "vxlan", "--tunnel-mtu", "1500"], "cut in two"),
        (&["--link", "1g", "--framing", "hdlc", "--vlan", "1"], "has no VLAN"),
        (&["--bus", "usb2", "--bus-clock", "8MHz"], "no clock to choose"),
        (&["--window", "64K"], "no round-trip time was given"),
        (&["--loss", "1%"], "no round-trip time was given"),
        (&["--ring", "256"], "no longest gap"),
    ] {
        let text = computed(arguments, 2);
        assert!(text.contains("unknown") && text.contains(why), "{arguments:?}: {text}");
    }
}
