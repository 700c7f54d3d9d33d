//! Two hosts in network namespaces, joined by a veth pair: for a mover that this host's own address does not serve.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use goodput_netlink::{Netlink, NetlinkError, namespace};

/// Addresses of both ends, IPv4 and IPv6.
const ADDRESSES: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];

/// The namespaces, for as long as they are needed.
#[derive(Debug)]
pub struct Veth {
    near: OwnedFd,
    far: OwnedFd,
}

impl Veth {
    /// Makes both hosts. Needs root.
    pub fn new() -> Self {
        let [near, far] = [(); 2].map(|()| namespace::create().expect("root"));
        let veth = Self { near, far };
        let moved = veth.within(&veth.near, || {
            let mut netlink = Netlink::open()?;
            netlink.create_veth("near", "far")?;
            let far = netlink.link("far")?.index;
            netlink.move_to_netns(far, veth.far.as_fd())
        });
        moved.expect("a veth pair");
        veth.within(&veth.near, || set_up("near", 0)).expect("the near host");
        veth.within(&veth.far, || set_up("far", 1)).expect("the far host");
        veth
    }

    /// Two connected UDP sockets, the near one first.
    pub fn sockets(&self, v6: bool) -> (OwnedFd, OwnedFd) {
        let any = |host: usize| {
            let address: IpAddr = ADDRESSES[usize::from(v6)][host].parse().expect("an address");
            UdpSocket::bind(SocketAddr::from((address, 0))).expect("a UDP socket")
        };
        let near = self.near(|| any(0));
        let far = self.within(&self.far, || any(1));
        near.connect(far.local_addr().expect("bound")).expect("connected");
        far.connect(near.local_addr().expect("bound")).expect("connected");
        (near.into(), far.into())
    }

    /// Runs `work` at the near host. Threads that it starts stay there.
    pub fn near<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.within(&self.near, work)
    }

    fn within<T: Send>(&self, host: &OwnedFd, work: impl FnOnce() -> T + Send) -> T {
        namespace::inside(host.as_fd(), work).expect("root")
    }
}

fn set_up(device: &str, host: usize) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let index = netlink.link(device)?.index;
    for (addresses, prefix_len) in ADDRESSES.into_iter().zip([24, 64]) {
        netlink.add_address(index, addresses[host].parse().expect("an address"), prefix_len)?;
    }
    netlink.set_up(index)
}
