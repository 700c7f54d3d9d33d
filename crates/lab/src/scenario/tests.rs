//! Scenario files, good and malformed.

use proptest::prelude::*;

use super::*;
use crate::need::Need;

const HEAD: &str = "name = \"x\"\ntitle = \"X.\"\n";

fn error_of(body: &str) -> String {
    match Scenario::parse("test.toml", &format!("{HEAD}{body}")) {
        Ok(scenario) => panic!("{body} was taken: {scenario:?}"),
        Err(error) => error.to_string(),
    }
}

fn says(body: &str, words: &[&str]) {
    let error = error_of(body);
    for word in words {
        assert!(error.contains(word), "{body}\ndoes not say {word:?}:\n{error}");
    }
}

#[test]
fn a_whole_scenario_is_read() {
    let text = r#"
        name = "all-of-it"
        title = "Everything at once."
        [link.near-router]
        rate = "1gbit"
        mtu = 9000
        [link.router-far]
        delay = "10ms"
        jitter = "1ms"
        loss = 0.5
        reorder = "1%"
        segmentation = "off"
        back = { delay = "5ms" }
        [[fault]]
        kind = "sysctl"
        host = "router"
        name = "net.ipv4.ip_default_ttl"
        value = "9"
        [run]
        verb = "test"
        server = ["--one-off"]
        client = ["--reverse"]
        within = "20s"
        [expect]
        limit = ["none", "path-loss"]
        end = "path"
        not = "shaper-rate"
        goodput = { min = "1mbit", max = "2mbit" }
    "#;
    let scenario: Scenario = text.parse().unwrap();
    let Topology::Routed(near, far) = scenario.topology() else { panic!("no router") };
    assert_eq!(near.mtu(), 9000);
    let (forward, back) = far.directions();
    assert_eq!((forward.delay.as_millis(), back.delay.as_millis()), (10, 5));
    assert_eq!((forward.loss_percent, back.reorder_percent), (0.5, 1.0));
    assert_eq!(scenario.faults[0].kind.id, "sysctl");
    assert_eq!(scenario.run.within.unwrap().0.as_secs(), 20);
    assert_eq!(scenario.expect.limit.len(), 2);
    assert_eq!(scenario.needs(), [Need::Emulation]);
}

#[test]
fn an_unknown_word_is_shown_with_its_line_and_the_right_ones() {
    says("[link.pth]", &["line 3", "unknown field `pth`", "`path`"]);
    says("[link.path]\nrtae = \"1gbit\"", &["line 4", "rtae", "`rate`"]);
    says("[expect]\nlimits = \"none\"", &["line 4", "`limit`"]);
    says("[run]\nverb = \"tset\"", &["line 4", "`test`"]);
    says("[expect]\nend = \"middle\"", &["line 4", "`path`"]);
}

#[test]
fn a_wrong_amount_is_shown_with_its_line_and_the_right_spelling() {
    says("[link.path]\nrate = \"fast\"", &["line 4", "100mbit"]);
    says("[link.path]\nrate = 0", &["line 4", "more than 0"]);
    says("[link.path]\ndelay = 20", &["line 4", "20ms"]);
    says("[link.path]\nloss = \"150%\"", &["line 4", "0 to 100 %"]);
    says("[link.path]\nqueue = \"some\"\nrate = \"1M\"", &["line 4", "100 packets"]);
}

#[test]
fn a_broken_fault_says_which_and_why() {
    says("[[fault]]\nhost = \"near\"", &["line 3", "kind", "tbf", "sysctl"]);
    says("[[fault]]\nkind = \"tbff\"", &["\"tbff\"", "tbf", "cpu-quota"]);
    says("[[fault]]\nkind = \"tbf\"\nhost = \"near\"\nrate = \"1M\"", &["fault tbf", "`burst`"]);
    says(
        "[[fault]]\nkind = \"offload\"\nhost = \"near\"\nname = \"tsoo\"\nvalue = \"on\"",
        &["fault offload", "\"tsoo\"", "tso, gso"],
    );
    says(
        "[[fault]]\nkind = \"cpu-quota\"\nhost = \"router\"\npercent = 5",
        &["router", "there is none"],
    );
}

#[test]
fn what_cannot_be_together_is_refused_with_the_reason() {
    says("[link.path]\n[link.router-far]", &["choose one"]);
    says("[link.path]\njitter = \"2ms\"\ndelay = \"1ms\"", &["link.path", "jitter"]);
    says("[link.path]\nreorder = 1", &["reorder needs a delay"]);
    says("[link.path]\nqueue = \"1M\"", &["queue needs a rate"]);
    says("[link.path]\nloss = 1\nsegmentation = \"on\"", &["segmentation = \"off\""]);
    says("[link.path]\nmtu = 100", &["1280"]);
    says("[link.path]\nback = { mtu = 1500 }", &["back can't"]);
    says("[expect]\ngoodput = { min = \"2M\", max = \"1M\" }", &["min 2 Mbit/s"]);
    let error = Scenario::parse("t", "name = \"A b\"\ntitle = \"\"").unwrap_err();
    assert!(error.to_string().contains("kebab-case"), "{error}");
}

#[test]
fn a_mistyped_name_gets_the_nearest_one() {
    let error = Scenario::load("path-los").unwrap_err().to_string();
    assert!(error.contains("did you mean \"path-loss\"?"), "{error}");
    let error = Scenario::load("zzzz").unwrap_err().to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_file_is_read_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let path = path.to_str().unwrap();
    std::fs::write(path, HEAD).unwrap();
    assert_eq!(Scenario::load(path).unwrap().name, "x");
    let error = Scenario::load("./no-such-file.toml").unwrap_err().to_string();
    assert!(error.contains("./no-such-file.toml"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_a_scenario_or_an_error(text in "\\PC{0,200}") {
        let _ = Scenario::parse("text", &text);
    }

    #[test]
    fn any_value_of_a_link_is_taken_or_refused(
        field in "(rate|delay|jitter|loss|reorder|queue|mtu|segmentation)",
        value in "(-?[0-9]{1,12}|\"[0-9a-z% .]{0,12}\"|true|[0-9]\\.[0-9]|\\[\\])",
    ) {
        let _ = Scenario::parse("text", &format!("{HEAD}[link.path]\n{field} = {value}"));
    }
}
