//! One option of a program that goodput replaces, and what goodput does with it.

/// The mode that a program is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The side that measures.
    Client,
    /// The server side.
    Server,
    /// It reports its options.
    Help,
    /// It reports its version.
    Version,
}

/// One option.
#[derive(Debug)]
pub struct Opt {
    /// `-x`.
    pub short: Option<char>,
    /// `--long`.
    pub long: Option<&'static str>,
    /// What follows it.
    pub value: Value,
    /// What it means to a client.
    pub client: Means,
    /// What it means to a server.
    pub server: Means,
}

/// What follows an option.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Nothing.
    None,
    /// A value of this name.
    One(&'static str),
    /// A value of this name, or nothing.
    Maybe(&'static str),
}

/// What goodput does with an option.
#[derive(Debug, Clone, Copy)]
pub enum Means {
    /// Becomes these arguments of goodput.
    Flag(&'static [&'static str]),
    /// Becomes these options of goodput, each with the value, converted.
    With(&'static [&'static str], fn(&str) -> Result<String, String>),
    /// Depends on other options; describes the result in words.
    Joined(&'static str),
    /// Accepted without effect, for this reason.
    Ignored(&'static str),
    /// Refused, for this reason.
    Refused(&'static str),
    /// The program has this option only in the other mode.
    Elsewhere,
}

/// Why a command line is not carried out, without the program's name in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    /// A refusal for this reason.
    pub fn because(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl Opt {
    /// The name to look it up by: the short one if there is one.
    pub fn name(&self) -> String {
        match (self.short, self.long) {
            (Some(short), _) => format!("-{short}"),
            (None, Some(long)) => format!("--{long}"),
            (None, None) => String::new(),
        }
    }

    /// Both names and the value, as shown in lists.
    pub fn spelling(&self) -> String {
        let names = [self.short.map(|s| format!("-{s}")), self.long.map(|l| format!("--{l}"))];
        let names: Vec<_> = names.into_iter().flatten().collect();
        match self.value {
            Value::None => names.join(", "),
            Value::One(value) => format!("{} {value}", names.join(", ")),
            Value::Maybe(value) => format!("{} [{value}]", names.join(", ")),
        }
    }

    /// What it means in `mode`.
    pub fn means(&self, mode: Mode) -> Means {
        if mode == Mode::Server { self.server } else { self.client }
    }
}

impl Means {
    /// The text for lists.
    pub fn text(&self) -> String {
        match self {
            Self::Flag(arguments) => format!("`{}`", arguments.join(" ")),
            Self::With(options, _) => {
                let all: Vec<_> = options.iter().map(|option| format!("`{option}`")).collect();
                all.join(", ")
            }
            Self::Joined(text) => (*text).into(),
            Self::Ignored(why) => format!("nothing: {why}"),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Elsewhere => "–".into(),
        }
    }
}

/// An option of both modes.
pub const fn both(
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    client: Means,
    server: Means,
) -> Opt {
    Opt { short, long, value, client, server }
}

/// An option of clients.
pub const fn client(
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    means: Means,
) -> Opt {
    Opt { short, long, value, client: means, server: Means::Elsewhere }
}

/// An option of servers.
pub const fn server(
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    means: Means,
) -> Opt {
    Opt { short, long, value, client: Means::Elsewhere, server: means }
}

/// An option that goodput refuses in both modes.
pub const fn refused(
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    why: &'static str,
) -> Opt {
    both(short, long, value, Means::Refused(why), Means::Refused(why))
}

/// An option that has no effect in both modes.
pub const fn ignored(
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    why: &'static str,
) -> Opt {
    both(short, long, value, Means::Ignored(why), Means::Ignored(why))
}
