//! Where nft(8) is: ordinary users do not have its folder among those that are searched.

use std::path::Path;

/// Path of the program, if it is installed.
pub(crate) fn program() -> Option<&'static Path> {
    let places = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"];
    places.into_iter().map(Path::new).find(|path| path.exists())
}

/// Why it is not here, in words; `None` where it is.
pub(crate) fn missing() -> Option<String> {
    program().is_none().then(|| "nft is not installed: apt-get install nftables".into())
}
