//! A transfer of the test itself, for goodput to watch.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A connection over loopback on which one end writes until it is dropped.
pub struct Transfer {
    /// Port of the reader.
    pub port: u16,
    /// Port of the writer.
    pub client_port: u16,
    stop: Arc<AtomicBool>,
    ends: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// `pause` between writes of 16 KB.
    pub fn start(pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let mut writer = TcpStream::connect(address).expect("loopback can be reached");
        let client_port = writer.local_addr().expect("a connection has an address").port();
        let (mut reader, _) = listener.accept().expect("the connection is there");
        let stop = Arc::new(AtomicBool::new(false));
        let ends = vec![
            thread::spawn(move || while reader.read(&mut [0; 1 << 17]).is_ok_and(|n| n > 0) {}),
            thread::spawn({
                let stop = stop.clone();
                move || {
                    while !stop.load(Ordering::Relaxed) && writer.write_all(&[7; 16_384]).is_ok() {
                        thread::sleep(pause);
                    }
                }
            }),
        ];
        Self { port: address.port(), client_port, stop, ends }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ends
            .drain(..)
            .for_each(|end| end.join().expect("an end of a transfer does not panic"));
    }
}
