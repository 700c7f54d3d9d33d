//! The server's end of its settings helper.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};

use super::message::{Answer, LONGEST_PACKET_BYTES, Refusal, Request, hear};
use crate::error::SettingError;
use crate::guard::{GuardProgram, detach};

/// How long the helper may take: to start on a machine under full load, or for a device that resets.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A running helper. Dropping it closes the connection: the helper then puts back what is still changed, and ends.
#[derive(Debug)]
pub struct Helper {
    /// One request at a time: the helper works that way too.
    socket: Mutex<OwnedFd>,
    child: Mutex<Option<Child>>,
    pid: u32,
}

impl Helper {
    /// Starts `program`, which is to call [`helper_main`](crate::helper::helper_main), and waits until it
    /// is ready. It keeps the user and the privileges that this process has now.
    ///
    /// # Errors
    /// When it can't be started, or does not say that it is ready.
    pub fn start(program: &GuardProgram) -> Result<Self, SettingError> {
        let name = program.exe.display();
        let failed =
            |cause: io::Error| SettingError::Helper(format!("can't start {name}: {cause}"));
        let pair =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, its) = pair.map_err(|cause| failed(cause.into()))?;
        set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_TIMEOUT))
            .map_err(|cause| failed(cause.into()))?;
        let mut command = Command::new(&program.exe);
        command.args(&program.args).current_dir("/");
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::inherit());
        detach(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        // This also drops this process's copy of the helper's end, so that the helper's death ends the stream.
        drop(command);
        let mut packet = vec![0; LONGEST_PACKET_BYTES];
        match recv(&ours, packet.as_mut_slice(), RecvFlags::empty()) {
            Ok((length, _)) if hear(&packet[..length]).is_ok_and(|answer| answer.is_ok()) => {}
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                let why = format!("{name} did not report that it is ready");
                return Err(SettingError::Helper(why));
            }
        }
        let pid = child.id();
        Ok(Self { socket: Mutex::new(ours), child: Mutex::new(Some(child)), pid })
    }

    /// Makes the helper carry out a request, and waits until it is done.
    pub fn carry_out(&self, request: &Request) -> Answer {
        let Some(packet) = request.packet() else {
            return Err(Refusal { why: "the value is too long".into(), ..Default::default() });
        };
        // A panic in between leaves an unread answer, which `ask` would mistake for its own.
        let Ok(socket) = self.socket.lock() else { return Err(gone("a request was cut short")) };
        ask(&socket, &packet).map_err(|why| {
            // Anything that comes later would be taken for the answer to this request.
            let _ = shutdown(&*socket, Shutdown::Both);
            gone(&why.to_string())
        })?
    }

    /// The helper's process id, for messages.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process, so that one caller can wait for its end; `None` for further callers.
    pub fn process(&self) -> Option<Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = shutdown(&*socket, Shutdown::Both);
        drop(socket);
        if let Some(mut child) = self.process() {
            // Once this returns, everything that the helper puts back is back.
            let _ = child.wait();
        }
    }
}

fn ask(socket: &OwnedFd, packet: &[u8]) -> io::Result<Answer> {
    send(socket, packet, SendFlags::NOSIGNAL)?;
    let mut heard = vec![0; LONGEST_PACKET_BYTES + 1];
    let receive = || recv(socket, heard.as_mut_slice(), RecvFlags::empty());
    let (length, _) = rustix::io::retry_on_intr(receive)?;
    match length {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(hear(&heard[..length])?),
    }
}

fn gone(why: &str) -> Refusal {
    Refusal {
        why: format!(
            "the server's settings helper has ended ({why}); it put back what was changed, and changes no more settings"
        ),
        ..Refusal::default()
    }
}
