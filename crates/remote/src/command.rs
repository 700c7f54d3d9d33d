//! A command for a host's shell, and a condition that the shell checks, with everything quoted.

use std::fmt;

/// Longest command in a message, characters.
const MAX_SHOWN: usize = 200;

/// A program and its arguments. Displayed, it is one line for a POSIX shell in which every word is literal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Command {
    /// The program, looked up by the host's shell.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it is for, as in `can't …`: messages say this in place of a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
}

impl Command {
    /// A program with arguments.
    pub fn new<S: AsRef<str>>(program: &str, args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        Self { program: program.into(), args, purpose: None }
    }

    /// A script of goodput for sh(1), with its arguments. `purpose` says what it is for, as in `can't …`.
    pub fn script<S: AsRef<str>>(
        purpose: impl Into<String>,
        script: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        let words = ["-c", script, "sh"].map(String::from).into_iter();
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let purpose = Some(purpose.into());
        Self { purpose, ..Self::new("sh", words.chain(args)) }
    }

    /// The same, with what it is for, as in `can't …`: messages say this in place of a long line.
    #[must_use]
    pub fn to(self, purpose: impl Into<String>) -> Self {
        Self { purpose: Some(purpose.into()), ..self }
    }

    /// The same with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The same with more arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = String>) -> Self {
        self.args.extend(args);
        self
    }

    /// What it is, for messages: its purpose, or else what a person would type, cut at a length that a terminal can take.
    pub fn shown(&self) -> String {
        let shown = self.purpose.clone().unwrap_or_else(|| self.typed());
        match shown.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }

    /// As a person would type it, with quotes only around words that need them.
    pub fn typed(&self) -> String {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        let words = std::iter::once(&self.program).chain(&self.args);
        let words = words.map(|word| match !word.is_empty() && word.chars().all(safe) {
            true => word.clone(),
            false => quoted(word),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether it fits on one line of a session: a line break in a word would end the line.
    pub fn is_one_line(&self) -> bool {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.clone().all(|word| !word.contains(['\n', '\r', '\0']))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// A word in single quotes, within which only the single quote is special (POSIX.1-2024, Shell Command
/// Language, 2.2.2).
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a command prints a line that matches a pattern: a host can check this about a value alone, when nobody
/// is connected any more.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Condition {
    command: Command,
    /// Only lines after the first one that matches this count, that one included; all lines if `None`.
    from: Option<String>,
    line: String,
    /// Other lines, any of which is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    or: Vec<String>,
}

impl Condition {
    /// Whether `command` prints a line that matches `line` from its beginning to its end. `line` is a basic regular
    /// expression (POSIX.1-2024, 9.3) without slashes and line breaks; [`Condition::literal`] makes one of any text.
    pub fn line(command: Command, line: impl Into<String>) -> Self {
        Self { command, from: None, line: line.into(), or: Vec::new() }
    }

    /// Only lines after one that matches `from` completely count; `from` is such an expression too.
    #[must_use]
    pub fn after(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// Whether this condition or `other` holds; both ask the same command.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.or.extend(std::iter::once(other.line).chain(other.or));
        self
    }

    /// The command that checks. It succeeds if the condition holds.
    pub fn command(&self) -> Command {
        Command::new("sh", ["-c", &self.to_string()])
    }

    /// The basic regular expression that matches `text` and nothing else. A space or tab matches any blank.
    pub fn literal(text: &str) -> String {
        let mut pattern = String::new();
        for c in text.chars() {
            match c {
                ' ' | '\t' => pattern.push_str("[[:blank:]]"),
                '.' | '[' | ']' | '*' | '^' | '$' | '\\' | '/' => {
                    pattern.push('\\');
                    pattern.push(c);
                }
                c => pattern.push(c),
            }
        }
        pattern
    }
}

impl fmt::Display for Condition {
    /// A pipeline that succeeds if the condition holds (sed(1), grep(1)).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} 2>/dev/null", self.command)?;
        if let Some(from) = &self.from {
            write!(f, " | sed -n {}", quoted(&format!("/^{from}$/,$p")))?;
        }
        f.write_str(" | grep -x")?;
        let mut lines = std::iter::once(&self.line).chain(&self.or);
        lines.try_for_each(|line| write!(f, " -e {}", quoted(line)))?;
        f.write_str(" >/dev/null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process;

    /// Standard output and whether it succeeded.
    fn sh(script: &str) -> (String, bool) {
        let output = process::Command::new("sh").args(["-c", script]).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }

    fn prints(text: &str) -> Command {
        Command::new("printf", ["%s\n", text])
    }

    #[test]
    fn a_condition_is_about_a_whole_line() {
        let holds = |text: &str, condition: Condition| {
            sh(&Condition { command: prints(text), ..condition }.to_string()).1
        };
        let is_on = || Condition::line(prints(""), Condition::literal("tso: on"));
        assert!(holds("a: b\ntso:\ton\nx", is_on()));
        assert!(!holds("tso: on [fixed]", is_on()) && !holds("not tso: on", is_on()));
        let other = Condition::line(prints(""), Condition::literal("tso: none"));
        assert!(holds("a\ntso: none", is_on().or(other.clone())));
        assert!(holds("a\ntso: on", is_on().or(other.clone())));
        assert!(!holds("a\ntso: off", is_on().or(other)));
        let now = || is_on().after(Condition::literal("Current settings:"));
        assert!(holds("tso: off\nCurrent settings:\ntso: on", now()));
        assert!(!holds("tso: on\nCurrent settings:\ntso: off", now()));
    }

    #[test]
    fn messages_show_what_a_person_would_type() {
        let command = Command::new("sysctl", ["-w", "net.ipv4.tcp_rmem=1 2 3"]);
        assert_eq!(command.typed(), "sysctl -w 'net.ipv4.tcp_rmem=1 2 3'");
        assert_eq!(command.shown(), command.typed());
        let long = Command::new("printf", ["%s", &"ä".repeat(1000)]);
        assert!(long.shown().chars().count() == MAX_SHOWN + 1 && long.shown().ends_with('…'));
        assert_eq!(long.to("send something").shown(), "send something");
        let script = Command::script("count", "echo \"$1\"", ["1"]);
        assert_eq!((script.shown().as_str(), sh(&script.to_string()).0.as_str()), ("count", "1\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_shell_takes_every_word_for_itself(words in prop::collection::vec("[^\0\r]{0,12}", 1..4)) {
            let command = Command::new("printf", ["%s\u{1}"]);
            let command = words.iter().fold(command, |command, word| command.arg(word.clone()));
            let printed: String = words.iter().map(|word| format!("{word}\u{1}")).collect();
            prop_assert_eq!(sh(&command.to_string()), (printed, true));
        }

        #[test]
        fn a_literal_matches_itself(text in "[ -~]{1,12}") {
            let condition = Condition::line(prints(&text), Condition::literal(&text));
            prop_assert!(sh(&condition.to_string()).1, "{}", condition);
        }
    }
}
