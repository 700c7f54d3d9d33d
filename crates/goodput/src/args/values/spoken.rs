//! Which protocols are served, and where.

use std::str::FromStr;

use super::number::whole;
use super::unfit;
use goodput_wire::protocols::ALL;
use goodput_wire::protocols::goodput::PROTOCOL;
use goodput_wire::session::Protocol;

/// A protocol to serve, and its port if that is not the usual one.
#[derive(Debug, Clone, Copy)]
pub struct ServedProtocol {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// 0 lets the system choose.
    pub port: Option<u16>,
}

impl FromStr for ServedProtocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, port) = match text.split_once('=') {
            Some((id, port)) => (id, Some(port)),
            None => (text, None),
        };
        let protocol = ALL.iter().find(|protocol| protocol.id == id).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|protocol| protocol.id).collect();
            unfit(id, "a protocol that goodput serves", known.join(", "))
        })?;
        if port.is_some() && protocol.id == PROTOCOL.id {
            return Err(format!("the port of {id} is that of --port; write {id} alone"));
        }
        let port = port.map(whole("a port", 0..=u16::MAX));
        Ok(Self { protocol, port: port.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_may_have_another_port() {
        let plain: ServedProtocol = "goodput".parse().unwrap();
        assert_eq!((plain.protocol.id, plain.port), ("goodput", None));
        assert!("goodput=0".parse::<ServedProtocol>().unwrap_err().contains("--port"));
        for other in ALL.iter().filter(|other| other.id != PROTOCOL.id) {
            let elsewhere: ServedProtocol = format!("{}=0", other.id).parse().unwrap();
            assert_eq!((elsewhere.protocol.id, elsewhere.port), (other.id, Some(0)));
            assert!(
                format!("{}=70000", other.id)
                    .parse::<ServedProtocol>()
                    .unwrap_err()
                    .contains("70000")
            );
        }
        assert!("gopher".parse::<ServedProtocol>().unwrap_err().contains("goodput"));
    }
}
