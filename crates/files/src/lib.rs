//! The client side of file servers: connects, logs in, requests a file, and returns the source of its payload.
//!
//! A [`Scheme`] opens a [`Conversation`] about one file at one [`Place`]. Each request is answered by a [`Body`]: a
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
mod patience;
mod place;
mod proxy;
pub mod schemes;
mod tls;
mod tls_words;
mod words;

pub use conversation::{About, Body, Conversation, Extent, Options, Scheme};
pub use error::FileError;
pub use link::{Dial, Ready, Wait};
pub use login::Login;
pub use place::{Place, path_of_url, url_of_path};
pub use proxy::Proxy;
pub use schemes::nfs::{MOST_SLOTS, NfsOptions, RpcLog, Rpcs};
