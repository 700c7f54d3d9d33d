//! The registry of schemes: the ways to request a file.

pub mod ftp;
pub mod http;
pub mod nfs;

use crate::conversation::Scheme;

/// The list is the source of truth: targets and the conformance test use it.
pub const ALL: &[&Scheme] = &[&http::HTTP, &http::HTTPS, &ftp::FTP, &ftp::FTPS, &nfs::NFS];

/// The scheme with this id.
pub fn find(id: &str) -> Option<&'static Scheme> {
    ALL.iter().copied().find(|scheme| scheme.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;

    #[test]
    fn every_scheme_is_found_by_its_places() {
        for (number, scheme) in ALL.iter().enumerate() {
            let place = Place::parse(&format!("{}://[::1]/a", scheme.id)).unwrap();
            assert_eq!((place.scheme().id, place.port()), (scheme.id, scheme.port));
            assert!(!scheme.summary.is_empty() && scheme.port > 0);
            assert!(ALL[..number].iter().all(|other| other.id != scheme.id));
        }
    }
}
