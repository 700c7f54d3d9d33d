//! What a Debian package puts where (Debian policy, chapters 9 and 12).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_tools::shell::{capture, command, root, run};

/// Files of `packaging`, as they are, and their places.
const FILES: [(&str, &str); 5] = [
    ("debian/default", "etc/default/goodput"),
    ("debian/copyright", "usr/share/doc/goodput/copyright"),
    ("grafana/goodput.json", "usr/share/doc/goodput/examples/grafana/goodput.json"),
    ("prometheus/goodput.rules.yml", "usr/share/doc/goodput/examples/prometheus/goodput.rules.yml"),
    ("debian/lintian-overrides", "usr/share/lintian/overrides/goodput"),
];
/// Shells, and where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/goodput"),
    ("zsh", "usr/share/zsh/vendor-completions/_goodput"),
    ("fish", "usr/share/fish/vendor_completions.d/goodput.fish"),
];
const PROGRAM: &str = "usr/bin/goodput";
const UNITS: &str = "usr/lib/systemd/system";
const MANUALS: &str = "usr/share/man/man1";
const CHANGELOG: &str = "usr/share/doc/goodput/changelog";

/// A tree of files that will be the package's.
pub struct Tree {
    top: PathBuf,
}

impl Tree {
    /// All files, of `program` and with `changelog`, below `top`.
    pub fn lay(top: PathBuf, program: &Path, changelog: &str) -> Result<Self> {
        let tree = Self { top };
        tree.program(program)?;
        for (from, to) in FILES {
            tree.write(to, &read(&packaging(from))?)?;
        }
        for (shell, to) in COMPLETIONS {
            let script = capture(tree.generate().args(["completions", shell]))?;
            tree.write(to, script.as_bytes())?;
        }
        tree.units()?;
        run(tree.generate().arg("man").arg(tree.made(MANUALS)?))?;
        tree.write(CHANGELOG, changelog.as_bytes())?;
        // Manuals and changelogs are packed, without a time that would differ from build to build.
        for packed in tree.below(MANUALS)?.iter().chain([&tree.top.join(CHANGELOG)]) {
            run(command("gzip").args(["--best", "--no-name"]).arg(packed))?;
        }
        Ok(tree)
    }

    /// Its top.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Writes a file that anyone may read.
    pub fn write(&self, to: &str, content: &[u8]) -> Result<()> {
        self.write_as(to, content, 0o644)
    }

    /// Writes a file with these permissions.
    pub fn write_as(&self, to: &str, content: &[u8], mode: u32) -> Result<()> {
        let path = Path::new(to);
        let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
        let path = self.made(folder)?.join(path.file_name().context("a file has a name")?);
        fs::write(&path, content).with_context(|| format!("can't write {}", path.display()))?;
        allow(&path, mode)
    }

    /// Bytes of all files, and the MD5 sum of each as `md5sum` prints it (deb-md5sums(5)).
    pub fn sums(&self) -> Result<(u64, String)> {
        let (mut bytes, mut sums) = (0, String::new());
        for file in self.below("etc")?.into_iter().chain(self.below("usr")?) {
            bytes += fs::metadata(&file)?.len();
            let name = file.strip_prefix(&self.top)?;
            sums += &capture(command("md5sum").arg(name).current_dir(&self.top))?;
        }
        Ok((bytes, sums))
    }

    /// Without symbols, which nobody who installs it needs.
    fn program(&self, program: &Path) -> Result<()> {
        let to = self.made("usr/bin")?.join("goodput");
        run(command("strip").arg("--strip-all").arg("-o").arg(&to).arg(program))?;
        allow(&to, 0o755)
    }

    fn units(&self) -> Result<()> {
        for unit in fs::read_dir(packaging("systemd")).context("can't list packaging/systemd")? {
            let unit = unit?;
            let name = unit.file_name();
            let to = format!("{UNITS}/{}", name.to_string_lossy());
            self.write(&to, &read(&unit.path())?)?;
        }
        Ok(())
    }

    /// The program writes about itself, whoever runs it.
    fn generate(&self) -> std::process::Command {
        let mut generate = std::process::Command::new(self.top.join(PROGRAM));
        generate.env_clear().arg("generate");
        generate
    }

    /// A folder, which is made if it is missing.
    fn made(&self, folder: &str) -> Result<PathBuf> {
        let folder = self.top.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        Ok(folder)
    }

    /// All files below a folder, in order.
    fn below(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let (mut files, mut folders) = (Vec::new(), vec![self.top.join(folder)]);
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder)
                .with_context(|| format!("can't list {}", folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A file of `packaging`.
pub fn packaging(name: &str) -> PathBuf {
    root().join("packaging").join(name)
}

/// The content of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("can't read {}", path.display()))
}

fn allow(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("can't set the permissions of {}", path.display()))
}
