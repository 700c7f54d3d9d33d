//! /proc/PID/stat and /proc/PID/task/TID/stat: a parent, a state, CPU time (proc_pid_stat(5)).

/// The fourth field: the parent. The second is a name in parentheses, which may contain anything.
pub fn parse_parent(text: &str) -> Option<u32> {
    let (_, behind_name) = text.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The third field: `R` running, `S` sleeping, `D` waiting for a disk, `T` stopped, and others.
pub fn parse_state(text: &str) -> Option<char> {
    let (_, behind_name) = text.rsplit_once(')')?;
    behind_name.trim_start().chars().next()
}

/// Fields 14 and 15: CPU time in user and in system mode, clock ticks.
pub fn parse_cpu(text: &str) -> Option<(u64, u64)> {
    let (_, behind_name) = text.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_cpu_time_are_behind_the_name() {
        let text = "9 (a) D) S 8 9 9 0 -1 64 1 2 3 4 70 30 0 0 20 0 1 0 5\n";
        assert_eq!(parse_state(text), Some('S'));
        assert_eq!(parse_cpu(text), Some((70, 30)));
        assert_eq!((parse_state("9 (a"), parse_cpu("9 (a) S 1\n")), (None, None));
    }

    #[test]
    fn names_with_parentheses_and_spaces_do_not_shift_the_fields() {
        assert_eq!(parse_parent("9 (a) (b c) R 8 9\n"), Some(8));
        assert_eq!(parse_parent("9 (a) R\n"), None);
        assert_eq!(parse_parent(""), None);
    }
}
