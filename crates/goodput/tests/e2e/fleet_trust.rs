//! Whom a fleet lets in, and whose tasks its agents take.

use goodput_testing::servers::certificate;
use goodput_testing::wait_for;

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

/// A fleet whose keys are made, with TLS and only the users of the fleet.
struct Closed {
    fleet: Fleet,
    /// The address, and what proves that it is the right server.
    server: Vec<String>,
}

impl Closed {
    fn new() -> Option<Self> {
        let storage = Home::new();
        let mesh = storage.file("mesh.toml", PAIR).display().to_string();
        let keys = storage.path().join("keys").display().to_string();
        let made = storage.run(&["fleet", "keys", &mesh, "-o", &keys]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        let said = stdout(&made) + &stderr(&made);
        assert!(said.contains("2 sites") && said.contains("signed by O"), "{said}");
        certificate(storage.path(), false);
        let at = storage.path().display().to_string();
        let configuration = format!(
            "include \"keys/fleet.conf\"\ntls {{ cert_file: \"{at}/cert.pem\", key_file: \"{at}/key.pem\" }}\n"
        );
        let mut fleet = Fleet::within(storage, &configuration)?;
        let url = fleet.nats.tls_url();
        let server = ["--nats", &url, "--tls-ca", &format!("{at}/cert.pem")].map(String::from);
        fleet.coordinator = [&server[..], &login(&keys, "coordinator.d")].concat();
        Some(Self { fleet, server: server.to_vec() })
    }

    fn login(&self, of: &str) -> Vec<String> {
        let keys = self.fleet.storage.path().join("keys").display().to_string();
        [self.server.clone(), login(&keys, of).to_vec()].concat()
    }

    fn agent(&self, name: &str) -> Agent {
        let login = self.login(&format!("{name}.site"));
        let login: Vec<_> = login.iter().map(String::as_str).collect();
        Agent::start_with(&self.fleet, name, Home::new(), &login)
    }
}

fn login(keys: &str, of: &str) -> [String; 2] {
    ["--nkey".into(), format!("{keys}/{of}/login.nk")]
}

#[test]
fn with_tls_and_keys_each_may_do_what_it_needs_and_no_more() {
    let Some(closed) = Closed::new() else { return };
    let home = Home::new();
    let mesh = closed.fleet.mesh(PAIR);
    // Only the coordinator makes the streams.
    let output = closed.fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert!(said.contains("no record: no agent b is connected"), "{said}{}", stderr(&output));
    let (_a, b) = (closed.agent("a"), closed.agent("b"));
    let output = closed.fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}{}", stdout(&output), stderr(&output), b.log());
    assert_eq!(b.records().len(), 2);
    let output = closed.fleet.test(&home, &["a", "b"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    // A site's key is none of a coordinator.
    let login = closed.login("b.site");
    let login: Vec<_> = login.iter().map(String::as_str).collect();
    let output = home.run(&[&["fleet", "run", &mesh, "--once"], &login[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let why = stderr(&output);
    assert!(why.contains("does not have the rights of the coordinator"), "{why}");
    assert!(why.contains("b.site/login.nk") && why.contains("coordinator.d/login.nk"), "{why}");
    assert!(!why.contains("metrics") && !why.contains("Violation"), "{why}");
}

#[test]
fn an_agent_with_the_key_of_another_site_ends_and_says_whose_key_it_needs() {
    let Some(closed) = Closed::new() else { return };
    let home = Home::new();
    // The streams are there, and without them it ends, too.
    for streams in [false, true] {
        if streams {
            closed.fleet.run_to_the_end(&home, &closed.fleet.mesh(PAIR));
        }
        for of in ["a.site", "coordinator.d"] {
            let login = closed.login(of);
            let login: Vec<_> = login.iter().map(String::as_str).collect();
            let output = home.run(&[&["fleet", "agent", "--name", "b"], &login[..]].concat());
            let why = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{why}");
            assert!(why.contains("does not have the rights of the agent of b"), "{why}");
            assert!(why.contains(&format!("{of}/login.nk")) && why.contains("--name"), "{why}");
        }
    }
}

#[test]
fn who_is_not_known_or_does_not_know_the_server_does_not_get_in() {
    let Some(closed) = Closed::new() else { return };
    let home = Home::new();
    let url = closed.fleet.nats.tls_url();
    let agent = |more: &[&str]| {
        let output = home.run(&[&["fleet", "agent", "--name", "a", "--nats", &url], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let why = agent(&[]);
    assert!(why.contains("can't connect to NATS") && why.contains("--tls-ca"), "{why}");
    assert!(!why.contains("UnknownIssuer") && !why.contains("peer certificate"), "{why}");
    let why = agent(&closed.server[2..].iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        why.contains("does not let a user without a key in") && why.contains("--nkey"),
        "{why}"
    );
    let open = home.file("open.nk", "SU");
    let why = agent(&["--nkey", open.to_str().unwrap()]);
    assert!(why.contains("chmod 600"), "{why}");
    let wrong = home.secret("wrong.nk", "SUSECRET");
    let why = agent(&["--nkey", wrong.to_str().unwrap()]);
    assert!(why.contains("no nkey seed") && !why.contains("SUSECRET"), "{why}");
}

/// A fleet whose bus lets everyone in, and whose agent `b` trusts the coordinator's key alone.
#[test]
fn an_agent_takes_only_what_its_coordinator_has_signed_and_once() {
    let Some(mut fleet) = Fleet::new() else { return };
    let mesh = fleet.mesh(PAIR);
    let keys = fleet.storage.path().join("keys");
    let made = fleet.storage.run(&["fleet", "keys", &mesh, "-o", keys.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let file = |name: &str| keys.join(name).display().to_string();
    let public = file("b.site/coordinator.pub");
    let trust = ["--trust", &public];
    let a = Agent::start_with(&fleet, "a", Home::new(), &trust);
    let b = Agent::start_with(&fleet, "b", Home::new(), &trust);
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("takes only tasks that the key O") && said.contains("--sign"), "{said}");
    let mut tasks = fleet.nats.hear("goodput.task.b");
    fleet.coordinator = vec!["--sign".into(), file("coordinator.d/sign.nk")];
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}{}", stdout(&output), stderr(&output), b.log());
    // A key that signs for another fleet is refused before anything is asked for.
    let other = fleet.storage.path().join("other");
    let made = fleet.storage.run(&["fleet", "keys", &mesh, "-o", other.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let wrong = vec!["--sign".into(), other.join("coordinator.d/sign.nk").display().to_string()];
    let right = std::mem::replace(&mut fleet.coordinator, wrong);
    let output = fleet.test(&home, &["a", "b"]);
    let why = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{}{why}", stdout(&output));
    assert!(why.contains("trusts the key O") && why.contains("--sign"), "{why}");
    fleet.coordinator = right;
    let signed = tasks.next_message();
    let mut task: serde_json::Value = serde_json::from_str(&signed).expect(&signed);
    // Once more; changed; for another site; not signed.
    fleet.nats.publish("goodput.task.b", &signed);
    fleet.nats.publish("goodput.task.a", &signed);
    let text = task["task"].as_str().unwrap().replace("\"length_s\":1.0", "\"length_s\":2.0");
    task["task"] = text.into();
    fleet.nats.publish("goodput.task.b", &task.to_string());
    task["signature"] = serde_json::Value::Null;
    fleet.nats.publish("goodput.task.b", &task.to_string());
    wait_for("all refusals", || {
        let (at_a, at_b) = (a.log(), b.log());
        at_b.contains("trusts has not signed it")
            && at_b.contains("it is not signed")
            && at_a.contains("the task is for b, not for a")
    });
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(home.path()).len()), (4, 4), "{}", b.log());
    // The far end, too, opens nothing for a task that it was shown before, or by another site.
    let far = |from: &str| {
        let call = serde_json::json!({ "open": {
            "format": goodput_fleet::FORMAT, "key": "x25519:RaPJSx1Bmyen+ag5rKZDiwtExfqVSn8yLXMWFfOZ1mg",
            "sealed": serde_json::from_str::<serde_json::Value>(&signed).unwrap(),
        }});
        fleet.nats.publish(&format!("goodput.call.a.{from}"), &call.to_string());
    };
    far("b");
    far("c");
    wait_for("both refusals", || {
        a.log().contains("a coordinator that has a successor")
            && a.log().contains("not of who calls")
    });
    assert_eq!(a.servers(), 0);
}

#[test]
fn only_the_caller_of_a_test_ends_it() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = PAIR.replace("1s", "2s").replace("pause", "directions = \"one\"\npause");
    let mut news = fleet.nats.hear("goodput.news.b.*");
    let home = Home::new();
    let run = fleet.run(&home, &fleet.mesh(&mesh));
    let event = news.next_message();
    let event: serde_json::Value = serde_json::from_str(&event).expect(&event);
    let farewell = serde_json::json!({ "close": { "task": event["task"], "bytes": 0 } });
    fleet.nats.publish("goodput.call.a.c", &farewell.to_string());
    let output = run.wait_with_output().expect("it ends");
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), b.log());
    assert!(!said.contains("only a part"), "{said}");
}

/// The authority itself as the server's certificate, as a short command of openssl makes it; and no TLS at all.
#[test]
fn what_is_wrong_with_the_certificate_of_a_server_is_said_in_words() {
    let storage = Home::new();
    certificate(storage.path(), true);
    let at = storage.path().display().to_string();
    let tls = format!("tls {{ cert_file: \"{at}/cert.pem\", key_file: \"{at}/key.pem\" }}\n");
    let Some(fleet) = Fleet::within(storage, &tls) else { return };
    let home = Home::new();
    let agent = |url: &str| {
        let authority = format!("{at}/cert.pem");
        let arguments = ["fleet", "agent", "--name", "a", "--nats", url, "--tls-ca", &authority];
        let output = home.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let why = agent(&fleet.nats.tls_url());
    assert!(why.contains("that of an authority (CA:TRUE)") && why.contains("CA:FALSE"), "{why}");
    assert!(!why.contains("CaUsedAsEndEntity"), "{why}");
    let Some(open) = Fleet::new() else { return };
    let why = agent(&open.nats.tls_url());
    assert!(why.contains("speaks no TLS"), "{why}");
}
