//! Which file keeps a value: one of sysctl.d that is ours alone, or else the unit that sets it at boot.
//!
//! Of several `.link` files that match a device only the first is applied, and one of ours could take a device's name away;
//! a rule of udev runs before the device is up. So what is not a sysctl is set at boot by goodput itself.

use std::path::{Path, PathBuf};

use goodput_model::Permanent;

/// Begins what belongs to another system.
const FREEBSD: &str = "FreeBSD ";
/// Where our parameters of the kernel stand.
pub const PARAMETERS: &str = "/etc/sysctl.d/90-goodput.conf";
/// Where files of ours may stand.
pub const FOLDERS: [&str; 2] = ["/etc/sysctl.d", "/etc/systemd/system"];

/// The file that keeps all of a value by itself, if there is one.
pub fn own_file(forms: &[Permanent]) -> Option<&'static str> {
    let mut here = forms.iter().filter(|form| !form.file.starts_with(FREEBSD)).peekable();
    here.peek()?;
    here.all(|form| form.file == PARAMETERS).then_some(PARAMETERS)
}

/// Whether a file may be ours by its name.
pub fn is_ours(name: &str) -> bool {
    name.contains("goodput")
}

/// An absolute path below another root than `/`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_file_of_ours_says_in_full_is_kept_by_it() {
        let forms = |files: &[&str]| -> Vec<Permanent> {
            let form = |file: &&str| Permanent { file: (*file).into(), lines: String::new() };
            files.iter().map(form).collect()
        };
        let kept = |files: &[&str]| own_file(&forms(files));
        assert_eq!(kept(&[PARAMETERS, "FreeBSD /etc/sysctl.conf"]), Some(PARAMETERS));
        assert_eq!(kept(&[PARAMETERS, "/etc/udev/rules.d/90-goodput.rules"]), None);
        assert_eq!(kept(&["/etc/fstab"]), None);
        assert_eq!(kept(&["FreeBSD /etc/rc.conf"]), None);
    }
}
