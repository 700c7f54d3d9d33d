//! `goodput web`: this host's history in a browser.

mod here;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use goodput_web::{Gate, Secret, Site, Tls, listen};

use super::fleet::mesh_file;
use super::measured::{self, CLEAN_UP, Signals};
use crate::args::WebArgs;
use crate::data_dirs::state_dir;
use crate::exit::Exit;
use crate::{key_files, screen, secret_file};
use here::ThisHost;

/// The file of the token in the directory of the user's keys.
const TOKEN_FILE: &str = "web-token";

/// Answers browsers until a signal comes.
pub fn run(args: &WebArgs, state: Option<PathBuf>) -> Result<Exit> {
    let remote = !args.listen.ip().is_loopback();
    let tls = tls(args)?;
    if remote && tls.is_none() {
        bail!(
            "{} can be reached from other hosts, so it needs --tls-cert and --tls-key; `openssl req -x509 -newkey \
             rsa:2048 -nodes -days 365 -subj /CN=$(hostname) -keyout web.key -out web.crt` makes both; or forward the \
             pages by ssh: `ssh -L 7488:127.0.0.1:7488 HOST`",
            args.listen
        );
    }
    let (secret, token_file) = token(args.token_file.as_deref())?;
    let mut names = args.name.clone();
    names.push(rustix::system::uname().nodename().to_string_lossy().into_owned());
    if let Some(file) = &args.mesh {
        // Each visit of the matrix reads it again: it may have changed.
        mesh_file::read(file)?;
    }
    let (state_dir, mesh) = (state_dir(state)?, args.mesh.clone());
    let host = ThisHost { state_dir, mesh, memory: Mutex::default() };
    let runtime = measured::plain_runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let (login_to_read, encrypted) = (remote || args.login, tls.is_some());
        let listening = listen(args.listen, "--listen", tls).await?;
        let port = listening.port()?;
        let site = Site::new(host, Gate { secret, login_to_read, names, encrypted, port });
        let lines = [
            format!("goodput web listening on {}", listening.url()?),
            format!("token in {}", token_file.display()),
        ];
        // The parent process may have gone without waiting for this.
        let _ = lines.iter().try_for_each(screen::line);
        tokio::select! {
            () = listening.serve(site.clone()) => {}
            () = signals.next() => {}
        }
        // A test that can't print its events any more would end without a result.
        tokio::select! {
            () = site.end_tests() => {}
            () = signals.next() => {}
            () = tokio::time::sleep(CLEAN_UP) => {}
        }
        anyhow::Ok(())
    });
    // Dropping the runtime would wait for ever for a page that waits for a dead disk.
    runtime.shutdown_timeout(CLEAN_UP);
    outcome?;
    Ok(Exit::Fine)
}

fn tls(args: &WebArgs) -> Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    let key = secret_file::read(key, "the private key")?;
    Ok(Some(Tls::new(certificate, &key)?))
}

/// The token, made on first use, and its file.
fn token(chosen: Option<&Path>) -> Result<(Secret, PathBuf)> {
    let file = match chosen {
        Some(chosen) => chosen.to_owned(),
        None => {
            let file = key_files::config_dir()?.join(TOKEN_FILE);
            key_files::make_directory(&file)?;
            file
        }
    };
    let made = hex(&rand::random::<[u8; 32]>());
    key_files::keep_text(&file, "the token", &format!("{made}\n"), false)?;
    let text = secret_file::read(&file, "the token")?;
    let secret = Secret::new(&text).map_err(anyhow::Error::msg);
    let secret = secret.with_context(|| format!("can't use the token in {}", file.display()))?;
    Ok((secret, file))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
