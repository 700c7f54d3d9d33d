//! A client's echoes on a socket of their own. Everyone else's echoes, and datagrams with forged addresses, queue in
//! the port's shared socket: there, a flood would lengthen an honest client's echo times.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use goodput_mover::socket::{enable_arrival_times, receive_with_ancillary};
use goodput_mover::{Arrivals, monotonic_ns};
use goodput_wire::datagram::echo::write_times;
use goodput_wire::datagram::{Challenger, DatagramReply, REQUEST_BYTES};
use goodput_wire::session::Cookie;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket as AsyncUdpSocket;

use crate::serve::admit::cost::ECHO_BUFFER_BYTES;
use crate::serve::admit::echoes::Echoes;

/// Whose echoes to answer, and how.
pub struct EchoSocket {
    /// Their source address.
    pub peer: SocketAddr,
    /// The cookie that they must show.
    pub cookie: Cookie,
    /// Knows whether their address is proven.
    pub challenger: Arc<Challenger>,
    /// Every valid cookie.
    pub echoes: Echoes,
    /// Whether the answers contain this end's time.
    pub reports_times: bool,
}

impl EchoSocket {
    /// Answers what comes to `socket`, which is connected to the client, until its measurement is over. Datagrams that
    /// are not its echoes count like echoes, so that no client takes more of this thread than its echoes may.
    pub async fn answer(self, socket: UdpSocket) {
        // The kernel cuts the size instead of refusing it.
        let _ = SockRef::from(&socket).set_recv_buffer_size(ECHO_BUFFER_BYTES);
        // Without arrival times, an echo only reports its request as later than it came.
        let _ = enable_arrival_times(&socket);
        let socket = match AsyncUdpSocket::from_std(socket) {
            Ok(socket) => socket,
            Err(cause) => {
                tracing::debug!(peer = %self.peer, "its echoes are not answered: {cause}");
                return;
            }
        };
        let (mut arrivals, mut buffer) = (Arrivals::default(), [0; REQUEST_BYTES]);
        while let Some(free) = self.echoes.free_at(&self.cookie) {
            tokio::time::sleep_until(free.into()).await;
            let receive = || receive_with_ancillary(&socket, &mut buffer);
            // An error here is an earlier answer that nobody received.
            let Ok(received) = socket.async_io(Interest::READABLE, receive).await else { continue };
            if !self.echoes.admit(&self.cookie, Instant::now()) {
                continue;
            }
            let datagram = &buffer[..received.length.min(REQUEST_BYTES)];
            let Some(mut reply) = self.reply(datagram) else { continue };
            self.echoes.hear(&self.cookie);
            if self.reports_times {
                let arrived = |wall_ns| arrivals.monotonic_ns(wall_ns);
                if let Some(received_ns) = received.wall_ns.map_or(Some(monotonic_ns()), arrived) {
                    write_times(&mut reply, received_ns, monotonic_ns());
                }
            }
            // Never wait for buffer space: datagrams may be lost anyway.
            let _ = SockRef::from(&socket).send(&reply);
        }
    }

    /// The answer to a datagram; none if it is not an echo of this measurement.
    fn reply(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        match self.challenger.answer(self.peer, datagram) {
            DatagramReply::Echo(cookie, reply) if cookie == self.cookie => Some(reply),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::port_socket::PortSocket;
    use super::super::sockets::datagram_socket;
    use super::*;
    use goodput_wire::datagram::echo::{Echoed, echo, echoed};
    use goodput_wire::datagram::{Nonce, ServerReply, from_server, hello};

    const COOKIE: Cookie = Cookie([4; 16]);

    struct Ends {
        port_socket: PortSocket,
        client: AsyncUdpSocket,
        challenger: Arc<Challenger>,
        nonce: Nonce,
    }

    async fn ends() -> Ends {
        let port_socket =
            PortSocket::new(datagram_socket("127.0.0.1:0".parse().unwrap()).unwrap().into());
        let mut port_socket = port_socket.unwrap();
        let client = AsyncUdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(port_socket.address()).await.unwrap();
        let challenger = Arc::new(Challenger::new([9; 32]));
        client.send(&hello(&COOKIE)).await.unwrap();
        let (first, peer) = port_socket.next().await;
        let DatagramReply::Challenge(said) = challenger.answer(peer, &first) else { panic!() };
        let Some(ServerReply::Challenge(nonce)) = from_server(&said) else { panic!() };
        Ends { port_socket, client, challenger, nonce }
    }

    #[tokio::test]
    async fn echoes_come_to_a_socket_of_their_own_until_their_measurement_is_over() {
        let Ends { mut port_socket, client, challenger, nonce } = ends().await;
        let (echoes, peer) = (Echoes::default(), client.local_addr().unwrap());
        let echoing = echoes.expect(COOKIE);
        client.send(&echo(&COOKIE, &nonce, 1)).await.unwrap();
        port_socket.next().await;
        assert!(echoes.lacks_socket(&COOKIE, peer));
        let socket = port_socket.split_off(peer).unwrap();
        let own = EchoSocket {
            peer,
            cookie: COOKIE,
            challenger,
            echoes: echoes.clone(),
            reports_times: false,
        };
        let answering = tokio::spawn(own.answer(socket));
        echoes.has_socket(&COOKIE, peer, answering.abort_handle());
        assert!(!echoes.lacks_socket(&COOKIE, peer));
        client.send(&echo(&Cookie([5; 16]), &nonce, 1)).await.unwrap();
        let mut said = [0; 128];
        for number in 2..20 {
            // Nobody reads the shared socket meanwhile.
            client.send(&echo(&COOKIE, &nonce, number)).await.unwrap();
            let length = client.recv(&mut said).await.unwrap();
            let answer = Echoed { number, times_ns: None };
            assert_eq!(echoed(&COOKIE, &said[..length]), Some(answer));
        }
        drop(echoing);
        assert!(answering.await.is_err_and(|why| why.is_cancelled()));
        client.send(b"later").await.unwrap();
        assert_eq!(port_socket.next().await, (b"later".to_vec(), peer));
    }

    #[tokio::test]
    async fn what_came_before_an_echo_has_its_socket_is_given_out_once_and_to_nobody_else() {
        let Ends { mut port_socket, client, .. } = ends().await;
        let other = AsyncUdpSocket::bind("127.0.0.1:0").await.unwrap();
        other.connect(port_socket.address()).await.unwrap();
        client.send(b"1").await.unwrap();
        let (_, peer) = port_socket.next().await;
        client.send(b"2").await.unwrap();
        other.send(b"3").await.unwrap();
        let own = port_socket.split_off(peer).unwrap();
        client.send(b"4").await.unwrap();
        other.send(b"5").await.unwrap();
        for (datagram, from) in [(b"2", &client), (b"3", &other), (b"5", &other)] {
            assert_eq!(port_socket.next().await, (datagram.to_vec(), from.local_addr().unwrap()));
        }
        let mut received = [0; 8];
        assert_eq!(own.recv(&mut received).unwrap(), 1);
        assert_eq!(received[0], b'4');
    }
}
