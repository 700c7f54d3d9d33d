//! What is printed and kept: JSON, streams, the history, expectations.

use goodput_model::{End, Record};
use goodput_store::Store;

use crate::common::{Home, Server, record, stderr, stdout};

#[test]
fn a_result_is_kept_and_shown_again() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for _ in 0..2 {
        let output = home.run(&["test", &server.address, "-t", "1"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let listed = stdout(&home.run(&["history"]));
    assert!(listed.contains(&server.address), "{listed}");
    let shown = stdout(&home.run(&["history", "1"]));
    assert!(shown.contains("limit"), "{shown}");
    let compared = stdout(&home.run(&["history", "1", "2"]));
    assert!(compared.contains("single runs prove nothing"), "{compared}");
    record(&home.run(&["history", "2", "--json"]));
    let unknown = home.run(&["history", "99"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
}

#[test]
fn a_record_that_cant_be_read_is_named_and_hides_no_other() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for _ in 0..3 {
        home.run(&["test", &server.address, "-n", "1M"]);
    }
    let db = rusqlite::Connection::open(home.path().join("goodput/history.db")).unwrap();
    let newer = "UPDATE records SET json = '{\"format\":99}', format = 99 WHERE id = 2";
    db.execute(newer, []).unwrap();
    db.execute("UPDATE records SET json = substr(json, 1, 2000) WHERE id = 3", []).unwrap();
    let listed = home.run(&["history"]);
    let text = stdout(&listed);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(listed.status.success() && text.matches(&server.address).count() == 3, "{text}");
    assert_eq!(words.matches("(can't be read: it has format 99").count(), 1, "{text}");
    let page = home.path().join("page.html");
    let page = page.to_str().unwrap();
    for (id, why) in [
        ("2", "can't read record 2: it has format 99, and this goodput knows up to 1: use a newer"),
        ("3", "can't read record 3: it is not a goodput record: "),
    ] {
        for words in [
            &["history", id][..],
            &["history", "1", id],
            &["history", id, "--json"],
            &["report", id, "-o", page],
            &["report", "1", id, "-o", page],
        ] {
            let output = home.run(words);
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            assert!(stderr(&output).contains(why), "{words:?}: {}", stderr(&output));
        }
    }
    assert!(home.run(&["report", "1", "-o", page]).status.success());
    let exported = home.run(&["history", "export", "--json"]);
    assert_eq!((exported.status.code(), stdout(&exported).lines().count()), (Some(2), 1));
}

#[test]
fn a_result_is_drawn_as_a_page_a_ticket_or_a_picture() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&["test", &server.address, "-t", "1", "--json"]);
    let kept = home.file("kept.json", &stdout(&output));
    let kept = kept.to_str().unwrap();
    let file = |name: &str| home.path().join(name);
    let report = |results: &[&str], name: &str, only: &[&str]| {
        let output = file(name);
        let options = ["-o", output.to_str().unwrap()];
        home.run(&[&["report"], results, &options, only].concat())
    };
    for (results, name) in
        [(&[][..], "last.html"), (&["1"], "one.html"), (&[kept, "last"], "two.html")]
    {
        let drawn = report(results, name, &[]);
        assert!(drawn.status.success(), "{}", stderr(&drawn));
        let page = std::fs::read_to_string(file(name)).unwrap();
        assert!(page.contains(&server.address) && page.contains("<svg"), "{page}");
    }
    assert!(report(&["last"], "ticket.md", &["--only", "rate"]).status.success());
    assert!(std::fs::read_to_string(file("ticket.md")).unwrap().contains("(ticket-rate.svg)"));
    assert!(std::fs::read_to_string(file("ticket-rate.svg")).unwrap().starts_with("<svg"));
    assert!(report(&["last"], "rate.svg", &["--only", "rate"]).status.success());
    assert!(report(&["last"], "all.svg", &[]).status.success());
    assert!(file("all-rate.svg").exists() && file("all-cpu-near.svg").exists());
    let wrong = [
        (report(&["1", "1"], "all.svg", &[]), "name one result"),
        (report(&["last"], "gaps.html", &["--only", "gaps"]), "gaps"),
        (report(&["last"], "page.pdf", &[]), "`.html`"),
        (report(&["987654"], "page.html", &[]), "987654"),
        (report(&["no-such-file"], "page.html", &[]), "`goodput history` lists"),
        (report(&["last"], "page.html", &["--only", "everything"]), "rate"),
    ];
    for (output, why) in wrong {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    let empty = Home::new();
    let output = empty.run(&["report", "-o", file("page.html").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no results are kept yet"), "{}", stderr(&output));
}

#[test]
fn a_report_that_no_disk_has_room_for_is_named_with_what_to_do() {
    let home = Home::new();
    let kept = include_str!("../../../charts/tests/records/window.json");
    let kept = home.file("kept.json", kept);
    let page = home.path().join("page.html");
    std::os::unix::fs::symlink("/dev/full", &page).unwrap();
    let output = home.run(&["report", kept.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("page.html: no space is left there; make room"), "{said}");
}

#[test]
fn pauses_between_datagrams_are_kept_and_drawn() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for more in [&[][..], &["--reverse"]] {
        let words = ["test", &server.address, "--udp", "--rate", "8mbit", "-n", "500K", "--json"];
        let ends = record(&home.run(&[&words[..], more].concat())).ends;
        let [near, far] = [&ends.near, &ends.far].map(|end| end.get().expect("it reported"));
        let (sender, receiver) = if more.is_empty() { (near, far) } else { (far, near) };
        let pauses = |end: &End| {
            end.gaps.as_ref().map(|gaps| gaps.histogram.iter().map(|bin| bin.count).sum())
        };
        assert_eq!(pauses(sender), None, "{more:?}: nothing came");
        // As many as datagrams, but for those that came in one packet.
        assert!(pauses(receiver).is_some_and(|count: u64| count > 10), "{more:?}");
        let picture = home.path().join("pauses.svg");
        let drawn = home.run(&["report", "--only", "gaps", "-o", picture.to_str().unwrap()]);
        assert!(drawn.status.success(), "{}", stderr(&drawn));
        assert!(std::fs::read_to_string(&picture).unwrap().contains("Pauses between datagrams"));
    }
}

#[test]
fn a_shaper_is_tested_although_an_earlier_test_cant_be_read() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let path = home.path().join("goodput/history.db");
    let text = include_str!("../../../charts/tests/records/shaping.json");
    let mut earlier = Record::from_json(text).unwrap();
    earlier.target.clone_from(&server.address);
    Store::open(&path).unwrap().add(&earlier).unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE records SET json = substr(json, 1, 1000)", []).unwrap();
    let output = home.run(&["shaping", &server.address, "--rate", "10mbit", "--json"]);
    let why = "goodput: not compared with an earlier test: can't read record 1: it is not a goodput record: ";
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    let tested: Record = serde_json::from_slice(&output.stdout).expect("it is one record");
    assert!(tested.shaping.is_some_and(|test| test.since.is_none()));
    let listed = stdout(&home.run(&["history"]));
    assert_eq!(listed.matches(&server.address).count(), 2, "{listed}");
}

#[test]
fn a_stream_is_one_event_a_line_with_the_record_last() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&["test", &server.address, "--json-stream", "--no-store", "-t", "1"]);
    let text = stdout(&output);
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let names: Vec<_> = events.iter().filter_map(|e| e["event"].as_str()).collect();
    assert_eq!(names.first(), Some(&"connected"));
    assert!(names.contains(&"interval"));
    assert_eq!(names.last(), Some(&"record"));
}

#[test]
fn a_missed_expectation_is_exit_one() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let test = |expect: &str| {
        home.run(&["test", &server.address, "--json", "--no-store", "-t", "1", "--expect", expect])
    };
    assert_eq!(test(">=1kbit").status.code(), Some(0));
    let missed = test(">=900tbit");
    assert_eq!(missed.status.code(), Some(1));
    assert!(stderr(&missed).contains("expected at least"), "{}", stderr(&missed));
}

#[test]
fn a_history_that_cannot_be_written_shows_before_the_time_is_spent() {
    let home = Home::new();
    let file = home.file("a-file", "");
    let output = home
        .goodput(&["test", "127.0.0.1:1", "-t", "1"])
        .env("XDG_DATA_HOME", &file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("will be printed, but not saved"), "{}", stderr(&output));
}

#[test]
fn completions_and_man_pages_come_from_the_command_line() {
    let home = Home::new();
    let bash = stdout(&home.run(&["generate", "completions", "bash"]));
    assert!(bash.contains("--reverse"));
    let man = home.path().join("man");
    assert!(home.run(&["generate", "man", man.to_str().unwrap()]).status.success());
    assert!(man.join("goodput-test.1").exists());
}

#[test]
fn every_registry_can_be_listed() {
    let home = Home::new();
    for (what, entry) in [
        ("rules", "shaper-burst"),
        ("settings", "qdisc.tbf.burst"),
        ("movers", "sendfile"),
        ("protocols", "goodput"),
        ("scenarios", "burst-too-small"),
    ] {
        let text = stdout(&home.run(&["list", what]));
        assert!(text.contains(entry), "{what}: {text}");
    }
}

#[test]
fn a_test_whose_history_is_damaged_is_made_and_printed_and_says_that_it_was_not_kept() {
    let home = Home::new();
    let server = Server::start(&Home::new(), &[]);
    std::fs::create_dir_all(home.path().join("goodput")).unwrap();
    let path = home.path().join("goodput/history.db");
    let diary = "dear diary, ".repeat(10_000);
    std::fs::write(&path, &diary).unwrap();
    let output = home.run(&["test", &server.address, "-n", "1M"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stdout(&output).contains("bit/s"), "{}", stdout(&output));
    let said = stderr(&output);
    for part in ["will be printed, but not saved", "was not saved: can't open", "--no-store"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), diary, "the file stays as it was");
    let without = home.run(&["test", &server.address, "-n", "1M", "--no-store"]);
    assert!(without.status.success(), "{}", stderr(&without));
    let watched = home.run(&["watch", "--once", &server.address, "-n", "1M"]);
    assert!(!stderr(&watched).contains("--no-store"), "{}", stderr(&watched));
}

#[test]
fn the_newest_result_has_a_name() {
    let home = Home::new();
    let empty = home.run(&["history", "last"]);
    assert!(stderr(&empty).contains("no results are kept yet"), "{}", stderr(&empty));
    let server = Server::start(&home, &[]);
    for _ in 0..2 {
        assert!(home.run(&["test", &server.address, "-n", "1M"]).status.success());
    }
    let newest = record(&home.run(&["history", "2", "--json"]));
    assert_eq!(record(&home.run(&["history", "last", "--json"])), newest);
    let wrong = home.run(&["history", "first"]);
    assert!(stderr(&wrong).contains("or last"), "{}", stderr(&wrong));
}
