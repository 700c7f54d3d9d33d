//! A change of the far host's device stays only if full packets get through after it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::{Stage, look_until};

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("confirmed::after_full_packets_got_through", after_full_packets),
        Test::of_facts("confirmed::or_put_back_while_both_ends_still_talk", or_put_back),
    ]
}

/// A server that lets its client change the queue of its device.
struct Scene {
    stage: Stage,
    server: Child,
    target: String,
    log: std::path::PathBuf,
}

impl Scene {
    fn set() -> Result<Self, Failed> {
        let stage = Stage::set(&[])?;
        let allowed = ["--allow-settings", "link.txqueuelen@*"];
        let (server, target, log) = stage.unprivileged_server(&allowed)?;
        Ok(Self { stage, server, target, log })
    }

    /// Length of the far device's queue now, packets.
    fn length(&self) -> Result<String, Failed> {
        let far = self.stage.lab.far();
        let read =
            format!("mount -t sysfs none /sys && cat /sys/class/net/{}/tx_queue_len", far.device());
        let output = far.command("unshare")?.args(["--mount", "sh", "-c", &read]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A comparison of that length through `target`.
    fn compare(&self, target: &str, before: &str) -> Result<Child, Failed> {
        let setting = format!("far:link.txqueuelen@{}={before},77", self.stage.lab.far().device());
        let token = self.stage.token_file()?;
        let words = ["compare", target, &setting, "--token-file", &token, "--no-store"];
        let short = ["-t", "0.3", "--max-time", "5"];
        let mut command = self.stage.goodput(&[&words[..], &short].concat())?;
        Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    fn logged(&self) -> Result<String, Failed> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}

fn after_full_packets() -> Result<(), Failed> {
    let scene = Scene::set()?;
    let before = scene.length()?;
    let compared = scene.compare(&scene.target, &before)?.wait_with_output()?;
    let log = scene.logged()?;
    let said = ["to \"77\", to be confirmed", "echo 4000 bytes", "confirm what was tried"];
    let is_confirmed =
        said.into_iter().all(|words| log.contains(words)) && !log.contains("was not confirmed");
    let is_back = scene.length()? == before;
    match is_back && is_confirmed && matches!(compared.status.code(), Some(0 | 4)) {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&compared.stderr).into_owned();
            Err(format!("{}: {said}\nbefore {before}\n{log}", compared.status).into())
        }
    }
}

/// Whatever is as long as a full packet waits until the far end has put the change back.
fn or_put_back() -> Result<(), Failed> {
    let scene = Scene::set()?;
    let before = scene.length()?;
    let target: SocketAddr = scene.target.parse()?;
    let gate = Arc::new(Gate::default());
    let held = gate.clone();
    let way = scene.stage.lab.near().within(move || small_packets_only(target, held))??;
    let compare = scene.compare(&way.to_string(), &before)?;
    look_until("the far end to put the change back", || {
        Ok(scene.logged()?.contains(&format!("was not confirmed: {before} again")))
    })?;
    let is_back = scene.length()? == before;
    gate.open();
    let compared = compare.wait_with_output()?;
    let said = String::from_utf8_lossy(&compared.stderr).into_owned();
    let why = "was put back, because no full packets got through in both directions";
    match is_back && compared.status.code() == Some(2) && said.contains(why) {
        true => Ok(()),
        false => Err(format!("{}: {said}\n{}", compared.status, scene.logged()?).into()),
    }
}

/// Closed until someone opens it.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.1.wait_while(is_open, |is_open| !*is_open));
    }
}

/// More than any message of a conversation before its first measurement, and less than the echo, bytes.
const FULL_BYTES: usize = 2800;

/// A way to `target` for the conversation and its second connection, which the test's client makes. What is long waits at
/// the gate. Returns where it begins.
fn small_packets_only(target: SocketAddr, gate: Arc<Gate>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    // In the network namespace of this thread.
    std::thread::spawn(move || {
        for client in listener.incoming().take(2).flatten() {
            let Ok(server) = TcpStream::connect(target) else { return };
            let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
                return;
            };
            let gate = gate.clone();
            std::thread::spawn(move || pass_on(client, to_server, Some(&gate)));
            std::thread::spawn(move || pass_on(server, to_client, None));
        }
    });
    Ok(address)
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, gate: Option<&Gate>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Some(gate) = gate.filter(|_| read >= FULL_BYTES) {
            gate.pass();
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
