//! Nonsense, foreign servers and dying peers: a clear message and the documented exit code.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};

use crate::common::{Home, Server, record, refusing, stderr, stdout};

fn fails(output: &Output, code: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn an_unknown_host_is_named() {
    let output = Home::new().run(&["test", "no-such-host.invalid", "--no-store"]);
    fails(&output, 2, &["no-such-host.invalid", "resolve"]);
}

#[test]
fn a_refused_port_is_named() {
    let (_bound, address) = refusing();
    let output = Home::new().run(&["test", &address.to_string(), "--no-store"]);
    fails(&output, 2, &[&address.to_string(), "refused"]);
}

/// Answers one connection with `greeting` and returns what goodput said of it.
fn against(greeting: &'static [u8]) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("goodput connects");
        stream.write_all(greeting).expect("goodput listens");
        // Until goodput hangs up.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = Home::new().run(&["test", &address, "--no-store"]);
    server.join().expect("the server does not panic");
    output
}

#[test]
fn a_peer_that_is_not_goodput_is_recognised() {
    fails(&against(b"SSH-2.0-OpenSSH_9.2\r\n"), 2, &["another protocol", "SSH"]);
    fails(&against(b"HTTP/1.1 400 Bad Request\r\n\r\n"), 2, &["another protocol", "HTTP"]);
    fails(&against(b"220 ftp ready\r\n"), 2, &["another protocol"]);
}

#[test]
fn a_peer_that_hangs_up_at_once_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let output = Home::new().run(&["test", &address, "--no-store"]);
    server.join().unwrap();
    fails(&output, 2, &["closed the connection without an answer", "--deny", "try again later"]);
    assert!(!stderr(&output).contains("another protocol"), "{}", stderr(&output));
}

#[test]
fn a_peer_that_dies_in_the_middle_ends_the_test() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let client = home
        .goodput(&["test", &server.address, "--no-store", "-t", "60", "--json-stream"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = client;
    let mut stdout = client.stdout.take().unwrap();
    // The first bytes of output mean that the measurement is in progress.
    let mut first = [0; 64];
    assert!(stdout.read(&mut first).unwrap() > 0);
    server.stop("-KILL");
    drop(stdout);
    // Which of its connections breaks first, a flow or the conversation, decides on the words.
    fails(&client.wait_with_output().unwrap(), 2, &[]);
}

#[test]
fn unknown_options_settings_movers_and_schemes_suggest_what_exists() {
    let home = Home::new();
    fails(&home.run(&["test", "localhost", "--revers"]), 2, &["--reverse"]);
    fails(&home.run(&["test", "gopher://localhost"]), 2, &["gopher", "goodput"]);
    fails(&home.run(&["compare", "localhost", "ofload.tso@lo=on,off"]), 2, &["offload.tso"]);
    fails(
        &home.run(&["compare", "localhost", "mover=copy"]),
        2,
        &["at least two different values"],
    );
    fails(&home.run(&["compare", "localhost", "mover"]), 2, &["SETTING=A,B"]);
    fails(&home.run(&["compare", "localhost", "chunk=4M..4K"]), 2, &["to a larger one"]);
    let judged_by =
        |names| home.run(&["compare", "localhost", "mover=copy,sendfile", "--response", names]);
    fails(&judged_by("speed"), 2, &["throughput, cpu"]);
    fails(&judged_by("cpu,loss,cpu"), 2, &["cpu twice"]);
    fails(&home.run(&["test", "localhost", "-t", "0"]), 2, &["above 0"]);
    fails(&home.run(&["test", "localhost", "-t", "5 parsecs"]), 2, &["500ms"]);
    fails(&home.run(&["test", "localhost", "--rate", "fast"]), 2, &["rate"]);
    fails(&home.run(&["test", "localhost", "--expect", "limit=path-los"]), 2, &["path-loss"]);
}

/// Nothing listens at the address, so any use of the network would end with another error.
#[test]
fn mistakes_of_this_end_are_refused_before_anything_is_sent() {
    let home = Home::new();
    let (_bound, address) = refusing();
    let (address, empty) = (address.to_string(), home.file("empty", ""));
    let (empty, folder) = (empty.to_str().unwrap(), home.path().to_str().unwrap());
    for (line, words) in [
        ("test @ --mover coppy", &["--mover", "coppy", "auto, copy"][..]),
        ("test @ --receive-mover coppy", &["--receive-mover", "coppy"]),
        ("test @ --receive-mover sendfile --reverse", &["sendfile", "only sends"]),
        ("test @ -u --chunk 65508", &["65508", "65507"]),
        ("test @ --source EMPTY", &["EMPTY is empty"]),
        ("test @ --source FOLDER", &["FOLDER is a directory"]),
        ("test @ --source FOLDER/none", &["can't read FOLDER/none"]),
        ("test @ --reverse --sink FOLDER/none/x", &["can't write to FOLDER/none/x"]),
        ("test @ --reverse --sink FOLDER", &["can't write to FOLDER"]),
        ("test @ --record FOLDER/none/x", &["can't write the record to FOLDER/none/x"]),
        ("test @ --congestion nosuch", &["congestion control nosuch", "this kernel has"]),
        ("test @ --device nosuch0", &["nosuch0"]),
        ("test @ --key FOLDER/none", &["there is no key FOLDER/none"]),
        ("test @ --token-file FOLDER/none", &["can't read the token FOLDER/none"]),
        ("test files @ --source FOLDER/none", &["can't read FOLDER/none"]),
        ("tune @ --source FOLDER/none", &["can't read FOLDER/none"]),
        ("compare @ socket.nodelai=1,2", &["socket.nodelai", "did you mean"]),
        ("compare @ chunk=much,4K", &["chunk", "much"]),
        ("compare @ mover=copy,coppy", &["coppy", "auto, copy"]),
        ("compare @ chunk=4K,0", &["chunk", "\"0\""]),
        ("compare @ qdisc.kind@nosuch0=fq,pfifo", &["nosuch0"]),
        ("compare @ sysctl.net.ipv4.tcp_rmem=1,2", &["tcp_rmem", "3 numbers"]),
    ] {
        let real = |text: &str| {
            let text = text.replace("EMPTY", empty).replace("FOLDER", folder);
            text.replace('@', if text.starts_with('@') { &address } else { "@" })
        };
        let typed: Vec<_> = line.split(' ').map(real).collect();
        let output = home.run(&typed.iter().map(String::as_str).collect::<Vec<_>>());
        let words: Vec<_> = words.iter().map(|word| real(word)).collect();
        fails(&output, 2, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!stderr(&output).contains("refused"), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}: {}", stdout(&output));
    }
    assert!(!home.path().join("none").exists());
}

#[test]
fn a_variable_that_is_set_to_nothing_is_named() {
    let home = Home::new();
    for variable in ["GOODPUT_KEY_FILE", "GOODPUT_TOKEN_FILE", "GOODPUT_STATE_DIR"] {
        let mut command = home.goodput(&["test", "localhost", "--no-store"]);
        let output = command.env(variable, "").output().expect("it starts");
        fails(&output, 2, &[variable, "is empty", "unset"]);
    }
    fails(&home.run(&["test", "localhost", "--key", ""]), 2, &["--key", "is empty"]);
}

#[test]
fn a_pace_that_cannot_be_held_is_refused_in_words() {
    let home = Home::new();
    let udp = |more: &[&str], words: &[&str]| {
        fails(&home.run(&[&["test", "localhost", "-u"], more].concat()), 2, words);
    };
    udp(&["--rate", "-5"], &["at least 0"]);
    udp(&["--rate=-5mbit"], &["at least 0"]);
    udp(&["--burst", "64K"], &["--rate"]);
    udp(&["--rate", "1gbit", "--burst", "0"], &["at least 1 byte"]);
    udp(&["--rate", "1gbit", "--burst", "soon"], &["size", "time"]);
    fails(&home.run(&["test", "localhost", "--rate", "1gbit", "--burst", "64K"]), 2, &["--udp"]);
    let server = Server::start(&home, &[]);
    let plan = |more: &[&str], words: &[&str]| {
        let all = [&["test", &server.address, "--no-store", "-t", "1", "-u"], more].concat();
        fails(&home.run(&all), 2, words);
    };
    plan(&["--rate", "100tbit"], &["1 ns", "1472 bytes"]);
    plan(&["--rate", "1bit"], &["1472 bytes every 11776 s", "after 1 s", "12 kbit/s or more"]);
    plan(&["--rate", "1gbit", "--burst", "1000"], &["1000 bytes", "1472"]);
    plan(&["--chunk", "31"], &["31 bytes", "65507"]);
    plan(&["--chunk", "65508"], &["65508 bytes", "65507"]);
    plan(&["--chunk", "40000", "--mover", "gso"], &["gso", "32753"]);
    plan(&["--mover", "txtime"], &["txtime", "--rate"]);
}

#[test]
fn a_limit_that_lets_nothing_through_is_refused() {
    let home = Home::new();
    for option in ["--max-rate", "--max-total-rate"] {
        let output = home.run(&["serve", "--port", "0", option, "0.5"]);
        fails(&output, 2, &[option, "at least 1 bit/s", "or unlimited"]);
    }
    for option in ["--max-chunk", "--max-sink", "--max-sink-total"] {
        let output = home.run(&["serve", "--port", "0", option, "0"]);
        fails(&output, 2, &[option, "at least 1 byte"]);
    }
    for option in ["--time", "--omit", "--interval"] {
        let output = home.run(&["test", "localhost", option, "1e300"]);
        fails(&output, 2, &[option, "at most a year"]);
    }
}

#[test]
fn every_verb_answers_nonsense_in_words() {
    let home = Home::new();
    for (line, words) in [
        ("nonsense", &["nonsense", "--help"][..]),
        ("explain nonsense", &["nonsense", "goodput list"]),
        ("list nonsense", &["nonsense", "rules"]),
        ("list rules nonsense", &["nonsense", "no row"]),
        ("settings nonsense", &["nonsense", "--help"]),
        ("settings list nonsense", &["nonsense", "no row"]),
        ("settings get nonsense", &["nonsense", "settings list"]),
        ("settings set nonsense=1", &["nonsense", "settings list"]),
        ("settings show-files nonsense=1", &["nonsense", "settings list"]),
        ("settings show-files sysctl.net.ipv4.tcp_rmem=1", &["tcp_rmem", "3 numbers"]),
        ("settings show-files socket.rcvbuf=much", &["socket.rcvbuf", "much"]),
        ("settings show-files polling@nosuch=on", &["nosuch", "--on ssh://"]),
        ("compare 127.0.0.1 chunk=4K,8K chunk=1K,2K", &["chunk", "named twice"]),
        ("compare 127.0.0.1 chunk=4K,4K", &["chunk", "--placebo"]),
        ("lab nonsense", &["nonsense", "--help"]),
        ("lab list nonsense", &["nonsense", "no row"]),
        ("lab show nonsense", &["nonsense", "lab list"]),
        ("history nonsense", &["nonsense", "goodput history"]),
        ("history 99", &["99", "goodput history"]),
        ("fleet nonsense", &["nonsense", "--help"]),
        ("fleet plan nonsense", &["can't read the mesh nonsense"]),
        ("fleet matrix --slow nonsense", &["nonsense", "below 100 percent"]),
        ("generate nonsense", &["nonsense", "--help"]),
        ("as nonsense", &["nonsense", "iperf3"]),
        ("as --list nonsense", &["nonsense", "iperf3"]),
        ("check nonsense", &["nonsense", "no device"]),
        ("ceiling nonsense", &["nonsense", "--help"]),
        ("compare localhost nonsense=1,2", &["nonsense", "settings list"]),
        ("compare localhost link.mtu@lo=65535,99", &["\"99\"", "from 1280 to 65535"]),
        ("shaping localhost --rate 0", &["above 0"]),
        ("shaping http://localhost/x --rate 1mbit", &["name HOST"]),
        ("shaping /nowhere/x --rate 1mbit", &["name HOST"]),
        (
            "shaping localhost --rate 1mbit --class ef=1kbit",
            &["--class ef is alone", "give --class"],
        ),
        ("shaping localhost --rate 1mbit --class ef", &["\"ef\"", "NAME=RATE"]),
        ("shaping localhost --rate 1mbit --class ef=0 --class be=1kbit", &["above 0"]),
        (
            "shaping localhost --rate 1mbit --class voice=1kbit",
            &["\"voice\"", "a DSCP", "port:PORT"],
        ),
        (
            "shaping localhost --rate 1mbit --class ef=2kbit..1kbit",
            &["ceil of ef", "below its rate"],
        ),
        ("shaping localhost --rate 1mbit --class ef=1kbit --class 46=1kbit", &["the same packets"]),
        (
            "shaping iperf3://localhost:9 --rate 1mbit --class ef=1kbit --class be=1kbit",
            &["localhost:9"],
        ),
        ("shaping localhost --rate 1mbit --class ef=1kbit --prove", &["--class", "--prove"]),
        ("shaping localhost --rate 1mbit --router r --prove", &["--prove on the router itself"]),
        ("test nonsense://x", &["nonsense", "goodput://"]),
        ("key nonsense", &["nonsense", "--help"]),
        ("key -o /nonsense/key", &["/nonsense/key", "no directory /nonsense", "mkdir"]),
        ("demo nonsense", &["nonsense", "--help"]),
    ] {
        let typed: Vec<_> = line.split(' ').collect();
        fails(&home.run(&typed), 2, words);
    }
}

#[test]
fn a_full_disk_is_named_with_what_was_to_be_printed_there() {
    let home = Home::new();
    for line in ["list rules", "list --help", "generate schema", "lab list --json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let mut command = home.goodput(&line.split(' ').collect::<Vec<_>>());
        let output = command.stdout(full).output().expect("it starts");
        fails(&output, 2, &["can't print the result on standard output", "No space left"]);
    }
}

#[test]
fn each_cause_of_a_port_that_cannot_be_served_has_its_own_advice() {
    let home = Home::new();
    // A network for documentation (RFC 5737), which no host has.
    let elsewhere = home.run(&["serve", "--port", "0", "--bind", "192.0.2.1"]);
    fails(&elsewhere, 2, &["no device of this host has this address", "--bind"]);
    let (_bound, address) = refusing();
    let port = address.port().to_string();
    let taken = home.run(&["serve", "--port", &port, "--bind", "127.0.0.1"]);
    fails(&taken, 2, &["another program uses this port", "--port"]);
}

#[test]
fn a_plan_beyond_the_servers_limits_is_refused_in_words() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-duration", "5", "--max-flows", "2"]);
    let long = home.run(&["test", &server.address, "--no-store", "-t", "60"]);
    fails(&long, 2, &["60", "5"]);
    let many = home.run(&["test", &server.address, "--no-store", "-n", "1M", "-P", "3"]);
    fails(&many, 2, &["flows", "2"]);
}

#[test]
fn garbage_and_idle_connections_disturb_nobody() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let mut clients = Vec::new();
    for n in 0..200u8 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // Some say nothing, some a part of the preamble, some garbage.
        let _ = match n % 4 {
            0 => Ok(()),
            1 => stream.write_all(b"good"),
            2 => stream.write_all(b"goodputc\xff\xff\xff\xff\xff"),
            _ => stream.write_all(&[n; 512]),
        };
        clients.push(stream);
    }
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(server.is_alive());
}

#[test]
fn a_data_connection_without_a_cookie_is_hung_up() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"goodputd0123456789abcdef").unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0, "the server hangs up");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let home = Home::new();
    for arguments in [
        &["generate", "schema"][..],
        &["generate", "completions", "bash"],
        &["lab", "list"],
        &["lab", "show", "ack-path"],
        &["list", "movers"],
        &["as", "--list"],
    ] {
        let mut program = home.goodput(arguments);
        let mut program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(program.stdout.take());
        fails(&program.wait_with_output().unwrap(), 0, &[]);
    }
}
