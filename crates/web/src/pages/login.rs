//! Logging in and out.

use hyper::StatusCode;
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};

/// The form.
pub const PAGE: Page = Page { open: true, ..Page::of("/login", show) };

/// Takes the token.
pub const LOGIN: Page = Page { open: true, ..Page::change("/login", login) };

/// Ends the session.
pub const LOGOUT: Page = Page::change("/logout", logout);

fn show(_: &Visit) -> Result<Answer, Trouble> {
    Ok(Answer::page("Log in", form()))
}

fn form() -> Markup {
    html! {
        p { "The token is in the file that " code { "goodput web" } " named when it started." }
        form method="post" action="/login" {
            // Password managers keep a token under a name.
            input type="text" name="user" value="goodput" autocomplete="username" hidden;
            p { label for="token" { "Token" }
                input #token type="password" name="token" autocomplete="current-password" required; }
            button type="submit" { "Log in" }
        }
    }
}

fn login(visit: &Visit) -> Result<Answer, Trouble> {
    match visit.gate.login(visit.asked.field("token").unwrap_or_default()) {
        Some(cookie) => Ok(Answer::Go { to: "/".into(), cookie: Some(cookie) }),
        None => Err(Trouble {
            status: StatusCode::FORBIDDEN,
            why:
                "this is not the token of this server; go back and enter the one in its token file"
                    .into(),
        }),
    }
}

fn logout(visit: &Visit) -> Result<Answer, Trouble> {
    Ok(Answer::Go { to: "/login".into(), cookie: Some(visit.gate.logout()) })
}
