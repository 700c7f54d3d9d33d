//! Files that are stored at NFS servers and removed.

use std::io::ErrorKind;
use std::os::fd::AsFd;

use goodput_files::{Conversation, FileError, NfsOptions, Wait};

use crate::server::{Manner, Server};
use crate::{Patient, converse, ready_at};

fn writes(write_bytes: u32, slots: u16) -> NfsOptions {
    NfsOptions { write_bytes: Some(write_bytes), slots: Some(slots), ..NfsOptions::default() }
}

/// Payload whose bytes say where they belong.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
}

/// Stores all of it, in pieces.
fn store(
    conversation: &mut dyn Conversation,
    payload: &[u8],
    announced: bool,
    piece: usize,
) -> Result<(), String> {
    let text = |why: FileError| why.to_string();
    let bytes = announced.then_some(payload.len() as u64);
    conversation.store(bytes, &Patient).map_err(text)?;
    let mut left = payload;
    while !left.is_empty() {
        match conversation.write(&left[..left.len().min(piece)]) {
            Ok(written) => left = &left[written..],
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                let socket = conversation.socket().expect("there is one").as_fd();
                Patient
                    .wait(socket, conversation.awaits(), ready_at(conversation))
                    .map_err(text)?;
            }
            Err(why) => return Err(why.to_string()),
        }
    }
    conversation.stored(&Patient).map_err(text)
}

#[test]
fn a_file_is_stored_again_and_again_on_one_connection_and_removed() {
    for (write_bytes, slots, bytes, piece, announced) in [
        (1000, 1, 10_001, 333, true),
        (999, 8, 100_000, 10_000, true),
        (65536, 64, 1_000_003, 131_072, true),
        // More than the server allows.
        (1 << 20, 1, 100_000, 10_000, true),
        (4096, 4, 30_001, 7001, false),
    ] {
        let server = Server::start(Manner::Honest);
        let mut conversation = converse(&server, "/export/new", writes(write_bytes, slots));
        conversation.connect(&Patient).expect("it connects");
        assert!(server.stored().is_none(), "nothing is stored before it is asked for");
        for times in 1..=2 {
            let payload = payload(bytes / times);
            store(conversation.as_mut(), &payload, announced, piece).expect("it is stored");
            let stored = server.stored().expect("it is there");
            assert!(stored.bytes == payload, "all of it, and nothing of what was there before");
            assert_eq!(stored.commits as usize, times);
        }
        let calls = conversation.rpcs().expect("it makes calls").so_far();
        let write_bytes = write_bytes.min(65536);
        assert_eq!((calls.call_bytes, calls.slots, calls.short), (write_bytes, slots, 0));
        assert_eq!(calls.stored_bytes, (bytes + bytes / 2) as u64);
        assert_eq!(calls.answered, u64::from(server.stored().expect("it is there").writes));
        assert_eq!(conversation.remove(&Patient).ok(), Some(true));
        assert_eq!(conversation.remove(&Patient).ok(), Some(false), "it is gone");
        assert!(server.stored().is_none() && server.mounted() == 0);
    }
}

#[test]
fn a_server_that_says_no_handle_is_asked_for_it() {
    let server = Server::start(Manner::NamelessCreate);
    let mut conversation = converse(&server, "/export/new", writes(1000, 2));
    store(conversation.as_mut(), &payload(5000), true, 1000).expect("it is stored");
    assert_eq!(server.stored().expect("it is there").bytes.len(), 5000);
}

#[test]
fn what_a_server_did_not_write_is_not_counted() {
    let server = Server::start(Manner::WritesShort(700));
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    store(conversation.as_mut(), &payload(10_000), true, 10_000).expect("it is stored");
    let calls = conversation.rpcs().expect("it makes calls").so_far();
    assert_eq!((calls.stored_bytes, calls.short), (7000, 10));
}

#[test]
fn what_a_server_puts_off_is_not_counted_and_the_rest_is_written_later() {
    let server = Server::start(Manner::Later { every: 10 });
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    store(conversation.as_mut(), &payload(50_000), true, 10_000).expect("it is stored");
    let calls = conversation.rpcs().expect("it makes calls").so_far();
    assert!(calls.put_off >= 5, "{calls:?}");
    assert_eq!(calls.stored_bytes, 50_000 - 1000 * calls.put_off);
}

#[test]
fn what_is_not_permitted_any_more_keeps_that_in_the_middle() {
    let server = Server::start(Manner::WriteFails { after: 5, status: 13 });
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    conversation.store(Some(100_000), &Patient).expect("it is taken");
    let payload = payload(1000);
    let cause = loop {
        match conversation.write(&payload) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                let socket = conversation.socket().expect("there is one").as_fd();
                let until = ready_at(conversation.as_ref());
                Patient.wait(socket, conversation.awaits(), until).expect("it waits");
            }
            Err(cause) => break cause,
        }
    };
    assert_eq!(cause.kind(), ErrorKind::PermissionDenied, "{cause}");
    let why = conversation.refusal(&Patient).expect("it says why");
    assert!(why.not_permitted() && why.to_string().contains("WRITE: permission denied"), "{why}");
}

#[test]
fn an_upload_that_is_not_over_costs_the_connection() {
    let server = Server::start(Manner::Honest);
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    assert!(conversation.store(Some(5000), &Patient).expect("it begins").anew);
    assert!(conversation.write(&[7; 1500]).expect("there is room") > 0);
    assert_eq!(conversation.remove(&Patient).ok(), Some(true));
    assert!(conversation.store(Some(5000), &Patient).is_ok_and(|body| !body.anew));
}

/// Why a file can't be stored.
fn fails(manner: Manner) -> String {
    let server = Server::start(manner);
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    store(conversation.as_mut(), &payload(100_000), true, 10_000).expect_err("it fails")
}

#[test]
fn a_file_that_was_made_and_not_filled_is_taken_back() {
    let server = Server::start(Manner::WriteFails { after: 0, status: 28 });
    let mut conversation = converse(&server, "/export/new", writes(1000, 4));
    store(conversation.as_mut(), &[7], true, 1).expect_err("it fails");
    assert!(server.stored().is_none(), "what it refused to take, it does not have");
}

#[test]
fn what_a_server_refuses_is_distinguished() {
    let refused = |status| {
        let server = Server::start(Manner::NoCreate(status));
        let mut conversation = converse(&server, "/export/new", writes(1000, 4));
        let why = conversation.store(Some(1), &Patient).map(drop).expect_err("it is refused");
        assert!(why.is_refusal(), "{why}");
        assert_eq!(conversation.remove(&Patient).ok(), Some(false), "nothing is there");
        (why.not_permitted(), why.to_string())
    };
    let (denied, why) = refused(13);
    assert!(denied && why.contains("CREATE: permission denied"), "{why}");
    let (denied, why) = refused(30);
    assert!(!denied && why.contains("read-only"), "{why}");
    let full = fails(Manner::WriteFails { after: 5, status: 28 });
    assert!(full.contains("WRITE: the server's disk is full"), "{full}");
    let quota = fails(Manner::WriteFails { after: 0, status: 69 });
    assert!(quota.contains("quota"), "{quota}");
}

#[test]
fn a_refusal_that_may_leave_a_file_is_no_sign_that_there_is_none() {
    for status in [5, 28, 10006, 10008] {
        let server = Server::start(Manner::NoCreate(status));
        let mut conversation = converse(&server, "/export/new", writes(1000, 4));
        let why = conversation.store(Some(1), &Patient).map(drop).expect_err("it is refused");
        assert!(!why.is_refusal() && why.to_string().contains("CREATE"), "{status}: {why}");
    }
}

#[test]
fn a_server_that_forgets_what_it_took_is_found_out() {
    for after in [5, 99] {
        let why = fails(Manner::Forgets { after });
        assert!(why.contains("write verifier changed"), "{why}");
    }
    let why = fails(Manner::ForgetsAtCommit);
    assert!(why.contains("write verifier changed"), "{why}");
}

#[test]
fn a_server_that_writes_nothing_or_goes_away_is_found_out() {
    let why = fails(Manner::WritesShort(0));
    assert!(why.contains("0 of the 1000 bytes"), "{why}");
    let why = fails(Manner::WriteCloses { after: 5 });
    assert!(why.contains("closed the connection") && why.contains("without an answer"), "{why}");
}
