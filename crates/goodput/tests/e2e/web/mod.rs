//! The pages of `goodput web` and of `goodput report`, over loopback and in a real browser.

mod browser;
mod by_http;
mod gone;
mod in_browser;
mod left_changed;
mod report_page;
mod served;
