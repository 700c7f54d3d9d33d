//! A history in PostgreSQL: every trouble is an error that names the database and says what to do, and no password.

mod children;
mod common;

use std::path::Path;
use std::thread;

use children::{CHILD_STORE, child};
use common::record;
use goodput_store::{Place, Store, StoreError, Watched};
use goodput_testing::servers::{Postgres, own_postgres, postgres};
use goodput_testing::wait_for;

fn open(url: &str) -> Result<Store, StoreError> {
    Store::open(Place::named(Path::new(url))?)
}

/// What opening a database ends with.
fn refused(url: &str) -> String {
    let why = open(url).expect_err("it is refused").to_string();
    assert!(why.starts_with("can't open the history in postgres://"), "{why}");
    why
}

#[test]
fn a_server_that_is_away_is_named_and_found_again_when_it_is_back() {
    let Some(server) = own_postgres() else { return };
    let url = server.url(&server.new_database());
    let store = open(&url).unwrap();
    let first = store.add(&record("nas", 1e6)).unwrap();
    server.stop();
    // The connection may be lost in the middle of this.
    let why = store.add(&record("nas", 2e6)).unwrap_err().to_string();
    assert!(why.contains("can't write to the history in postgres://goodput@"), "{why}");
    let why = store.add(&record("nas", 2e6)).unwrap_err().to_string();
    assert!(why.contains("is PostgreSQL running"), "{why}");
    assert!(refused(&url).contains("is PostgreSQL running"));
    server.start();
    let second = store.add(&record("nas", 3e6)).unwrap();
    assert!(second > first);
    assert_eq!(store.list(10).unwrap().len(), 2);
}

#[test]
fn a_connection_that_was_ended_while_nobody_used_it_is_opened_again() {
    let Some(server) = own_postgres() else { return };
    let store = open(&server.url(&server.new_database())).unwrap();
    store.add(&record("nas", 1e6)).unwrap();
    server.stop();
    server.start();
    store.add(&record("nas", 2e6)).unwrap();
    assert_eq!(store.list(10).unwrap().len(), 2);
}

#[test]
fn a_server_that_answers_nothing_is_given_up() {
    let Some(server) = own_postgres() else { return };
    let url = server.url(&server.new_database());
    server.freeze();
    let why = refused(&url);
    assert!(why.contains("longer than 6 s"), "{why}");
}

#[test]
fn tables_that_another_session_holds_are_waited_for_and_then_given_up() {
    let Some(server) = own_postgres() else { return };
    let name = server.new_database();
    let store = open(&server.url(&name)).unwrap();
    let held = server.hold(&name, "LOCK TABLE goodput.records");
    let why = store.add(&record("nas", 1e6)).unwrap_err().to_string();
    assert!(why.contains("lock timeout") && why.contains("try again"), "{why}");
    // Its connection is ended, and with it the locks that it may have had.
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'goodput'";
    wait_for("the connection to end", || server.sql(&name, ours) == "0");
    drop(held);
    store.add(&record("nas", 1e6)).unwrap();
}

#[test]
fn a_login_that_is_refused_says_where_passwords_are_taken_from_and_shows_none() {
    let Some(server) = postgres() else { return };
    let name = server.new_database();
    let why = refused(&format!("{}?sslmode=disable", server.tcp_url(&name, "wrong%2Fone")));
    assert!(why.contains("password authentication failed for user \"goodput\""), "{why}");
    assert!(why.contains("PGPASSWORD") && !why.contains("wrong"), "{why}");
    let none = server.tcp_url(&name, "").replace(":@", "@");
    let output = |variable: (&str, &str)| {
        let mut command = child("child_opens_the_database", Path::new(&none));
        command.env_remove("PGPASSWORD").env("HOME", "/nonexistent").env(variable.0, variable.1);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_open, said) = output(("PGPASSFILE", "/nonexistent"));
    assert!(!is_open && said.contains("~/.pgpass (mode 0600)"), "{said}");
    let (is_open, said) = output(("PGPASSWORD", server.password()));
    assert!(is_open, "{said}");
}

/// The body of the processes above; nothing if it is not one of them.
#[test]
fn child_opens_the_database() {
    if let Some(url) = std::env::var_os(CHILD_STORE) {
        let opened = open(url.to_str().unwrap());
        assert!(opened.is_ok(), "{}", opened.unwrap_err());
    }
}

#[test]
fn a_certificate_is_checked_by_the_authority_that_the_url_names() {
    let Some(server) = postgres() else { return };
    let url = server.tcp_url(&server.new_database(), server.password());
    let why = refused(&format!("{url}?sslmode=require"));
    assert!(why.contains("`?sslrootcert=FILE` in the URL"), "{why}");
    assert!(!why.contains("peer certificate") && !why.contains("UnknownIssuer"), "{why}");
    let certificate = server.certificate();
    let known = format!("{url}?sslmode=require&sslrootcert={}", certificate.display());
    open(&known).unwrap().add(&record("nas", 1e6)).unwrap();
}

/// Makes a user without rights to a new database; returns the database and the URL.
fn of_a_guest(server: &Postgres, guest: &str) -> (String, String) {
    let name = server.new_database();
    server.sql(&name, &format!("CREATE USER {guest}"));
    let url = server.url(&name).replace("goodput@", &format!("{guest}@"));
    (name, url)
}

#[test]
fn a_user_without_rights_is_told_which_to_ask_for() {
    let Some(server) = postgres() else { return };
    let (name, url) = of_a_guest(&server, "guest");
    let grant = format!("GRANT CREATE ON DATABASE \"{name}\" TO \"guest\"");
    let why = refused(&url);
    assert!(why.contains("permission denied for database") && why.contains(&grant), "{why}");
    // As the error says.
    server.sql(&name, &grant);
    open(&url).unwrap().add(&record("nas", 1e6)).unwrap();
}

#[test]
fn a_user_who_may_only_read_reads() {
    let Some(server) = postgres() else { return };
    let (name, url) = of_a_guest(&server, "reader");
    open(&server.url(&name)).unwrap().add(&record("nas", 1e6)).unwrap();
    let why = refused(&url);
    assert!(why.contains("permission denied for schema goodput"), "{why}");
    server.sql(
        &name,
        "GRANT USAGE ON SCHEMA goodput TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA goodput TO reader;
         ALTER DEFAULT PRIVILEGES FOR ROLE goodput IN SCHEMA goodput GRANT SELECT ON TABLES TO reader",
    );
    let store = Store::open_to_read(Place::named(Path::new(&url)).unwrap()).unwrap();
    assert_eq!(store.list(10).unwrap().len(), 1);
    let why = store.add(&record("nas", 1e6)).unwrap_err().to_string();
    assert!(why.contains("permission denied for table records"), "{why}");
}

#[test]
fn a_database_that_is_not_there_or_not_goodputs_is_named() {
    let Some(server) = postgres() else { return };
    let why = refused(&server.url("nowhere"));
    assert!(why.contains("\"nowhere\" does not exist; `createdb nowhere` makes it"), "{why}");

    let foreign = server.new_database();
    server.sql(&foreign, "CREATE SCHEMA goodput; CREATE TABLE goodput.bookmarks (url text)");
    let why = refused(&server.url(&foreign));
    assert!(why.contains("tables of another program"), "{why}");
    server.sql(&foreign, "CREATE TABLE goodput.schema (name text)");
    let why = refused(&server.url(&foreign));
    assert!(why.contains("tables of another program"), "{why}");

    let newer = server.new_database();
    drop(open(&server.url(&newer)).unwrap());
    server.sql(&newer, "UPDATE goodput.schema SET number = 9, needed = 9");
    let why = refused(&server.url(&newer));
    assert!(why.contains("it has schema 9") && why.contains("use a newer goodput"), "{why}");
    server.sql(&newer, "UPDATE goodput.schema SET needed = 1");
    open(&server.url(&newer)).unwrap().add(&record("nas", 1e6)).unwrap();

    server.sql("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'");
    let why = refused(&server.url("latin"));
    assert!(why.contains("its encoding is LATIN1; make a database"), "{why}");
}

#[test]
fn tables_that_someone_dropped_are_made_again_after_an_error() {
    let Some(server) = postgres() else { return };
    let name = server.new_database();
    let store = open(&server.url(&name)).unwrap();
    server.sql(&name, "DROP SCHEMA goodput CASCADE");
    let why = store.add(&record("nas", 1e6)).unwrap_err().to_string();
    assert!(why.contains("someone changed its tables"), "{why}");
    store.add(&record("nas", 1e6)).unwrap();
}

/// `goodput fleet run` keeps records from within its tasks.
#[test]
fn a_history_is_used_and_closed_within_asynchronous_code() {
    let Some(server) = postgres() else { return };
    let url = server.url(&server.new_database());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(&url).unwrap();
        assert_eq!(store.add(&record("nas", 1e6)).unwrap(), 1);
    });
}

/// Hosts that share a database have series and budgets of their own.
#[test]
fn the_watches_of_another_host_are_left_alone() {
    let Some(server) = postgres() else { return };
    let name = server.new_database();
    let store = open(&server.url(&name)).unwrap();
    let watched = Watched { plan: "{}".into(), goodput: None };
    let theirs = store.add_watched(&record("nas", 1e6), &watched).unwrap();
    store.spend("nas", "2026", 7).unwrap();
    server.sql(
        &name,
        "UPDATE goodput.series SET host = 'other'; UPDATE goodput.spent SET host = 'other'",
    );
    let ours = store.add_watched(&record("nas", 2e6), &watched).unwrap();
    assert_eq!(store.series().unwrap().len(), 1);
    assert_eq!(store.spent("nas", "2026").unwrap(), []);
    let times = store.watched_times().unwrap();
    assert_eq!(times.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ours]);
    assert_eq!(store.delete_watched(i64::MAX).unwrap(), 1);
    assert!(store.get(theirs).is_ok() && store.get(ours).is_err());
}

/// As `goodput history prune` does: two that took them in other orders would wait for each other in a circle.
#[test]
fn what_was_spent_is_locked_after_the_records_of_a_watch() {
    let Some(server) = postgres() else { return };
    let name = server.new_database();
    let url = server.url(&name);
    let store = open(&url).unwrap();
    let watched = Watched { plan: "{}".into(), goodput: None };
    store.add_watched(&record("nas", 1e6), &watched).unwrap();
    store.spend("nas", "2001-01-01T10:00:00Z", 7).unwrap();
    thread::scope(|scope| {
        let other = server.hold(&name, "DELETE FROM goodput.records");
        let deleting = scope.spawn(|| open(&url).unwrap().delete_watched(i64::MAX).unwrap());
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        wait_for("the deletion to wait for the record", || server.sql(&name, waiting) == "1");
        server.sql(&name, "SELECT id FROM goodput.spent FOR UPDATE NOWAIT");
        drop(other);
        assert_eq!(deleting.join().unwrap(), 1);
    });
    assert_eq!(store.spent("nas", "2001").unwrap(), []);
}
