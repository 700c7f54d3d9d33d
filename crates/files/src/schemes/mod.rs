//! The registry of schemes: the ways to request a file.

pub mod ftp;
pub mod http;
pub mod nfs;

use crate::conversation::Client;
use crate::error::FileError;
use crate::place::Place;

/// The list is the source of truth: targets and the conformance test use it.
pub const ALL: &[&Client] = &[&http::HTTP, &http::HTTPS, &ftp::FTP, &ftp::FTPS, &nfs::NFS];

/// The client of the scheme with this id.
pub fn find(id: &str) -> Option<&'static Client> {
    ALL.iter().copied().find(|client| client.scheme.id == id)
}

/// Reads `SCHEME://[USER@]HOST[:PORT]/PATH`. A password is refused without repeating it: anyone who may list this host's
/// processes could read it.
pub fn parse(text: &str) -> Result<Place, FileError> {
    Place::parse(text, |id| find(id).map(|client| &client.scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_found_by_its_places() {
        for (number, Client { scheme, .. }) in ALL.iter().enumerate() {
            let place = parse(&format!("{}://[::1]/a", scheme.id)).unwrap();
            assert_eq!((place.scheme(), place.port()), (scheme, scheme.port));
            assert!(!scheme.summary.is_empty() && scheme.port > 0);
            assert!(ALL[..number].iter().all(|other| other.scheme.id != scheme.id));
        }
    }
}
