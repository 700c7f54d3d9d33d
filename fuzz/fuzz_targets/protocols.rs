//! Every protocol's sessions, at both ends, told whatever a peer, a driver and time may bring.
#![no_main]

use std::time::{Duration, Instant};

use goodput_model::{Known, Plan, Transport};
use goodput_wire::pair::{client_config, end, origin, sample, server_config};
use goodput_wire::session::{Action, Input, Output, Session, SettingRequest};
use goodput_wire::{frame, protocols};
use libfuzzer_sys::fuzz_target;

/// Messages of goodput's own protocol; other protocols take them for garbage.
const WELL_FORMED: &[&str] = &[
    r#"{"hello":{"version":1,"host":{"name":"x","kernel":"y","goodput":"z","cpus":1}}}"#,
    r#"{"propose":{"measurement":1,"plan":{"transport":"tcp","direction":"both","flows":1,
        "length":{"seconds":1.5},"interval_s":0.5,"mover":"copy","chunk_bytes":4096,
        "rate_bits_per_s":null,"observe":true,"socket":{}}}}"#,
    r#"{"accept":{"measurement":1,"cookies":["000102030405060708090a0b0c0d0e0f"],
        "data_port":9,"longest_s":1.5,"note":"slowly"}}"#,
    r#"{"refuse":{"measurement":1,"why":"no"}}"#,
    r#"{"flows-ready":{"measurement":1}}"#,
    r#"{"begin":{"measurement":1}}"#,
    r#"{"sample":{"measurement":1,"sample":{"at_s":1,"sent_bytes":2,"received_bytes":3}}}"#,
    r#"{"finish":{"measurement":1,"why":null}}"#,
    r#"{"report":{"measurement":1,"end":{"host":{"name":"x","kernel":"y","goodput":"z","cpus":1},
        "before":{"facts":{},"missing":{}},"after":{"facts":{"a.b":1},"missing":{}},"samples":[]}}}"#,
    r#"{"setting":{"id":1,"request":"restore"}}"#,
    r#"{"setting-done":{"id":1,"answer":{"value":"x"}}}"#,
    r#"{"ping":{}}"#,
    r#"{"goodbye":{"code":"done","why":"bye"}}"#,
];

/// Lines of nuttcp, as each end says them.
const LINES: &[&str] = &[
    "HELO nuttcp v8.2.2\n",
    "HELO nuttcp v6.1.2\n",
    "buflen = 1024, nbuf = 4, win = 0, nstream = 1, rate = 4294967295, port = 5001, trans = 1, \
        braindead = 0, timeout = 0.000000, udp = 0, vers = 6.1.2, interval = 1.000000, \
        reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , \
        multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n",
    "buflen = 1400, port = 5101, trans = 0, udp = 1, timeout = 1.0, interval = 0.5, nstream = 2\n",
    "OK v6.1.2\n",
    "KO\n",
    "DONE\n",
    "nuttcp-r: megabytes=2.4375 real_seconds=1.02 rate_KBps=2438.62 rate_Mbps=19.9772\n",
    "nuttcp-r: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=0% memory=0i+0d-764maxrss\n",
];

fuzz_target!(|data: &[u8]| {
    let Some((&kind, script)) = data.split_first() else { return };
    let token = (kind & 1 == 1).then_some("the shared one");
    for protocol in protocols::ALL {
        let (now, client) = (origin(), kind & 2 == 2);
        let mut config = server_config(token);
        if kind & 4 == 4 {
            config.transport = Transport::Udp;
            config.limits.unproven_udp = kind & 8 == 8;
        }
        let session = match client {
            true => (protocol.client)(now, client_config(token)),
            false => (protocol.server)(now, config),
        };
        let mut talk = Talk { session, now, secured: false, ended: false };
        if token.is_none() && protocol.observes {
            talk.tell(Input::Received(b"goodputc".to_vec()));
        }
        talk.follow(script);
        talk.outlive();
    }
});

/// A session and what is known of it.
struct Talk {
    session: Box<dyn Session>,
    now: Instant,
    secured: bool,
    ended: bool,
}

impl Talk {
    /// Takes each step of the script: a letter, and for what a peer says, a length and its bytes.
    fn follow(&mut self, mut script: &[u8]) {
        while let Some((&letter, rest)) = script.split_first()
            && !self.ended
        {
            script = match letter % 16 {
                0 | 1 => self.hear(rest, |said| said.to_vec()),
                2 | 3 => self.hear(rest, framed),
                4 => self.hear_well_formed(rest),
                5 => self.hear_line(rest),
                _ => {
                    self.drive(letter % 16);
                    rest
                }
            };
        }
    }

    fn hear<'a>(&mut self, script: &'a [u8], shape: fn(&[u8]) -> Vec<u8>) -> &'a [u8] {
        let Some((length, rest)) = script.split_first_chunk::<2>() else { return &[] };
        let length = usize::from(u16::from_be_bytes(*length) % 1024).min(rest.len());
        let (said, rest) = rest.split_at(length);
        self.tell(Input::Received(shape(said)));
        rest
    }

    /// A message as a peer that knows the protocol says it, so that every state is reached.
    fn hear_well_formed<'a>(&mut self, script: &'a [u8]) -> &'a [u8] {
        let Some((&which, rest)) = script.split_first() else { return &[] };
        let said = WELL_FORMED[usize::from(which) % WELL_FORMED.len()];
        self.tell(Input::Received(framed(said.as_bytes())));
        rest
    }

    fn hear_line<'a>(&mut self, script: &'a [u8]) -> &'a [u8] {
        let Some((&which, rest)) = script.split_first() else { return &[] };
        self.tell(Input::Received(LINES[usize::from(which) % LINES.len()].into()));
        rest
    }

    fn drive(&mut self, letter: u8) {
        let input = match letter {
            6 => Input::Propose(Box::new(Plan::standard())),
            7 => Input::Expecting { data_port: None },
            8 => Input::FlowsReady,
            9 => Input::FlowsFailed("no".into()),
            10 => Input::Begin,
            11 => Input::Sampled(Box::new(sample(1.0, 1))),
            12 => self.finish(),
            13 => Input::Report(Known::Value(Box::new(end("here")))),
            14 => Input::AskSetting(SettingRequest::Restore),
            _ => return self.wait(),
        };
        self.tell(input);
    }

    /// The end of the payload: by this end's wish, or of the flows themselves.
    fn finish(&mut self) -> Input {
        self.tell(Input::Finish(None));
        Input::Ended(Box::new(sample(2.0, 2)))
    }

    fn tell(&mut self, input: Input) {
        self.now += Duration::from_millis(1);
        self.ended |= self.session.handle(self.now, input).is_err();
        self.collect();
    }

    fn wait(&mut self) {
        if let Some(at) = self.session.next_timeout() {
            self.now = self.now.max(at);
            self.ended |= self.session.handle_timeout(self.now).is_err();
            self.collect();
        }
    }

    /// However it was left, a session ends by its own deadlines.
    fn outlive(&mut self) {
        for _ in 0..10_000 {
            if self.ended || self.session.next_timeout().is_none() {
                return assert_eq!(self.session.next_timeout(), None);
            }
            self.wait();
        }
        panic!("a session does not end");
    }

    fn collect(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Do(Action::Greeted { secured, .. }) => self.secured = secured,
                Output::Do(Action::Setting(_)) => assert!(self.secured, "changed by a stranger"),
                Output::Close => self.ended = true,
                Output::Send(_) | Output::Do(_) | Output::EndSending => {}
            }
        }
    }
}

fn framed(said: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A body of at most 1024 bytes always fits.
    let _ = frame::encode::<4>(said, &mut bytes);
    bytes
}
