//! The remaining lifetime of an address or a route: set by router advertisements and DHCP, and put
//! back with the object (include/uapi/linux/{if_addr,rtnetlink}.h).

use crate::object_kind::ObjectKind;
use crate::raw::word;

/// `IFA_CACHEINFO` with `struct ifa_cacheinfo`: preferred, valid, created, updated.
const IFA_CACHEINFO: u16 = 6;
/// `RTA_CACHEINFO` with `struct rta_cacheinfo`, whose third word is the route's expiry.
const RTA_CACHEINFO: u16 = 12;
const RTA_EXPIRES: u16 = 23;
const EXPIRES_AT: usize = 8;
/// `USER_HZ`, the unit of that word (include/asm-generic/param.h).
const TICKS_PER_S: u32 = 100;
/// `INFINITY_LIFE_TIME`.
const FOR_GOOD: u32 = u32::MAX;

/// Remaining time when the kernel answered, seconds. `None`: for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lasting {
    /// Until new connections should use another address; for a route the same as `valid_s`.
    pub preferred_s: Option<u32>,
    /// Until the kernel removes it.
    pub valid_s: Option<u32>,
}

impl Lasting {
    /// The lifetime in the attributes of an object; `None` if it lasts for good, or can't end.
    pub(crate) fn from_attributes(kind: ObjectKind, attributes: &[(u16, Vec<u8>)]) -> Option<Self> {
        let find = |wanted| attributes.iter().find(|(kind, _)| *kind == wanted).map(|(_, v)| v);
        let lasting = match kind {
            ObjectKind::Address => {
                let value = find(IFA_CACHEINFO)?;
                let of = |at| word(value, at).filter(|seconds| *seconds != FOR_GOOD);
                Self { preferred_s: of(0), valid_s: of(4) }
            }
            ObjectKind::Route => {
                let ticks = word(find(RTA_CACHEINFO)?, EXPIRES_AT)?.cast_signed();
                let left = u32::try_from(ticks).unwrap_or(0).div_ceil(TICKS_PER_S);
                let left = (ticks != 0).then_some(left);
                Self { preferred_s: left, valid_s: left }
            }
            _ => return None,
        };
        (lasting != Self { preferred_s: None, valid_s: None }).then_some(lasting)
    }

    /// The attribute that limits an object's lifetime to this.
    pub(crate) fn attribute(self, kind: ObjectKind) -> (u16, Vec<u8>) {
        let valid = self.valid_s.unwrap_or(FOR_GOOD);
        if kind == ObjectKind::Route {
            return (RTA_EXPIRES, valid.to_ne_bytes().to_vec());
        }
        let words = [self.preferred_s.unwrap_or(FOR_GOOD), valid, 0, 0];
        (IFA_CACHEINFO, words.map(u32::to_ne_bytes).concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_addresses_and_ticks_of_routes_are_reported() {
        let words = |words: [u32; 4]| words.map(u32::to_ne_bytes).concat();
        let address =
            |words_of| Lasting::from_attributes(ObjectKind::Address, &[(6, words(words_of))]);
        let lasting = Lasting { preferred_s: Some(500), valid_s: Some(1000) };
        assert_eq!(address([500, 1000, 7, 8]), Some(lasting));
        assert_eq!(address([FOR_GOOD, FOR_GOOD, 7, 8]), None);
        let deprecated = Lasting { preferred_s: Some(0), valid_s: None };
        assert_eq!(address([0, FOR_GOOD, 0, 0]), Some(deprecated));
        assert_eq!(lasting.attribute(ObjectKind::Address), (6, words([500, 1000, 0, 0])));
        let route = |expires| {
            Lasting::from_attributes(ObjectKind::Route, &[(12, words([1, 2, expires, 3]))])
        };
        let left = Lasting { preferred_s: Some(6), valid_s: Some(6) };
        assert_eq!((route(0), route(501)), (None, Some(left)));
        assert_eq!(left.attribute(ObjectKind::Route), (23, 6u32.to_ne_bytes().to_vec()));
        assert_eq!(route(u32::MAX).unwrap().valid_s, Some(0), "it has ended already");
    }
}
