//! Bad disks, bad files, no permission: an error in words, never a panic, never a lost record.

mod children;
mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use children::{CHILD_STORE, child};
use common::record;
use goodput_model::Record;
use goodput_store::{Old, Store, StoreError, Wanted, Watched};

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    fs::write(&path, "dear diary, ".repeat(1000)).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap().len(), 12_000);
}

#[test]
fn a_damaged_or_halved_database_is_an_error() {
    let damages: [fn(&mut Vec<u8>); 2] =
        [|bytes| bytes[4096..].fill(0x5a), |bytes| bytes.truncate(bytes.len() / 2)];
    for damage in damages {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let store = Store::open(&path).unwrap();
        for n in 0..50 {
            store.add(&record("192.0.2.7", f64::from(n))).unwrap();
        }
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let used = Store::open(&path).and_then(|store| store.list(100).map(drop));
        assert!(matches!(used, Err(StoreError::Corrupt { .. })), "{used:?}");
    }
}

/// Copies the files of a history as they are while it is open, as a power cut would leave them.
fn copy_of(path: &Path, to: &Path) {
    let made = to.parent().map(fs::create_dir_all);
    assert!(made.is_some_and(|made| made.is_ok()), "{}", to.display());
    for end in ["", "-wal"] {
        let file = |path: &Path| format!("{}{end}", path.display());
        fs::copy(file(path), file(to)).expect("the history can be copied");
    }
}

#[test]
fn what_was_written_by_half_when_the_power_went_is_gone_and_the_rest_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    for n in 0..3 {
        store.add(&record("192.0.2.7", f64::from(n))).unwrap();
    }
    let length = fs::metadata(directory.path().join("history.db-wal")).unwrap().len();
    let mut seen = [0; 4];
    for part in 0..=20 {
        let torn = directory.path().join(format!("{part}/history.db"));
        copy_of(&path, &torn);
        let log = fs::OpenOptions::new().write(true).open(format!("{}-wal", torn.display()));
        log.unwrap().set_len(length * part / 20).unwrap();
        let kept = Store::open(&torn).unwrap().list(10).unwrap();
        let targets = kept.iter().filter(|entry| entry.target == "192.0.2.7").count();
        assert_eq!(targets, kept.len());
        seen[kept.len()] += 1;
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

#[test]
fn a_database_of_another_program_or_a_newer_goodput_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("foreign.db");
    let db = rusqlite::Connection::open(&foreign).unwrap();
    db.execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let error = Store::open(&foreign).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");

    let newer = directory.path().join("newer.db");
    drop(Store::open(&newer).unwrap());
    let db = rusqlite::Connection::open(&newer).unwrap();
    db.execute_batch("PRAGMA user_version = 1000").unwrap();
    let error = Store::open(&newer).unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 1000, .. }), "{error}");
}

#[test]
fn a_directory_in_the_way_and_a_file_as_directory_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = Store::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("not a file"), "{error}");
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("goodput/history.db")).unwrap_err().to_string();
    assert!(
        error.contains("can't make the directory") && error.contains("XDG_DATA_HOME"),
        "{error}"
    );
}

#[test]
fn who_only_reads_makes_no_file_and_sees_the_one_that_is_made_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("goodput/history.db");
    let reader = Store::open_to_read(&path).unwrap();
    assert_eq!(reader.list(10).unwrap(), []);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    Store::open(&path).unwrap().add(&record("192.0.2.7", 1e9)).unwrap();
    assert!(!reader.is_in_place());
    assert_eq!(Store::open_to_read(&path).unwrap().list(10).unwrap().len(), 1);
}

#[test]
fn a_link_is_not_followed_whether_it_leads_anywhere_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let (path, precious) = (directory.path().join("history.db"), directory.path().join("precious"));
    symlink(&precious, &path).unwrap();
    for _ in 0..2 {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Link { .. }), "{error}");
        assert!(!precious.exists() || fs::read(&precious).unwrap().is_empty());
        fs::write(&precious, "").unwrap();
    }
}

#[test]
fn a_directory_may_be_reached_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("real")).unwrap();
    symlink("real", directory.path().join("link")).unwrap();
    drop(Store::open(&directory.path().join("link/history.db")).unwrap());
    assert!(directory.path().join("real/history.db").is_file());
}

#[test]
fn the_history_is_for_its_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("goodput/history.db");
    let store = Store::open(&path).unwrap();
    store.add(&record("192.0.2.7", 1e9)).unwrap();
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o775, 0o702] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let error = Store::open(&directory.path().join("history.db")).unwrap_err();
        assert!(matches!(error, StoreError::Untrusted { .. }), "{mode:o}: {error}");
    }
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).unwrap();
    drop(Store::open(&directory.path().join("history.db")).unwrap());
}

/// Runs `script` as root of its own mount namespace, if it may mount without anyone noticing.
/// `None`, after saying so, if that is not allowed here.
fn in_mount_namespace(script: &str, child: &Command) -> Option<Output> {
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"]);
        command
    };
    let allowed = unshared("mount -t tmpfs tmpfs /tmp").output().is_ok_and(|o| o.status.success());
    if !allowed {
        let needs = "unshare(1) and mounts in an own user namespace";
        goodput_testing::skip(needs);
        return None;
    }
    let mut command = unshared(script);
    command.arg(child.get_program()).args(child.get_args());
    let set = child.get_envs().filter_map(|(name, value)| Some((name, value?)));
    Some(command.envs(set).output().expect("unshare ran just before"))
}

/// Runs a child test on a history inside a directory over which `script` mounts something.
fn on_mount(name: &str, script: &str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("history.db");
    let script = format!("DIR='{}'; {script}", directory.path().display());
    let Some(output) = in_mount_namespace(&script, &child(name, &path)) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_full_disk_is_an_error_and_keeps_what_was_kept() {
    let script = r#"mount -t tmpfs -o size=512k tmpfs "$DIR"; "$@""#;
    on_mount("child_fills_the_disk", script);
}

#[test]
fn a_directory_that_can_not_be_written_is_an_error() {
    let script = r#"mount -t tmpfs -o ro tmpfs "$DIR"; "$@""#;
    on_mount("child_can_not_write", script);
}

#[test]
fn child_fills_the_disk() {
    let Some(path) = std::env::var_os(CHILD_STORE) else { return };
    let store = Store::open(Path::new(&path)).unwrap();
    let mut kept = 0;
    let error = loop {
        match store.add(&record("192.0.2.7", 1e9)) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert!(kept > 0 && !store.has_failed(), "room may be made again");
    assert_eq!(store.list(10_000).unwrap().len(), kept);
}

#[test]
fn child_can_not_write() {
    let Some(path) = std::env::var_os(CHILD_STORE) else { return };
    let error = Store::open(Path::new(&path)).unwrap_err().to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    assert!(error.contains("XDG_DATA_HOME"), "{error}");
    assert_eq!(
        Store::open_to_read(Path::new(&path)).unwrap().list(10).unwrap(),
        [],
        "none is kept"
    );
}

/// Environment variable that tells a child of the test below what to leave.
const LEFT: &str = "GOODPUT_TEST_LEFT";

#[test]
fn a_history_is_read_where_nothing_can_be_written() {
    let read_only = r#"mount -o remount,ro "$DIR""#;
    let without_index = r#"rm "$DIR"/history.db-shm"#;
    let full = r#"cat /dev/zero 2>/dev/null >"$DIR/others" || true"#;
    // Closed; as a crash leaves it; the same, copied without the index of the log; by goodputs of older schemas.
    for (left, then, trouble, read) in [
        ("closed", "true", read_only, "read"),
        ("open", "true", read_only, "read"),
        ("open", without_index, read_only, "read"),
        ("closed", "true", full, "read-full"),
        ("open", without_index, full, "read-full"),
        ("old", "true", read_only, "refuse"),
        ("before-indexes", "true", read_only, "read-old"),
        ("before-additions", "true", read_only, "read-old"),
        ("before-additions", "true", full, "read-old"),
    ] {
        let script = format!(
            r#"mount -t tmpfs -o size=1m tmpfs "$DIR"; {LEFT}={left} "$@"; {then}; {trouble}; {LEFT}={read} "$@""#
        );
        on_mount("child_leaves_a_history_or_reads_it", &script);
    }
}

#[test]
fn child_leaves_a_history_or_reads_it() {
    let (Some(path), Ok(left)) = (std::env::var_os(CHILD_STORE), std::env::var(LEFT)) else {
        return;
    };
    let path = Path::new(&path);
    match left.as_str() {
        "refuse" => {
            let error = Store::open_to_read(path).unwrap_err().to_string();
            assert!(error.contains("writable directory"), "{error}");
        }
        "read" | "read-full" => {
            let store = Store::open_to_read(path).unwrap();
            assert_eq!(store.list(10).unwrap().len(), 3);
            assert_eq!(store.get(3).unwrap().target, "192.0.2.7");
            assert!(store.add(&record("192.0.2.7", 1e9)).is_err());
            let error = Store::open(path).err();
            let is_full = matches!(error, Some(StoreError::DiskFull { .. }));
            assert!(is_full || left == "read", "{error:?}");
            assert!(store.is_read_without().is_none());
        }
        "read-old" => read_old(path),
        "many" => fill(path, |store, record| store.add(record)),
        "many-watched" => {
            let watched = Watched { plan: "{}".into(), goodput: None };
            fill(path, |store, record| store.add_watched(record, &watched));
        }
        "delete" => delete_without_room(path, &Old::Before("2026-01-21".into())),
        "delete-watched" => delete_without_room(path, &Old::Watched(80)),
        left => leave(path, left),
    }
}

#[test]
fn old_records_are_deleted_on_a_disk_without_a_free_byte() {
    for (left, delete) in [("many", "delete"), ("many-watched", "delete-watched")] {
        let script = format!(
            r#"mount -t tmpfs -o size=8m tmpfs "$DIR"; {LEFT}={left} "$@"; cat /dev/zero 2>/dev/null >"$DIR/others" || true
               {LEFT}={delete} "$@""#
        );
        on_mount("child_leaves_a_history_or_reads_it", &script);
    }
}

/// Four records on each of 25 days.
fn fill(path: &Path, add: impl Fn(&Store, &Record) -> Result<i64, StoreError>) {
    let store = Store::open(path).expect("the history of the test works");
    for n in 0..100 {
        let started = format!("2026-01-{:02}T{:02}:00:00Z", 1 + n / 4, n % 4);
        let kept = Record { started, ..record("192.0.2.7", f64::from(n)) };
        add(&store, &kept).expect("the history of the test works");
    }
}

fn delete_without_room(path: &Path, old: &Old) {
    let mut deleted = 0;
    // Each time there is more room for the log.
    loop {
        match Store::open(path).and_then(|store| store.delete(old)) {
            Ok(0) => break,
            Ok(some) => deleted += some,
            Err(why) => {
                assert!(why.is_full_disk(), "{why}");
                let first = Store::make_room(path, old).expect("it needs no room");
                assert!(first > 0, "{deleted} deleted");
                deleted += first;
            }
        }
    }
    assert!(deleted == 80, "{deleted}");
    let store = Store::open(path).expect("there is room");
    assert_eq!(store.list(100).expect("it can be read").len(), 20);
    assert_eq!(store.days(&Wanted::default()).expect("it can be read").len(), 20);
    assert_eq!(store.get(100).expect("it is there").target, "192.0.2.7");
}

/// A history that can't get the tables and indexes of this goodput.
fn read_old(path: &Path) {
    let why = Store::open(path).expect_err("nothing can be written").to_string();
    let store = Store::open_to_read(path).expect("it can be read");
    let said = store.is_read_without().map(ToString::to_string);
    assert_eq!(said.as_ref(), Some(&why));
    assert!(why.contains("name another file with --store") || why.contains("make room"), "{why}");
    let ids = |wanted: &Wanted| {
        let found = store.search(wanted).expect("it can be read");
        found.iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    let target = Some("192.0.2.7".to_owned());
    assert_eq!(ids(&Wanted::default()), [2, 3, 1], "by the times of the tests");
    assert_eq!(ids(&Wanted { target: target.clone(), limit: 1, ..Wanted::default() }), [2]);
    assert_eq!(ids(&Wanted { watched: true, ..Wanted::default() }), [0_i64; 0]);
    assert_eq!(store.get(3).expect("it is there").target, "192.0.2.7");
    assert_eq!(store.targets().expect("it can be read"), ["192.0.2.7"]);
    assert_eq!(store.days(&Wanted::default()).expect("it can be read"), []);
    assert_eq!(store.changes("", 9).expect("it can be read"), []);
    assert_eq!(store.shifts("", 9).expect("it can be read"), []);
    assert_eq!(store.tests_of("192.0.2.7", "{}", 9).expect("it can be read"), []);
    store.add(&record("192.0.2.7", 1e9)).expect_err("nothing can be written");
}

/// Takes away what goodputs added later: the indexes by time, or everything since the schema 5.
fn make_older(path: &Path, left: &str) {
    let indexes = "DROP INDEX records_by_time; DROP INDEX records_of_target; DROP TRIGGER measured_goes; \
                   DROP TABLE measured; DROP TRIGGER outlines_go; DROP TABLE outlines;";
    let tables = ["described", "changes", "gone", "keyed", "figures", "days", "shifts", "schema"];
    let without_tables: String = tables.iter().map(|name| format!("DROP TABLE {name};")).collect();
    let triggers = ["described_goes", "changes_go", "keyed_goes", "figures_go", "shifts_go"];
    let without_triggers: String =
        triggers.iter().map(|name| format!("DROP TRIGGER {name};")).collect();
    let db = rusqlite::Connection::open(path).expect("the history of the test works");
    let change = match left {
        "before-indexes" => format!("{indexes} UPDATE schema SET number = 11"),
        _ => format!("{indexes} {without_triggers} {without_tables}"),
    };
    db.execute_batch(&change).expect("the history of the test works");
}

fn leave(path: &Path, left: &str) {
    let store = Store::open(path).expect("the history of the test works");
    for (n, day) in ["01", "03", "02"].into_iter().enumerate() {
        let started = format!("2026-01-{day}T12:00:00Z");
        let kept = Record { started, ..record("192.0.2.7", n as f64) };
        store.add(&kept).expect("the history of the test works");
    }
    match left {
        // Its log stays, as after a power cut.
        "open" => std::mem::forget(store),
        "old" => {
            drop(store);
            let db = rusqlite::Connection::open(path).expect("the history of the test works");
            db.execute_batch("DROP TABLE schema; PRAGMA user_version = 4")
                .expect("the history of the test works");
        }
        "before-indexes" | "before-additions" => {
            drop(store);
            make_older(path, left);
        }
        _ => {}
    }
}

#[test]
fn a_history_that_was_moved_away_or_damaged_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    store.add(&record("192.0.2.7", 1e9)).unwrap();
    assert!(store.is_in_place() && !store.has_failed());
    fs::rename(&path, path.with_file_name("away.db")).unwrap();
    assert!(!store.is_in_place());
    drop(Store::open(&path).unwrap());
    assert!(!store.is_in_place(), "another one stands there");
    drop(store);

    let store = Store::open(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len() as usize;
    file.write_all_at(&vec![0x5a; length], 0).unwrap();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    let used = store.add(&record("192.0.2.7", 1e9));
    assert!(used.is_err() && store.has_failed() && store.is_in_place(), "{used:?}");
}
