//! A host to log in to by SSH, with or without the scheme.

use goodput_remote::{Address, BadAddress};

/// `[USER@]HOST[:PORT]`
pub fn login(text: &str) -> Result<Address, BadAddress> {
    match text.starts_with("ssh://") {
        true => text.parse(),
        false => format!("ssh://{text}").parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_be_written_with_or_without_its_scheme() {
        assert_eq!(login("me@h:22"), login("ssh://me@h:22"));
        for wrong in ["-oProxyCommand=x", "iperf3://h", "", "me@"] {
            assert!(login(wrong).is_err(), "{wrong}");
        }
    }
}
