//! Who may see pages, and who may change something.

use std::net::IpAddr;

use hyper::Method;

use crate::asked::Asked;
use crate::secret::{Purpose, Secret};

/// The field of a form that proves that this server made the form.
pub const FORM_FIELD: &str = "form";

/// Decides about requests.
#[derive(Clone)]
pub struct Gate {
    /// The token.
    pub secret: Secret,
    /// Whether reading takes a login too.
    pub login_to_read: bool,
    /// Names of this host that a browser may use, besides `localhost` and addresses.
    pub names: Vec<String>,
    /// Whether connections are encrypted.
    pub encrypted: bool,
    /// The port of this server.
    pub port: u16,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another name than this server's.
    Host(String),
    /// It takes a login.
    Login,
    /// A change that no page of this server asked for.
    Foreign,
}

impl Gate {
    /// Whether this request may be answered. `open` is for what everyone may see, such as the login.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, asked: &Asked, open: bool) -> Result<(), Refusal> {
        self.check_host(asked)?;
        let changes = asked.method == Method::POST;
        if !open && (self.login_to_read || changes) && !self.knows(asked) {
            return Err(Refusal::Login);
        }
        let from_here = || {
            self.is_from_here(asked)
                && (open
                    || self
                        .secret
                        .is_seal(Purpose::Form, asked.field(FORM_FIELD).unwrap_or_default()))
        };
        if changes && !from_here() { Err(Refusal::Foreign) } else { Ok(()) }
    }

    /// Whether the request is of someone who has logged in.
    pub fn knows(&self, asked: &Asked) -> bool {
        let session = asked.session.as_deref().unwrap_or_default();
        self.secret.is_seal(Purpose::Session, session)
    }

    /// The cookie for a person with this token; `None` if it is wrong.
    pub fn login(&self, token: &str) -> Option<String> {
        let session = self.secret.seal(Purpose::Session);
        self.secret.is_token(token).then(|| self.cookie(&session))
    }

    /// The cookie that ends a session.
    pub fn logout(&self) -> String {
        self.cookie("; Max-Age=0")
    }

    /// What forms of this server contain.
    pub fn form(&self) -> String {
        self.secret.seal(Purpose::Form)
    }

    /// The name of the session's cookie. A browser sends a cookie to every port of a host, so servers on one host need
    /// different names.
    pub fn cookie_name(&self) -> String {
        format!("goodput-session-{}", self.port)
    }

    fn cookie(&self, value: &str) -> String {
        let name = self.cookie_name();
        let secure = if self.encrypted { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// A page elsewhere can make its own name mean this host's address (DNS rebinding). Its name is then here as the
    /// host; an address can't be one of its names.
    fn check_host(&self, asked: &Asked) -> Result<(), Refusal> {
        let host = asked.host.as_deref().unwrap_or_default();
        let name = without_port(host).to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let known = || self.names.iter().any(|known| known.eq_ignore_ascii_case(&name));
        if address.is_ok() || name == "localhost" || known() {
            return Ok(());
        }
        Err(Refusal::Host(host.into()))
    }

    /// Whether a page of this server asked for a change. Browsers say so in one of two ways.
    fn is_from_here(&self, asked: &Asked) -> bool {
        let scheme = if self.encrypted { "https" } else { "http" };
        let own = asked.host.as_ref().map(|host| format!("{scheme}://{host}"));
        match asked.fetch_site.as_deref() {
            Some(site) => site == "same-origin",
            None => asked.origin.is_some() && asked.origin == own,
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a token of some length";

    fn gate(login_to_read: bool) -> Gate {
        let secret = Secret::new(TOKEN).unwrap();
        Gate { secret, login_to_read, names: vec!["nas".into()], encrypted: false, port: 5280 }
    }

    fn asked(host: &str) -> Asked {
        Asked { host: Some(host.into()), ..Asked::default() }
    }

    /// A change by someone who has logged in, from a page of the server.
    fn change(gate: &Gate) -> Asked {
        let body = format!("{FORM_FIELD}={}", gate.form());
        let request = hyper::Request::post("/undo")
            .header("host", "127.0.0.1:5280")
            .header("origin", "http://127.0.0.1:5280")
            .header("cookie", gate.login(TOKEN).unwrap());
        Asked::new(&request.body(body.into()).unwrap(), &gate.cookie_name())
    }

    #[test]
    fn another_name_is_refused() {
        for host in
            ["127.0.0.1:5280", "[::1]:5280", "[::1]", "localhost", "LOCALHOST:1", "nas:5280"]
        {
            assert_eq!(gate(false).check(&asked(host), false), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:5280", "127.0.0.1.evil.example", "", "::1:x"] {
            assert_eq!(gate(false).check(&asked(host), true), Err(Refusal::Host(host.into())));
        }
    }

    #[test]
    fn reading_takes_a_login_only_if_it_has_to() {
        assert_eq!(gate(false).check(&asked("localhost"), false), Ok(()));
        let gate = gate(true);
        assert_eq!(gate.check(&asked("localhost"), false), Err(Refusal::Login));
        assert_eq!(gate.check(&asked("localhost"), true), Ok(()));
        let session = Some(gate.secret.seal(Purpose::Session));
        assert_eq!(gate.check(&Asked { session, ..asked("localhost") }, false), Ok(()));
        assert_eq!(gate.login("another token, as long"), None);
    }

    #[test]
    fn a_change_takes_a_login_a_form_and_a_page_of_this_server() {
        let gate = gate(false);
        let good = change(&gate);
        assert_eq!(gate.check(&good, false), Ok(()));
        assert_eq!(
            gate.check(&Asked { session: None, ..good.clone() }, false),
            Err(Refusal::Login)
        );
        let foreign = |asked: Asked| assert_eq!(gate.check(&asked, false), Err(Refusal::Foreign));
        foreign(Asked { origin: Some("http://127.0.0.1:80".into()), ..good.clone() });
        foreign(Asked { origin: None, ..good.clone() });
        foreign(Asked { fetch_site: Some("same-site".into()), ..good.clone() });
        // A browser that hides the origin says that the page is ours.
        let quiet = Asked { origin: Some("null".into()), ..good.clone() };
        foreign(quiet.clone());
        assert_eq!(
            gate.check(&Asked { fetch_site: Some("same-origin".into()), ..quiet }, false),
            Ok(())
        );
        let request = hyper::Request::post("/undo").body("form=AAAA".into()).unwrap();
        let unproven = Asked::new(&request, &gate.cookie_name());
        foreign(Asked { host: good.host, origin: good.origin, session: good.session, ..unproven });
    }
}
