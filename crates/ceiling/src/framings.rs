//! What a link puts around each IP packet: a row each.

use goodput_model::{
    ETHERNET_CHECKSUM_BYTES, ETHERNET_HEADER_BYTES, ETHERNET_PAUSE_BYTES, Missing,
};

/// One kind of link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Framing {
    /// What users type.
    pub id: &'static str,
    /// Bytes around an IP packet.
    pub bytes: f64,
    /// What these are made of.
    pub parts: &'static str,
    /// The shortest frame with all of that around it, bytes.
    pub shortest: f64,
}

/// The usual one.
pub const ETHERNET: Framing = Framing {
    id: "ethernet",
    bytes: (ETHERNET_HEADER_BYTES + ETHERNET_CHECKSUM_BYTES + ETHERNET_PAUSE_BYTES) as f64,
    parts: "header 14, checksum 4, preamble 8, gap 12",
    shortest: 84.0,
};

/// All of them. Sources: IEEE 802.3 (preamble and delimiter 8, header 14, check sequence 4, gap of 96 bits;
/// at least 64 bytes from header to check sequence); RFC 6349 section 3.3.1 (8 bytes on T1 and T3 lines).
pub const ALL: &[Framing] = &[
    ETHERNET,
    Framing { id: "hdlc", bytes: 8.0, parts: "flags, header and checksum 8", shortest: 0.0 },
    Framing { id: "none", bytes: 0.0, parts: "nothing", shortest: 0.0 },
];

/// The framing of that id; Ethernet if none is named.
pub fn find(id: Option<&str>) -> Result<Framing, Missing> {
    let id = id.unwrap_or(ETHERNET.id);
    ALL.iter().find(|framing| framing.id == id).copied().ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|framing| framing.id).collect();
        Missing::because(format!("{id:?} is not a framing; write {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_is_the_usual_one_and_an_unknown_one_names_the_others() {
        assert_eq!(find(None), Ok(ETHERNET));
        assert!(find(Some("token-ring")).unwrap_err().to_string().contains("ethernet, hdlc"));
    }
}
