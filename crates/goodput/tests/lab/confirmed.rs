//! A change of the far host's device stays only if full packets get through after it.

use std::process::{Child, Stdio};

use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::Stage;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![Test::of_facts("confirmed::after_full_packets_got_through", after_full_packets)]
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
