//! The port mapper (RFC 1833), which knows where a server's programs listen.

use std::net::{IpAddr, SocketAddr};

use rustix::net::getpeername;

use super::calls::{ANSWER_TIMEOUT, of};
use super::dialogue::Dialogue;
use super::rpc::Procedure;
use super::xdr::{Reader, Unread, broken, put, put_opaque};
use crate::error::FileError;
use crate::link::{Dial, Wait};

const PORT: u16 = 111;
const GETPORT: Procedure = of((100_000, 2), 3, "GETPORT", ANSWER_TIMEOUT);
const GETADDR: Procedure = of((100_000, 4), 3, "GETADDR", ANSWER_TIMEOUT);

const IPPROTO_TCP: u32 = 6;
/// TCP over IPv6, among the transports of a program (RFC 5665 section 5.1.1).
const NETID: &str = "tcp6";
/// Longest universal address, bytes.
const ADDRESS_BYTES: usize = 256;

/// The ports of these programs of a host; the words name them in errors.
pub fn ports(
    dial: &mut dyn Dial,
    host: &str,
    programs: &[(Procedure, &str)],
    wait: &dyn Wait,
) -> Result<Vec<u16>, FileError> {
    let mapper = Dialogue::connect(dial, host, PORT, wait);
    let mut mapper = mapper.map_err(|why| match why {
        FileError::Refused(why) => FileError::Refused(format!(
            "{why}: NFS version 3 is found by the port mapper; name the port of a server without one, as in \
             nfs://{host}:2049/…?mountport=20048"
        )),
        other => other,
    })?;
    programs.iter().map(|(program, what)| port(&mut mapper, wait, *program, what)).collect()
}

/// The port of a program. Version 2 of the port mapper knows IPv4 only, and a program may listen elsewhere over IPv6.
fn port(
    mapper: &mut Dialogue,
    wait: &dyn Wait,
    program: Procedure,
    what: &str,
) -> Result<u16, FileError> {
    let port = match is_over_v6(mapper) {
        true => mapper.call(wait, GETADDR, |out| address_args(out, program), port_of_address)?,
        false => mapper.call(wait, GETPORT, |out| port_args(out, program), port_number)?,
    };
    port.ok_or_else(|| {
        let version = program.version;
        FileError::Refused(format!(
            "the server's port mapper has no {what} version {version} over TCP"
        ))
    })
}

fn is_over_v6(mapper: &Dialogue) -> bool {
    let peer = getpeername(mapper.socket()).ok();
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer?).ok());
    peer.is_some_and(|peer| matches!(peer.ip().to_canonical(), IpAddr::V6(_)))
}

fn port_args(out: &mut Vec<u8>, program: Procedure) {
    [program.program, program.version, IPPROTO_TCP, 0].into_iter().for_each(|word| put(out, word));
}

/// The port, if the program is registered.
fn port_number(reader: &mut Reader<'_>) -> Result<Option<u16>, Unread> {
    let port = reader.u32()?;
    let port = u16::try_from(port)
        .map_err(|_| broken(format!("the port mapper answers with port {port}")))?;
    Ok(Some(port).filter(|port| *port > 0))
}

/// A program over IPv6, at any address, of any owner (`rpcb`, RFC 1833 section 2.1).
fn address_args(out: &mut Vec<u8>, program: Procedure) {
    [program.program, program.version].into_iter().for_each(|word| put(out, word));
    [NETID, "", ""].into_iter().for_each(|text| put_opaque(out, text.as_bytes()));
}

/// The port in a universal address, `ADDRESS.HIGH.LOW` (RFC 5665 section 5.2.3.4); the address is empty if the program is
/// not registered.
fn port_of_address(reader: &mut Reader<'_>) -> Result<Option<u16>, Unread> {
    let address = String::from_utf8_lossy(reader.opaque(ADDRESS_BYTES, "an address")?);
    if address.is_empty() {
        return Ok(None);
    }
    let mut bytes = address.rsplitn(3, '.').map(str::parse);
    match (bytes.next(), bytes.next()) {
        (Some(Ok(low)), Some(Ok(high))) => {
            Ok(Some(u16::from_be_bytes([high, low])).filter(|port| *port > 0))
        }
        _ => Err(broken("the port mapper answers with an address without a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Result<Option<u16>, Unread> {
        let mut answer = Vec::new();
        put_opaque(&mut answer, address.as_bytes());
        port_of_address(&mut Reader::new(&answer))
    }

    #[test]
    fn a_port_is_the_end_of_an_address() {
        for (address, port) in [("::.8.1", Some(2049)), ("fe80::1%eth0.233.77", Some(59725))] {
            assert_eq!(read(address).unwrap(), port);
        }
        assert_eq!(read("").unwrap(), None);
        assert_eq!(read("::.0.0").unwrap(), None);
        for address in ["::", "8.1x", "::.8.256", "1", "..", "é.ü.ö"] {
            assert!(matches!(read(address), Err(Unread::Failed(_))), "{address}");
        }
        assert!(matches!(read(&"1".repeat(300)), Err(Unread::Failed(_))));
    }
}
