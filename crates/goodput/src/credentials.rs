//! A client's credentials: its own key, the shared token, and user names with passwords.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use goodput_engine::{Credentials, EngineError, OwnKey, Servers, Target};
use goodput_wire::WireError;
use goodput_wire::keys::KeyFile;
use goodput_wire::login::{Login, Padding, Users};
use goodput_wire::session::{ServerIs, Token};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::args::CredentialArgs;
use crate::known_servers::Known;
use crate::{key_files, screen, secret_file};

/// iperf3's client also takes a password from this variable.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";

/// The credentials in the arguments. Asks for the password if they name a user but no password.
pub fn credentials(args: &CredentialArgs, target: &Target) -> Result<Credentials> {
    let login = match (&args.username, &args.rsa_public_key) {
        (Some(username), Some(key)) => Some(login(username, key, args)?),
        _ => None,
    };
    let credentials =
        Credentials { token: token(args.token_file.as_deref())?, login, key: own_key(args)? };
    if credentials.key.is_none() && credentials.token.is_none() && !args.no_key {
        refuse_if_known(target)?;
    }
    Ok(credentials)
}

/// Refuses a server that is known by its key: the server shows its key only to a client with a key, so anyone could
/// answer in its place.
fn refuse_if_known(target: &Target) -> Result<()> {
    // Without a configuration directory nothing is known.
    let Ok(known) = Known::new(None) else { return Ok(()) };
    if !target.protocol.far_end.knows_keys {
        return Ok(());
    }
    // As with a default key that can't be read: a process run as another user, for example in root's home, has no
    // keys of its own.
    let found = known.find(target).unwrap_or_else(|why| {
        screen::say(format_args!("warning: {why}; goodput trusts any server that answers"));
        ServerIs::Unknown
    });
    if let ServerIs::Known { by, .. } = found {
        let why = format!(
            "it is known by its key ({by}), which it shows only to a client with a key; make one with `goodput \
             key`, or use --no-key to trust any server that answers"
        );
        let failure = WireError::NotPermitted(why);
        return Err(EngineError::Wire { target: target.text.clone(), failure }.into());
    }
    Ok(())
}

/// The key in the arguments, or the default key if there is one.
fn own_key(args: &CredentialArgs) -> Result<Option<OwnKey>> {
    if args.no_key {
        return Ok(None);
    }
    let own = match &args.key {
        Some(file) => {
            key_files::check_exists(file)?;
            Some(key_files::read(file)?)
        }
        None => usual_key(args.server_key.is_some())?,
    };
    let Some(own) = own else { return Ok(None) };
    let servers = Arc::new(Known::new(args.server_key)?);
    // A user who names the server's key wants to be sure which server answers.
    let asked = args.key.is_some() || args.server_key.is_some();
    Ok(Some(OwnKey { key: Arc::new(own.key), asked, servers }))
}

/// The default key. If it is needed, a missing or unusable key is an error; otherwise an unusable key is a warning.
fn usual_key(is_needed: bool) -> Result<Option<KeyFile>> {
    let usual = key_files::default_key();
    if is_needed {
        let file = usual?;
        key_files::check_exists(&file)?;
        return key_files::read(&file).map(Some);
    }
    let Some(file) = usual.ok().filter(|file| file.symlink_metadata().is_ok()) else {
        return Ok(None);
    };
    let read = key_files::read(&file);
    Ok(read
        .inspect_err(|why| screen::say(format_args!("warning: continuing without a key: {why:#}")))
        .ok())
}

/// Reads a token from its file.
pub fn token(file: Option<&Path>) -> Result<Option<Token>> {
    let Some(file) = file else { return Ok(None) };
    let token = Token::new(secret_file::read(file, "the token")?)
        .with_context(|| format!("the token in {}", file.display()))?;
    Ok(Some(token))
}

/// The users that a server accepts, and the key for which their passwords are encrypted.
pub fn users(
    list: Option<&Path>,
    private_key: Option<&Path>,
    pkcs1_padding: bool,
) -> Result<Option<Users>> {
    let (Some(list), Some(key)) = (list, private_key) else { return Ok(None) };
    let private_key = secret_file::read(key, "the private key")?;
    let lines = secret_file::read_open(list, "the list of users")?;
    let users = Users::new(&private_key, &lines, padding(pkcs1_padding))
        .with_context(|| format!("the key {} and the users {}", key.display(), list.display()))?;
    Ok(Some(users))
}

fn login(username: &str, key: &Path, args: &CredentialArgs) -> Result<Login> {
    let password = match &args.password_file {
        Some(file) => first_line(&secret_file::read(file, "the password")?),
        None => match std::env::var(PASSWORD_VARIABLE) {
            Ok(password) => password,
            Err(_) => ask(username)?,
        },
    };
    Login::new(
        username.into(),
        password,
        &secret_file::read_open(key, "the public key")?,
        padding(args.pkcs1_padding),
    )
    .with_context(|| format!("the login of {username} with {}", key.display()))
}

fn padding(pkcs1: bool) -> Padding {
    if pkcs1 { Padding::Pkcs1 } else { Padding::Oaep }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Asks on the terminal, without echo.
fn ask(username: &str) -> Result<String> {
    let terminal =
        fs::File::options().read(true).write(true).open("/dev/tty").with_context(|| {
            format!("there is no terminal to ask for the password; use --password-file or {PASSWORD_VARIABLE}")
        })?;
    let shown = tcgetattr(&terminal).context("can't read the terminal's settings")?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ECHONL);
    write!(&terminal, "password of {username}: ")
        .context("can't ask for the password on the terminal")?;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)
        .context("can't hide the typed password on the terminal")?;
    let mut line = String::new();
    let typed = BufReader::new(&terminal).read_line(&mut line);
    let restored = tcsetattr(&terminal, OptionalActions::Flush, &shown);
    typed.context("can't read from the terminal")?;
    restored.context("can't switch the terminal's echo back on")?;
    if line.is_empty() {
        bail!("no password was typed");
    }
    Ok(first_line(&line))
}
