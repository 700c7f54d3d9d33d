//! The part of nats-server's configuration that lets the users of a fleet in.

use super::rights::Login;

/// How long an agent may take to answer a call, as nats-server writes it: longer than it takes to start a server.
const ANSWER_TIME: &str = "1m";

const HEAD: &str = "\
# The users of a fleet of goodput, and the subjects that each may use; made by `goodput fleet keys`.
# Include it in the configuration of nats-server: include \"fleet.conf\"
";

/// The text of the file: a block of users, each with its public nkey (docs.nats.io, \"Authorization\").
pub fn server_file(logins: &[(Login, String)]) -> String {
    let users: String = logins.iter().map(|(login, key)| user(login, key)).collect();
    format!("{HEAD}authorization {{\n  users = [\n{users}  ]\n}}\n")
}

fn user(login: &Login, key: &str) -> String {
    let answers = match login.answers {
        true => format!("        allow_responses: {{ max: 1, expires: \"{ANSWER_TIME}\" }}\n"),
        false => String::new(),
    };
    // A name of a site has no line breaks.
    format!(
        "    # {}\n    {{\n      nkey: {key}\n      permissions: {{\n        publish: {{ allow: [\n{}        ] }}\n        \
         subscribe: {{ allow: [\n{}        ] }}\n{answers}      }}\n    }}\n",
        login.who,
        lines(&login.publish),
        lines(&login.subscribe)
    )
}

fn lines(subjects: &[String]) -> String {
    subjects.iter().map(|subject| format!("          \"{subject}\"\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_its_key_and_its_subjects() {
        let login = |who: &str, answers| Login {
            who: who.into(),
            publish: vec!["x.a".into(), "y.>".into()],
            subscribe: vec!["z".into()],
            answers,
        };
        let text = server_file(&[
            (login("the coordinator", false), "UA".into()),
            (login("a", true), "UB".into()),
        ]);
        assert_eq!(text.matches("nkey: U").count(), 2, "{text}");
        assert_eq!(text.matches("allow_responses").count(), 1, "{text}");
        for line in ["    # a\n", "\"y.>\"\n", "nkey: UA\n"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
