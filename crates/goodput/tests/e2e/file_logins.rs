//! Logins of servers of files: whose are looked for, and what an unreadable file of logins stops.

use std::fs;

use crate::common::{Home, refusing, stderr};

/// Tests a target whose port refuses connections; returns the exit code and what was said.
fn test(home: &Home, target: &str, netrc: Option<&str>) -> (Option<i32>, String) {
    let mut command = home.goodput(&["test", target, "--no-store"]);
    command.env("HOME", home.path()).env_remove("NETRC").env_remove("GOODPUT_FILE_PASSWORD");
    netrc.into_iter().for_each(|file| _ = command.env("NETRC", file));
    let output = command.output().expect("the program under test can be started");
    (output.status.code(), stderr(&output))
}

#[test]
fn an_unreadable_file_of_logins_stops_only_who_wants_one() {
    let home = Home::new();
    // Nobody can read a directory as a file, not even root.
    fs::create_dir(home.path().join(".netrc")).expect("the home is writable");
    let (_bound, address) = refusing();
    let (code, said) = test(&home, &format!("nfs://{address}/export/file"), None);
    assert!(code == Some(2) && said.contains("refused") && !said.contains(".netrc"), "{said}");
    for scheme in ["http", "ftp"] {
        let (code, said) = test(&home, &format!("{scheme}://{address}/file"), None);
        let goes_on = said.contains("warning: continuing without a login: can't read ");
        assert!(code == Some(2) && goes_on && said.contains("refused"), "{said}");
        let (code, said) = test(&home, &format!("{scheme}://me@{address}/file"), None);
        let stops = said.contains("can't read the logins in ") && !said.contains("refused");
        assert!(code == Some(2) && stops, "{said}");
    }
    let named = home.path().join("none").display().to_string();
    let (code, said) = test(&home, &format!("ftp://{address}/file"), Some(&named));
    assert!(code == Some(2) && said.contains("none: No such file"), "{said}");
}
