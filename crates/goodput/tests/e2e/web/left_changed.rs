//! What an interrupted run left changed, on a host whose devices have hostile names. In a network namespace, so that
//! nothing of this host is changed.

use std::fs;
use std::process::{Command, Stdio};

use goodput_testing::{in_namespace, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use super::browser::Browser;
use super::in_browser::log_in;
use super::served::{Web, children};
use crate::common::{Home, Server};

/// A name that the kernel accepts (dev_valid_name, net/core/dev.c).
const DEVICE: &str = "<script>";

/// Each network namespace has its own.
const CHANGED: &str = "/proc/sys/net/ipv4/tcp_notsent_lowat";

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {words}");
}

fn value() -> String {
    fs::read_to_string(CHANGED).expect("it is Linux").trim().into()
}

fn signal(signal: Signal, pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("it is no zero");
    kill_process(pid, signal).expect("it runs");
}

/// What a power cut leaves of a comparison: nobody is there to put anything back, but the journal is.
fn leave(home: &Home, server: &Server) {
    let before = value();
    let words = ["compare", &server.address, "sysctl.net.ipv4.tcp_notsent_lowat=65536,131072"];
    let mut compare = home.goodput(&[&words[..], &["-t", "60", "--no-store"]].concat());
    let mut compare = compare.stdout(Stdio::null()).spawn().expect("it can be started");
    wait_for("a change", || value() != before);
    signal(Signal::STOP, compare.id());
    for guard in children(compare.id()) {
        signal(Signal::KILL, guard.parse().expect("it is a number"));
    }
    signal(Signal::KILL, compare.id());
    compare.wait().expect("it is a child");
    assert_ne!(value(), before);
}

#[test]
fn it_is_put_back_from_a_page_and_names_of_devices_are_text() {
    in_namespace(|| {
        ip("link set lo up");
        ip(&format!("link add {DEVICE} type veth peer name other"));
        ip("link set other up");
        ip(&format!("link set {DEVICE} up"));
        let Some(mut browser) = Browser::open() else { return };
        let (web, home) = (Web::start(&[]), Home::new());
        let server = Server::start(&home, &[]);
        let before = value();
        leave(&web.home, &server);
        browser.visit(&format!("{}changes", web.url()));
        let text = "document.querySelector('main').textContent";
        let shown = browser.evaluate(text);
        assert!(
            shown.as_str().is_some_and(|text| text.contains("Log in to put it back")),
            "{shown}"
        );
        log_in(&mut browser, &web);
        browser.visit(&format!("{}changes", web.url()));
        browser.photograph("left-changed");
        browser.leave_by("document.querySelector('form[action=\"/undo\"]').requestSubmit()");
        let shown = browser.evaluate(text);
        assert!(shown.as_str().is_some_and(|text| text.contains("tcp_notsent_lowat")), "{shown}");
        assert_eq!(value(), before, "{shown}");
        browser.visit(&format!("{}changes", web.url()));
        let shown = browser.evaluate(text);
        let shown = shown.as_str().expect("it has text");
        assert!(shown.contains("No interrupted run left") && shown.contains("put back"), "{shown}");
        for path in ["check", "settings"] {
            browser.visit(&format!("{}{path}", web.url()));
            let shown = browser.evaluate(text);
            assert!(shown.as_str().is_some_and(|text| text.contains(DEVICE)), "{path}: {shown}");
            assert_eq!(browser.evaluate("document.querySelectorAll('script').length"), 0, "{path}");
        }
        let found = [browser.complaints(&web.url()), browser.problems()].concat();
        assert!(found.is_empty(), "{found:?}");
    });
}

#[test]
fn a_change_that_was_kept_is_taken_back_by_itself() {
    in_namespace(|| {
        ip("link set lo up");
        let Some(mut browser) = Browser::open() else { return };
        let web = Web::start(&[]);
        let before = value();
        let set = ["settings", "set", "sysctl.net.ipv4.tcp_notsent_lowat=65536"];
        let set = web.home.goodput(&set).output().expect("it can be started");
        assert!(set.status.success() && value() == "65536", "{set:?}");
        log_in(&mut browser, &web);
        browser.visit(&format!("{}changes", web.url()));
        browser.photograph("kept-change");
        let found = [browser.complaints(&web.url()), browser.problems()].concat();
        assert!(found.is_empty(), "{found:?}");
        browser.leave_by("document.querySelector('form[action=\"/take-back\"]').requestSubmit()");
        let shown = browser.evaluate("document.querySelector('main').textContent");
        assert_eq!(value(), before, "{shown}");
        assert!(shown.as_str().is_some_and(|text| text.contains("tcp_notsent_lowat")), "{shown}");
    });
}
