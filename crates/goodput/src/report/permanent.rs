//! How to make a change permanent: which lines belong into which files or shells. They are to be copied, so that none is
//! wrapped.

use goodput_model::Permanent;

use super::style;

/// One text for each printed line: `in FILE: LINE`, or the file followed by its lines if there are
/// several.
pub fn lines(files: &[Permanent]) -> Vec<String> {
    files.iter().flat_map(of_file).collect()
}

fn of_file(Permanent { file, lines }: &Permanent) -> Vec<String> {
    if let [only] = lines.lines().collect::<Vec<_>>()[..] {
        return vec![format!("in {file}: {}", style::strong(only))];
    }
    let below = lines.lines().map(|line| format!("    {}", style::strong(line)));
    std::iter::once(format!("in {file}:")).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::super::labelled;
    use super::*;
    use crate::fit::fit;
    use anstream::adapter::strip_str;

    #[test]
    fn one_line_stands_beside_its_file_and_several_below() {
        let file = |lines: &str| Permanent { file: "/etc/x".into(), lines: lines.into() };
        let plain = |text: &str| {
            let styled = lines(&[file(text)]);
            styled.iter().map(|line| strip_str(line).to_string()).collect::<Vec<_>>()
        };
        assert_eq!(plain("a = 1"), ["in /etc/x: a = 1"]);
        assert_eq!(plain("[A]\nb=1"), ["in /etc/x:", "    [A]", "    b=1"]);
    }

    #[test]
    fn a_line_to_copy_is_never_wrapped() {
        let command = "goodput settings set --save 'sysctl.net.ipv4.tcp_rmem=4096 131072 8388608'";
        let file = |lines: String| Permanent { file: "a root shell".into(), lines };
        for text in [command.to_owned(), format!("{command}\n{command} --on ssh://root@b")] {
            let mut out = String::new();
            labelled::lines(&mut out, "for good", lines(&[file(text.clone())]));
            let fitted = strip_str(&fit(&out, Some(60))).to_string();
            for line in text.lines() {
                assert!(fitted.contains(line), "{fitted}");
            }
        }
    }
}
