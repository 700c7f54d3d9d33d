//! The pages of `goodput web`, over loopback and in a real browser.

mod browser;
mod by_http;
mod gone;
mod in_browser;
mod served;
