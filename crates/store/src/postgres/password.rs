//! The password of a database, from where libpq takes it: `PGPASSWORD`, or the file `~/.pgpass` (`PGPASSFILE`).

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Permission of the group or of everyone to read or change a file (inode(7)).
const OTHERS: u32 = 0o077;

/// The password for one of these logins: host, port, database and user.
pub(super) fn of_environment(logins: &[[String; 4]]) -> Option<String> {
    if let Ok(password) = env::var("PGPASSWORD") {
        return Some(password);
    }
    let text = read(&file()?)?;
    logins.iter().find_map(|login| of_file(&text, login))
}

fn file() -> Option<PathBuf> {
    let named = env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass")))
}

/// The text of the file, if only its owner can read it: libpq ignores any other.
fn read(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    if mode & OTHERS != 0 {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// The password in the first line whose fields fit (PostgreSQL's documentation, "The Password File").
fn of_file(text: &str, login: &[String; 4]) -> Option<String> {
    let fits = |fields: &[String]| {
        let (names, _) = fields.split_at_checked(login.len())?;
        let fit = names.iter().zip(login).all(|(name, own)| name == "*" || name == own);
        fit.then(|| fields.get(login.len()).cloned()).flatten()
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| fits(&fields))
}

/// The fields of a line, which colons part. A backslash before a colon or another backslash takes its meaning away.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let is_literal = letter == '\\';
        match (if is_literal { letters.next() } else { Some(letter) }, fields.last_mut()) {
            (Some(':'), _) if !is_literal => fields.push(String::new()),
            (Some(letter), Some(field)) => field.push(letter),
            _ => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\n\
        db:5432:net:ada:first\n\
        db:*:*:ada:with\\:colon\\\\and more\n\
        short:line\n\
        *:*:*:*:any:thing\n";

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let of = |login: [&str; 4]| of_file(FILE, &login.map(String::from)).unwrap();
        assert_eq!(of(["db", "5432", "net", "ada"]), "first");
        assert_eq!(of(["db", "5433", "net", "ada"]), "with:colon\\and more");
        assert_eq!(of(["other", "5432", "net", "bob"]), "any");
        assert_eq!(of_file("db:5432:net:ada:x", &["a", "b", "c", "d"].map(String::from)), None);
        assert_eq!(
            of_file("db:5432:net:ada", &["db", "5432", "net", "ada"].map(String::from)),
            None
        );
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::write(&path, FILE).unwrap();
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_some(), is_read, "{mode:o}");
        }
        assert_eq!(read(&folder.path().join("none")), None);
    }
}
