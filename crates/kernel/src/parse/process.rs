//! /proc/PID/stat: which process started another (proc_pid_stat(5)).

/// The fourth field: the parent. The second is a name in parentheses, which may hold anything.
pub fn parse_parent(text: &str) -> Option<u32> {
    let (_, behind_name) = text.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_spaces_do_not_shift_the_fields() {
        assert_eq!(parse_parent("9 (a) (b c) R 8 9\n"), Some(8));
        assert_eq!(parse_parent("9 (a) R\n"), None);
        assert_eq!(parse_parent(""), None);
    }
}
