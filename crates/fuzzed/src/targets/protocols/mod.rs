//! Every protocol's sessions, at both ends, with arbitrary input from a peer, a driver and time.

mod words;

use std::time::{Duration, Instant};

use goodput_model::{Known, Plan, Transport};
use goodput_wire::pair::{client_config, end, origin, sample, server_config};
use goodput_wire::session::{Action, Input, Output, Session, SettingRequest};
use goodput_wire::{frame, protocols};

use words::Word;

/// Takes any bytes.
pub fn run(data: &[u8]) {
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
        let words = words::words(protocol.id);
        let mut talk = Talk { session, words, now, secured: false, ended: false };
        if token.is_none() && protocol.far_end.knows_keys {
            talk.feed(Input::Received(b"goodputc".to_vec()));
        }
        talk.follow(script);
        talk.outlive();
    }
}

/// A session and what is known of it.
struct Talk {
    session: Box<dyn Session>,
    /// What its peer may say.
    words: Vec<Word>,
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
                4 | 5 => self.hear_word(rest),
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
        self.feed(Input::Received(shape(said)));
        rest
    }

    /// Something that a peer who knows the protocol says.
    fn hear_word<'a>(&mut self, script: &'a [u8]) -> &'a [u8] {
        let Some((&which, rest)) = script.split_first() else { return &[] };
        let said = match self.words.get(usize::from(which) % self.words.len().max(1)) {
            Some(Word::Frame(body)) => framed(body.as_bytes()),
            Some(Word::Text(text)) => text.as_bytes().to_vec(),
            Some(Word::Bytes(bytes)) => bytes.to_vec(),
            None => return rest,
        };
        self.feed(Input::Received(said));
        rest
    }

    fn drive(&mut self, letter: u8) {
        let input = match letter {
            6 => Input::Propose(Box::new(Plan { far_capture: true, ..Plan::standard() })),
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
        self.feed(input);
    }

    /// The end of the payload: by this end's wish, or of the flows themselves.
    fn finish(&mut self) -> Input {
        self.feed(Input::Finish(None));
        Input::Ended(Box::new(sample(2.0, 2)))
    }

    fn feed(&mut self, input: Input) {
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
                Output::Do(Action::Setting(_)) => {
                    assert!(self.secured, "changed without a credential")
                }
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
