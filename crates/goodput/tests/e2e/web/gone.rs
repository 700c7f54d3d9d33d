//! Browsers that go away in the middle of something: nothing of them is left, and the next one is served.

use std::io::{Read, Write};
use std::net::TcpStream;

use goodput_store::Store;
use goodput_testing::wait_for;

use super::served::Web;
use crate::common::{Home, Server};

/// More than one client may have at once, so that a place that stays taken shows.
const TIMES: usize = 20;

/// Text that no buffer between a server and its client has room for.
const LARGE_BYTES: usize = 8 << 20;

/// Descriptors that the server has open: its connections, pipes and files.
fn open_files(web: &Web) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", web.pid())).expect("it runs");
    files.count()
}

/// Threads of the server that follow tests.
fn followers(web: &Web) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", web.pid())).expect("it runs");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks.flatten().filter_map(|task| name(task).ok()).filter(|name| name.trim() == "run").count()
}

/// Asks for a page, and returns the connection when the answer has begun. The server may still be busy with the end of
/// earlier connections, and refuse one more.
fn begin(web: &Web, path: &str) -> TcpStream {
    let ask = || -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&web.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", web.address)?;
        let mut first = [0; 13];
        stream.read_exact(&mut first)?;
        assert_eq!(&first, b"HTTP/1.1 200 ", "{path}");
        Ok(stream)
    };
    let mut begun = None;
    wait_for("an answer", || {
        begun = ask().ok();
        begun.is_some()
    });
    begun.expect("it was waited for")
}

fn wait_for_a_page(web: &Web) {
    wait_for("a page", || web.get("/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn in_the_middle_of_a_page() {
    let web = Web::start(&[]);
    let store = Store::open(&web.home.path().join("goodput/history.db")).unwrap();
    let mut record = store.get(1).unwrap();
    record.doubts = vec!["x".repeat(LARGE_BYTES)];
    let large = format!("/results/{}/json", store.add(&record).unwrap());
    drop((store, record));
    wait_for_a_page(&web);
    let before = open_files(&web);
    // Each is dropped with most of the page on its way.
    (0..TIMES).for_each(|_| drop(begin(&web, &large)));
    wait_for_a_page(&web);
    wait_for("the end of all connections", || open_files(&web) <= before);
}

#[test]
fn from_the_events_of_a_test() {
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let (cookie, form) = web.log_in();
    let fields = format!("form={form}&target={}&time=60", server.address);
    web.post("/tests", &cookie, &fields);
    wait_for("an interval", || web.get("/tests/1").contains("<td>1.0 s</td>"));
    let before = open_files(&web);
    (0..TIMES).for_each(|_| drop(begin(&web, "/tests/1/events")));
    let mut stays = begin(&web, "/tests/1/events");
    wait_for_a_page(&web);
    assert!(web.get("/tests/1").contains("Running."), "the test goes on");
    wait_for("the end of the other connections", || open_files(&web) <= before + 1);
    web.post("/tests/1/stop", &cookie, &format!("form={form}"));
    // To the end of the events: one who stays hears of it. The connection is kept for the next request.
    let mut heard = String::new();
    while !heard.contains("event: end\ndata: {\"result\":4") {
        let mut more = [0; 4096];
        let count = stays.read(&mut more).expect("it sends");
        assert!(count > 0, "{heard}");
        heard += &String::from_utf8_lossy(&more[..count]);
    }
    drop(stays);
    wait_for("the end of the threads that followed it", || followers(&web) == 0);
    wait_for("the end of all connections", || open_files(&web) < before);
}

#[test]
fn after_it_has_started_a_test_and_before_it_has_sent_all_of_a_form() {
    let (web, home) = (Web::start(&[]), Home::new());
    let server = Server::start(&home, &[]);
    let (cookie, form) = web.log_in();
    let fields = format!("form={form}&target={}&time=60", server.address);
    let head = format!(
        "POST /tests HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Length: {}\r\n\r\n",
        web.address,
        fields.len()
    );
    let before = open_files(&web);
    for _ in 0..TIMES {
        // The server may be busy with earlier ones, and refuse this one.
        let mut stream = TcpStream::connect(&web.address).unwrap();
        let _ = write!(stream, "{head}{}", &fields[..fields.len() - 1]);
    }
    wait_for("the end of all connections", || open_files(&web) <= before);
    wait_for_a_page(&web);
    assert!(!web.get("/tests").contains("/tests/1"), "half a form starts nothing");
    let mut stream = TcpStream::connect(&web.address).unwrap();
    write!(stream, "{head}{fields}").unwrap();
    wait_for("the test", || web.get("/tests").contains("/tests/1\">"));
    // Without having read where to find it.
    drop(stream);
    wait_for("an interval", || web.get("/tests/1").contains("<td>1.0 s</td>"));
    web.post("/tests/1/stop", &cookie, &format!("form={form}"));
    wait_for("its end", || web.get("/tests/1").contains("Ended. See <a href=\"/results/4\">"));
    wait_for("the end of the threads that followed it", || followers(&web) == 0);
    wait_for("the end of all connections", || open_files(&web) <= before);
}
