//! What an end opens, and what it refuses.

use goodput_model::{Cache, Sink, Storage};

use super::*;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("goodput-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    }

    fn served(&self) -> FileAccess {
        let sinks = Sinks::new(self.0.clone(), 1000, 1 << 20);
        FileAccess::Served(ServedFiles { files: Some(self.0.clone()), sinks: Some(sinks) })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sending(name: &str) -> Plan {
    let source = Some(Source::File { name: name.into(), cache: Cache::Warm });
    let storage = Storage { source, ..Storage::default() };
    Plan { storage, length: Length::Source, ..Plan::standard() }
}

fn receiving(name: &str, flows: u16) -> Plan {
    let sink = Some(Sink { name: name.into(), direct: false, fsync: false });
    let storage = Storage { sink, ..Storage::default() };
    Plan { storage, flows, ..Plan::standard() }
}

fn open(plan: &Plan, end: EndName, reach: &FileAccess) -> Result<OpenFiles, StorageError> {
    OpenFiles::open(plan, end, reach, &Waiter::default().awaited())
}

fn refused(plan: &Plan, end: EndName, reach: &FileAccess) -> String {
    open(plan, end, reach).expect_err("it is refused").to_string()
}

#[test]
fn a_file_is_opened_where_it_is_sent() {
    let directory = Directory::new("own");
    let plan = sending(&directory.file("big", b"content"));
    let mut stores = open(&plan, EndName::Near, &FileAccess::User).unwrap();
    let unawaited = Waiter::default().awaited();
    stores.make_ready(&plan, EndName::Near, &FileAccess::User, &unawaited).unwrap_err();
    let waiter = Waiter::default();
    stores.make_ready(&plan, EndName::Near, &FileAccess::User, &waiter.awaited()).unwrap();
    assert_eq!(stores.source_bytes(), Some(7));
    let mut before = Snapshot::default();
    stores.note(&mut before);
    assert_eq!(before.count("source.bytes"), Ok(7));
    assert_eq!(before.text("source.cache"), Ok("warm"));
    assert!(before.number("source.alone_bits_per_s").is_ok());
    let far = open(&plan, EndName::Far, &FileAccess::User).unwrap();
    assert_eq!(far.source_bytes(), None, "the near end's file");
}

#[test]
fn a_sink_is_written_alone_only_if_asked_and_empty_afterwards() {
    let directory = Directory::new("alone");
    let written_alone = |sink_alone: bool| {
        let mut plan = receiving(&directory.file("sink", b"old"), 1);
        plan.storage.sink_alone = sink_alone;
        plan.length = Length::Bytes(Bytes(100_000));
        let mut stores = open(&plan, EndName::Far, &FileAccess::User).unwrap();
        let waiter = Waiter::default();
        stores.make_ready(&plan, EndName::Far, &FileAccess::User, &waiter.awaited()).unwrap();
        let mut before = Snapshot::default();
        stores.note(&mut before);
        // Otherwise the first payload empties it.
        let holds: &[u8] = if sink_alone { b"" } else { b"old" };
        assert_eq!(std::fs::read(directory.0.join("sink")).unwrap(), holds);
        before.number("sink.alone_bits_per_s").is_ok()
    };
    assert!(written_alone(true) && !written_alone(false));
}

#[test]
fn a_sink_is_written_alone_without_its_old_content() {
    let directory = Directory::new("anew");
    let mut plan = receiving(&directory.file("sink", &[7; 300_000]), 1);
    plan.length = Length::Bytes(Bytes(100_000));
    let stores = open(&plan, EndName::Far, &FileAccess::User).unwrap();
    let (_, sink) = stores.sinks.first().expect("there is one");
    let waiter = Waiter::default();
    super::ready::write_sink_alone(sink, &plan, &waiter.awaited()).unwrap();
    let holds = std::fs::read(directory.0.join("sink")).unwrap();
    assert!(holds.len() <= 100_000, "{} bytes: the old content lay under it", holds.len());
}

#[test]
fn what_is_written_alone_is_not_taken_from_a_clients_allowance() {
    let directory = Directory::new("allowed");
    // 1000 bytes each: less than one block, so nothing is written, and the flow has all of them.
    let served = directory.served();
    let mut plan = receiving("sink", 1);
    plan.storage.sink_alone = true;
    let mut stores = open(&plan, EndName::Far, &served).unwrap();
    let waiter = Waiter::default();
    stores.make_ready(&plan, EndName::Far, &served, &waiter.awaited()).unwrap();
    let flow = stores.of(&plan, 0, Role::Receiver).sink.expect("there is a sink");
    let allowance = flow.allowance.as_ref().expect("a client's sink has one");
    assert_eq!(allowance.take(1000), Ok(()));
    let mut before = Snapshot::default();
    stores.note(&mut before);
    assert!(before.number("sink.alone_bits_per_s").is_err());
}

#[test]
fn what_can_not_be_sent_is_reported() {
    let directory = Directory::new("bad");
    let near = |name: &str| refused(&sending(name), EndName::Near, &FileAccess::User);
    assert!(near("/no/such/file").contains("can't read /no/such/file"));
    assert!(near(&directory.file("empty", b"")).contains("is empty"));
    assert!(near(directory.0.to_str().unwrap()).contains("is a directory"));
}

fn reverse(name: &str) -> Plan {
    Plan { direction: goodput_model::Direction::Reverse, ..sending(name) }
}

#[test]
fn a_server_sends_only_what_is_beneath_its_directory() {
    let directory = Directory::new("served");
    directory.file("big", b"content");
    std::os::unix::fs::symlink("/etc/passwd", directory.0.join("link")).unwrap();
    let served = directory.served();
    assert!(open(&reverse("big"), EndName::Far, &served).is_ok());
    for name in ["/etc/passwd", "../../etc/passwd", "link", "missing", "."] {
        refused(&reverse(name), EndName::Far, &served);
    }
    let nothing = FileAccess::Served(ServedFiles::default());
    assert!(refused(&reverse("big"), EndName::Far, &nothing).contains("serve --files"));
    let input = Plan {
        storage: Storage { source: Some(Source::Input), ..Storage::default() },
        ..reverse("big")
    };
    assert!(refused(&input, EndName::Far, &served).contains("standard input"));
}

#[test]
fn a_server_writes_only_in_its_directory() {
    let directory = Directory::new("sinks");
    std::os::unix::fs::symlink("/tmp/goodput-elsewhere", directory.0.join("link")).unwrap();
    let served = directory.served();
    let sinks = |name: &str, flows| open(&receiving(name, flows), EndName::Far, &served);
    assert_eq!(sinks("copy", 2).unwrap().sinks.len(), 2);
    assert!(directory.0.join("copy.0").exists() && directory.0.join("copy.1").exists());
    assert!(sinks("link", 1).is_err() && sinks("../x", 1).is_err() && sinks("/x", 1).is_err());
    assert!(sinks("/dev/null", 3).is_ok(), "it keeps nothing");
    let nothing = FileAccess::Served(ServedFiles::default());
    let why = refused(&receiving("copy", 1), EndName::Far, &nothing);
    assert!(why.contains("serve --sinks"), "{why}");
}

/// If the file were looked up, the answer for an existing one would differ.
#[test]
fn a_client_learns_nothing_of_what_a_host_has() {
    let directory = Directory::new("nosy");
    let served = directory.served();
    for reach in [&served, &FileAccess::Served(ServedFiles::default())] {
        let said = |name: &str| refused(&receiving(name, 2), EndName::Far, reach).replace(name, "");
        assert_eq!(said("/dev/zero"), said("/no/such/file"));
        assert_eq!(said("/dev/zero"), said("/etc/passwd"));
    }
}

#[test]
fn another_protocol_learns_how_much_will_come() {
    let directory = Directory::new("foreign");
    let plan = Plan { flows: 3, ..sending(&directory.file("big", b"content")) };
    let near = open(&plan, EndName::Near, &FileAccess::User).unwrap();
    assert_eq!(for_memory_only(&plan, &near).unwrap().length, Length::Bytes(Bytes(21)));
    assert!(for_memory_only(&reverse("big"), &OpenFiles::default()).is_err());
    assert!(for_memory_only(&receiving("copy", 1), &OpenFiles::default()).is_err());
}

#[test]
fn the_names_of_the_near_end_stay_there() {
    let sent = for_peer(&sending("/home/me/big")).storage.source.unwrap();
    assert_eq!(sent.name(), "near");
    assert_eq!(for_peer(&reverse("big")).storage.source.unwrap().name(), "big");
}
