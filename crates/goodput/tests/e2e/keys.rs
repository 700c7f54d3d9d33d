//! Clients and servers that know each other by keys: made, used, refused, withdrawn.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use goodput_testing::wait_for;

use crate::common::{Home, Server, moved, record, set_mode, stderr, stdout};

const TOKEN: &str = "4cf1d5a6e0b27c9388ab41f02d6e759c";

/// Makes a key of this name; its file and its line for the server.
fn key(home: &Home, name: &str, role: &str) -> (String, String) {
    let file = home.path().join(name);
    let file = file.to_str().expect("temporary directories have plain names").to_owned();
    let output = home.run(&["key", "-o", &file, "--name", name, "--role", role]);
    assert!(output.status.success(), "{}", stderr(&output));
    (file, stdout(&output))
}

/// The file with the keys of clients, as it is now.
fn authorize(home: &Home, lines: &[&str]) -> String {
    // As editors do it, so that the server never sees half of it.
    let (next, file) = (home.file("authorized.next", &lines.concat()), authorized(home));
    set_mode(&next, 0o644);
    fs::rename(&next, &file).expect("the directory is the test's own");
    file.to_str().expect("temporary directories have plain names").to_owned()
}

fn authorized(home: &Home) -> PathBuf {
    home.path().join("authorized")
}

/// Measures as little as is enough to see that it may.
fn test(home: &Home, target: &str, more: &[&str]) -> Output {
    home.run(&[&["test", target, "--json", "--no-store", "-n", "1M"], more].concat())
}

fn refused(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(3), "{}", stderr(output));
    for word in words {
        assert!(stderr(output).contains(word), "{word} in {}", stderr(output));
    }
}

/// Waits until the server's log has at least this many lines with this text; a thread of its own writes them.
fn logged(home: &Home, text: &str, times: usize) {
    wait_for(text, || {
        let log = fs::read_to_string(home.path().join("server.log")).expect("the server has a log");
        log.lines().filter(|line| line.contains(text)).count() >= times
    });
}

#[test]
fn a_key_is_made_once_and_its_line_is_printed_again() {
    let home = Home::new();
    let made = home.run(&["key", "--name", "ann"]);
    assert!(stderr(&made).contains("private key"), "{}", stderr(&made));
    let line = stdout(&made);
    assert!(line.starts_with("ann measure x25519:"), "{line}");
    let file = home.path().join("goodput/key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = fs::read_to_string(&file).unwrap();
    assert!(!line.contains(secret.split_whitespace().last().unwrap()));
    let again = home.run(&["key"]);
    assert_eq!((stdout(&again), stderr(&again)), (line.clone(), String::new()));
    // Another name is no reason to lose the key that servers know.
    assert_eq!(home.run(&["key", "--name", "bob"]).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), secret);
    let replaced = stdout(&home.run(&["key", "--replace", "--role", "settings"]));
    assert!(
        replaced.contains(" settings ") && !replaced.contains(line.split(' ').next_back().unwrap())
    );
    set_mode(&file, 0o644);
    assert!(stderr(&home.run(&["key"])).contains("chmod 600"));
}

#[test]
fn who_is_known_measures_and_the_log_says_who_it_was() {
    let home = Home::new();
    let (ann, line) = key(&home, "ann", "measure");
    let (bob, _) = key(&home, "bob", "measure");
    let list = authorize(&home, &["# clients\n", &line]);
    let server = Server::start(&home, &["--authorized-keys", &list, "--require-credential"]);
    let first = test(&home, &server.address, &["--key", &ann]);
    assert!(moved(&record(&first)), "{}", stderr(&first));
    let known = home.path().join("goodput/known_servers");
    assert!(stderr(&first).contains(known.to_str().unwrap()), "{}", stderr(&first));
    assert!(fs::read_to_string(&known).unwrap().starts_with(&server.address));
    // At the second visit it is no news.
    assert!(!stderr(&test(&home, &server.address, &["--key", &ann])).contains("remembered"));
    logged(&home, "by=key ann", 2);
    let bob_is = stdout(&home.run(&["key", "-o", &bob]));
    let bob_is = bob_is.split_whitespace().last().unwrap();
    refused(&test(&home, &server.address, &["--key", &bob]), &[bob_is]);
    logged(&home, bob_is, 1);
    // Without a key nobody can say whether it is still the same server.
    refused(&test(&home, &server.address, &[]), &["line 1 of ", "--no-key"]);
    refused(&test(&home, &server.address, &["--no-key"]), &["a key"]);
}

#[test]
fn a_key_is_withdrawn_and_given_while_the_server_runs() {
    let home = Home::new();
    let (ann, line) = key(&home, "ann", "measure");
    let list = authorize(&home, &[]);
    let server = Server::start(&home, &["--authorized-keys", &list, "--require-credential"]);
    let try_it = || test(&home, &server.address, &["--key", &ann]);
    refused(&try_it(), &["unknown", "`goodput key`"]);
    // The file is looked at once a second.
    let changes = |lines: &[&str], noticed: &str, times| {
        authorize(&home, lines);
        logged(&home, noticed, times);
    };
    changes(&[&line], "1 clients are known", 1);
    record(&try_it());
    changes(&["# ", &line], "0 clients are known", 1);
    refused(&try_it(), &["unknown", "`goodput key`"]);
    // What can't be read says nothing of anyone.
    changes(&[&line, "bob measure\n"], "line 2", 1);
    refused(&try_it(), &["its log"]);
    changes(&[&line], "1 clients are known", 2);
    record(&try_it());
    set_mode(&authorized(&home), 0o666);
    logged(&home, "chmod go-w", 1);
    refused(&try_it(), &["its log"]);
}

#[test]
fn a_server_with_a_token_says_what_it_wants_to_a_client_that_has_a_key() {
    let home = Home::new();
    home.run(&["key", "--name", "ann"]);
    let token = home.secret("token", TOKEN);
    let token = token.to_str().unwrap();
    let server = Server::start(&home, &["--token-file", token, "--require-credential"]);
    let words = ["requires a token", "your usual key", "knows no keys", "--token-file"];
    refused(&test(&home, &server.address, &[]), &words);
    assert!(moved(&record(&test(&home, &server.address, &["--token-file", token]))));
}

#[test]
fn the_usual_key_is_shown_to_servers_that_ask_and_to_those_that_are_known() {
    let home = Home::new();
    let line = stdout(&home.run(&["key", "--name", "ann"]));
    let open = Server::start(&home, &[]);
    // It knows no keys, and is measured anyway.
    assert!(moved(&record(&test(&home, &open.address, &[]))));
    refused(
        &test(&home, &open.address, &["--key", home.path().join("goodput/key").to_str().unwrap()]),
        &["--authorized-keys"],
    );
    drop(open);
    let list = authorize(&home, &[&line]);
    let server = Server::start(&home, &["--authorized-keys", &list]);
    assert!(moved(&record(&test(&home, &server.address, &[]))));
    // It was not asked for.
    logged(&home, "by=nobody", 1);
    let key = home.path().join("goodput/key");
    record(&test(&home, &server.address, &["--key", key.to_str().unwrap()]));
    record(&test(&home, &server.address, &[]));
    logged(&home, "by=key ann", 2);
    drop(server);
    let strict = Server::start(&home, &["--authorized-keys", &list, "--require-credential"]);
    assert!(moved(&record(&test(&home, &strict.address, &[]))));
}

#[test]
fn a_server_that_has_no_keys_any_more_is_measured_by_whoever_says_so() {
    let home = Home::new();
    let line = stdout(&home.run(&["key", "--name", "ann"]));
    let key = home.path().join("goodput/key");
    let key = key.to_str().unwrap();
    let list = authorize(&home, &[&line]);
    let server = Server::start(&home, &["--authorized-keys", &list]);
    record(&test(&home, &server.address, &["--key", key]));
    let open = Server::start(&home, &[]);
    // As if it were at the place of the known one.
    let file = home.path().join("goodput/known_servers");
    let known = fs::read_to_string(&file).unwrap();
    assert!(known.contains(&server.address), "{known}");
    fs::write(&file, known.replace(&server.address, &open.address)).unwrap();
    // It is not believed that it is the same one.
    refused(&test(&home, &open.address, &[]), &["--authorized-keys", "--no-key"]);
    assert!(moved(&record(&test(&home, &open.address, &["--no-key"]))));
    assert!(moved(&record(&test(&home, &open.address, &["--no-key", "--key", key]))));
}

#[test]
fn a_server_with_another_key_is_not_measured() {
    let home = Home::new();
    let (ann, line) = key(&home, "ann", "measure");
    let list = authorize(&home, &[&line]);
    let server = Server::start(&home, &["--authorized-keys", &list]);
    let (_, other) = key(&home, "other", "measure");
    let other = other.split_whitespace().last().unwrap();
    let known = home.path().join("goodput");
    fs::create_dir_all(&known).unwrap();
    let known = known.join("known_servers");
    fs::write(&known, format!("{} {other}\n", server.address)).unwrap();
    let shown = format!("line 1 of {}", known.display());
    refused(&test(&home, &server.address, &["--key", &ann]), &[&shown, other, "administrator"]);
    refused(
        &test(&home, &server.address, &["--key", &ann, "--server-key", other]),
        &["--server-key"],
    );
    // Its true key, as its administrator reads it.
    let own = home.path().join("state/server.key");
    let own = stdout(&home.run(&["key", "-o", own.to_str().unwrap()]));
    let own = own.split_whitespace().last().unwrap();
    record(&test(&home, &server.address, &["--key", &ann, "--server-key", own]));
    assert_eq!(fs::read_to_string(&known).unwrap().lines().count(), 1);
}

#[test]
fn only_the_role_of_settings_reaches_settings() {
    let home = Home::new();
    let (ann, measure) = key(&home, "ann", "measure");
    let (ops, settings) = key(&home, "ops", "settings");
    let token = home.secret("token", TOKEN);
    let token = token.to_str().unwrap();
    let list = authorize(&home, &[&measure, &settings]);
    let options = [
        "--authorized-keys",
        &list,
        "--token-file",
        token,
        "--allow-settings",
        "sysctl.net.ipv4.*",
    ];
    let server = Server::start(&home, &options);
    // A setting that no client may reach, so that nothing is changed in any case.
    let setting = "far:sysctl.net.ipv4.ip_forward=0,1";
    for (credential, why) in [
        (["--key", &ann], "key ann is for measuring only"),
        (["--token-file", token], "the token is for measuring only"),
        (["--key", &ops], "never access this setting"),
    ] {
        let compare = ["compare", &server.address, setting, "--no-store", "-t", "1"];
        refused(&home.run(&[&compare[..], &credential].concat()), &[why]);
    }
    for who in ["by key ann", "by the token", "by key ops"] {
        logged(&home, who, 1);
    }
}

#[test]
fn the_log_says_what_became_of_a_change() {
    let home = Home::new();
    let (ops, settings) = key(&home, "ops", "settings");
    let list = authorize(&home, &[&settings]);
    let options = ["--authorized-keys", &list, "--allow-settings", "link.txqueuelen@*"];
    let server = Server::start(&home, &options);
    let setting = "far:link.txqueuelen@nosuch0=500,1000";
    let compare = ["compare", &server.address, setting, "--no-store", "-t", "1", "--key", &ops];
    let output = home.run(&compare);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    logged(&home, "setting: change link.txqueuelen@nosuch0 to ", 1);
    logged(&home, " by key ops: failed: ", 1);
    let log = fs::read_to_string(home.path().join("server.log")).expect("the server has a log");
    assert!(!log.contains("SettingRef"), "{log}");
}

#[test]
fn a_key_has_limits_of_its_own() {
    let home = Home::new();
    let (ann, line) = key(&home, "ann", "measure");
    let (bob, other) = key(&home, "bob", "measure");
    let lines = [
        format!("{} max-duration=2m max-rate=20mbit\n", line.trim()),
        format!("{} from=203.0.113.0/24\n", other.trim()),
    ];
    let list = authorize(&home, &[&lines[0], &lines[1]]);
    let server = Server::start(&home, &["--authorized-keys", &list, "--max-duration", "1"]);
    let long = |more: &[&str]| {
        let test = ["test", &server.address, "--json", "--no-store", "-t", "2"];
        home.run(&[&test[..], more].concat())
    };
    assert!(stderr(&long(&[])).contains("refused"));
    // From the server, because what a receiver leaves in its buffers still comes after the end.
    let measured = record(&long(&["--key", &ann, "--reverse"]));
    let direction = &measured.result.directions[0];
    let bytes = direction.received_bytes.value().copied().expect("this end knows");
    assert!(moved(&measured) && bytes < 20_000_000 / 8 * 4, "{bytes} bytes in 2 s");
    // A plan of bytes names no time, and the key's own holds for it as well: this takes about 7 s.
    let sized = ["test", &server.address, "--json", "--no-store", "-n", "16M", "--key", &ann, "-R"];
    let measured = record(&home.run(&sized));
    let bytes = measured.result.directions[0].received_bytes.value().copied();
    assert_eq!(bytes, Some(16 << 20), "all of it, long after the server's own limit");
    assert!(stderr(&long(&["--key", &bob])).contains("refused"), "it comes from elsewhere");
    logged(&home, "the key of bob may not be used from 127.0.0.1", 1);
}

#[test]
fn a_list_that_cannot_be_trusted_keeps_the_server_from_starting() {
    let home = Home::new();
    let (_, line) = key(&home, "ann", "measure");
    let start = |list: &Path| {
        let list = list.to_str().expect("temporary directories have plain names");
        home.run(&["serve", "--bind", "127.0.0.1", "--port", "0", "--authorized-keys", list])
    };
    let list = home.file("list", &line);
    for (content, mode, word) in
        [(line.as_str(), 0o666, "chmod go-w"), ("ann measure\n", 0o644, "line 1")]
    {
        fs::write(&list, content).unwrap();
        set_mode(&list, mode);
        let output = start(&list);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{word} in {}", stderr(&output));
    }
    if !rustix::process::geteuid().is_root() {
        // Then the server stays the user whose file it is.
        return;
    }
    fs::write(&list, &line).unwrap();
    set_mode(&list, 0o600);
    assert!(stderr(&start(&list)).contains("chmod 644"), "{}", stderr(&start(&list)));
}

#[test]
fn a_token_that_comes_from_a_pipe_is_waited_for_and_the_user_is_informed() {
    let home = Home::new();
    let token = home.secret("token", TOKEN);
    let server = Server::start(&home, &["--token-file", token.to_str().expect("it is UTF-8")]);
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    let pipe_text = pipe.to_str().expect("it is UTF-8");
    let arguments = ["test", &server.address, "--no-store", "-n", "1M", "--token-file", pipe_text];
    let mut command = home.goodput(&arguments);
    let mut client =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(client.stderr.take().expect("it is piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it is text");
    assert!(first.contains("waiting for the token") && first.contains(pipe_text), "{first}");
    fs::write(&pipe, TOKEN).expect("the client reads");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it is text");
    assert!(client.wait().expect("it is a child").success(), "{rest}");
}
