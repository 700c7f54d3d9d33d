//! The pages of `goodput web`, over loopback and in a real browser.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod by_http;
mod in_browser;
mod served;
