//! File servers as a client sees them: it connects, logs in, asks for a file, and hands back where the payload comes.
//!
//! A [`Scheme`] opens a [`Conversation`] about one file at one [`Place`]. Each question is answered by a [`Body`]: a
//! socket from which nothing but payload comes next, with how far that reaches, or payload that only the conversation
//! can read, because it is encrypted or in chunks. Who moves the payload, and what is concluded from it, is not its business:
//! connections and waiting are the caller's, by [`Dial`] and [`Wait`].
#![forbid(unsafe_code)]
// A library returns what it has to say. The print macros would also panic if nobody reads.
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
