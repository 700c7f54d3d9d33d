//! How to make a change permanent: which lines belong into which files.

use goodput_model::Permanent;

/// One text for each printed line: `in FILE: LINE`, or the file followed by its lines if there are
/// several.
pub fn lines(files: &[Permanent]) -> Vec<String> {
    files.iter().flat_map(of_file).collect()
}

fn of_file(Permanent { file, lines }: &Permanent) -> Vec<String> {
    if let [only] = lines.lines().collect::<Vec<_>>()[..] {
        return vec![format!("in {file}: {only}")];
    }
    let below = lines.lines().map(|line| format!("    {line}"));
    std::iter::once(format!("in {file}:")).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_stands_beside_its_file_and_several_below() {
        let file = |lines: &str| Permanent { file: "/etc/x".into(), lines: lines.into() };
        assert_eq!(lines(&[file("a = 1")]), ["in /etc/x: a = 1"]);
        assert_eq!(lines(&[file("[A]\nb=1")]), ["in /etc/x:", "    [A]", "    b=1"]);
    }
}
