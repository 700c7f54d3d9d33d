//! The client side of file servers: connects, logs in, requests a file, and returns the source of its payload.
//!
//! The [`Client`] of a [`Scheme`] opens a [`Conversation`] about one file at one [`Place`]. Each request is answered by a [`Body`]: a
//! socket whose next bytes are payload, with the payload's extent, or payload that only the conversation can read,
//! because it is encrypted or in chunks. The conversation neither moves nor evaluates payload. The caller provides
//! connections and waiting, by [`Dial`] and [`Wait`].
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod connection;
mod conversation;
mod error;
mod link;
mod login;
mod options;
mod patience;
mod place;
mod proxy;
mod rpc_log;
mod scheme;
pub mod schemes;
mod tls;
mod tls_words;
mod words;

pub use conversation::{About, Body, Client, Conversation, Extent, Open};
pub use error::FileError;
pub use link::{Dial, Ready, Wait};
pub use login::Login;
pub use options::{MOST_SLOTS, NfsOptions, Options};
pub use place::{Place, path_of_url, url_of_path};
pub use proxy::Proxy;
pub use rpc_log::{RpcLog, Rpcs};
pub use scheme::Scheme;
pub use tls::check_authorities;
