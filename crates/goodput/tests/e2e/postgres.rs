//! The history in a database of PostgreSQL: what every command keeps there, and what it says if the database is away.

use goodput_model::{BitRate, Known, Record};
use goodput_store::{Place, Store, read_record};
use goodput_testing::servers::{own_postgres, postgres};

use crate::common::{Home, Server, record, stderr, stdout};

/// A test from one site to another; c sends slowly.
fn between(from: &str, to: &str) -> Record {
    let json = include_str!("../../src/report/example/record.json");
    let mut record = read_record(json).expect("the example is a record");
    record.started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (end, name) in [(&mut record.ends.near, from), (&mut record.ends.far, to)] {
        let Known::Value(end) = end else { panic!("the example has both ends") };
        end.host.name = name.into();
    }
    let rate = if from == "c" { 3e8 } else { 9e8 };
    record.result.directions[0].goodput_bits_per_s = BitRate(rate);
    record
}

#[test]
fn a_result_is_kept_in_a_database_and_every_command_finds_it_there() {
    let Some(database) = postgres() else { return };
    let url = database.url(&database.new_database());
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let run = |words: &[&str]| {
        let output = home.goodput(words).env("GOODPUT_STORE", &url).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let kept = home.run(&["test", &server.address, "-n", "1M", "--store", &url]);
    assert!(kept.status.success(), "{}", stderr(&kept));
    assert!(run(&["history"]).contains(&server.address));
    record(&home.run(&["history", "last", "--json", "--store", &url]));
    run(&["watch", &server.address, "--once", "--max-time", "1s", "--keep", "1d"]);
    let listed = run(&["history", "--target", &server.address]);
    assert!(listed.lines().any(|line| line.starts_with('2') && line.contains("watch")), "{listed}");
    let page = home.path().join("page.html");
    run(&["report", "1", "-o", page.to_str().unwrap()]);
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
    let file = home.file("results.json", &run(&["history", "export", "--json"]));
    assert!(run(&["history", "import", file.to_str().unwrap()]).contains("already"));
    assert!(run(&["history", "prune", "--keep", "1d"]).starts_with("deleted 0 results"));
    assert!(!home.path().join("goodput/history.db").exists(), "nothing is kept beside it");
}

#[test]
fn the_matrix_of_a_mesh_is_read_from_a_database() {
    let Some(database) = postgres() else { return };
    let url = database.url(&database.new_database());
    let store = Store::open(Place::named(url.as_ref()).unwrap()).unwrap();
    let sites = ["a", "b", "c", "d", "e"];
    for (from, to) in sites.iter().flat_map(|from| sites.iter().map(move |to| (from, to))) {
        if from != to {
            store.add(&between(from, to)).unwrap();
        }
    }
    let output = Home::new().run(&["fleet", "matrix", "--store", &url]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("5 sites, 20 of 20 pairs tested"), "{text}");
    assert!(text.contains("c's sending side explains 4 of 4 slow pairs"), "{text}");
}

#[test]
fn a_result_is_printed_although_the_database_is_away() {
    let Some(database) = own_postgres() else { return };
    let url = database.tcp_url(&database.new_database(), "secret%2Fword");
    database.stop();
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = home.run(&["test", &server.address, "-n", "1M", "--store", &url]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("goodput"), "{}", stdout(&output));
    let said = stderr(&output);
    for words in [
        "the result above was not saved: can't open the history in postgres://goodput@127.0.0.1:",
        "is PostgreSQL running",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("secret"), "{said}");
    let listed = home.run(&["history", "--store", &url]);
    assert_eq!(listed.status.code(), Some(2));
    assert!(stderr(&listed).contains("is PostgreSQL running"), "{}", stderr(&listed));
}

#[test]
fn a_url_that_names_no_database_is_refused_without_its_password() {
    let home = Home::new();
    for url in [
        "mysql://ada:secret@db/net",
        "postgres://ada:se@cret@db/net",
        "postgres://ada:secret@db/net?x=1",
    ] {
        for words in [&["history", "--store", url][..], &["test", "localhost", "--store", url]] {
            let output = home.run(words);
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            let said = stderr(&output);
            assert!(said.contains("postgres://USER@HOST/DATABASE"), "{said}");
            assert!(!said.contains("cret"), "{said}");
        }
    }
}
