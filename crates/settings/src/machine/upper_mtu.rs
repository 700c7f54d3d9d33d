//! How the MTUs of upper links follow when the MTU of the link below changes.

use goodput_netlink::Link;

/// What macsec adds to each packet at most: 14 bytes of tag, 2 of type, 16 of check value
/// (drivers/net/macsec.c `macsec_extra_len`, `MACSEC_STD_ICV_LEN`).
const MACSEC_OVERHEAD_BYTES: u32 = 32;

/// How one of them follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// It then has this MTU, bytes; or a little more, if it is a macsec.
    To(u32),
    /// Nothing is known about this kind.
    Unknown,
}

/// Why `mtu` for the link with this index would leave a link above it, directly or not, with
/// less than `smallest` bytes, if the upper link has this much now.
pub(super) fn falls_below(links: &[Link], index: u32, mtu: u32, smallest: u32) -> Option<String> {
    let below = links.iter().find(|link| link.index == index)?;
    let mut uppers = links.iter().filter(|link| stands_on(link, index) && link.mtu >= smallest);
    uppers.find_map(|upper| match follows(upper, mtu) {
        Follows::To(then) if then < smallest => {
            Some(format!("the MTU of {}, on top of it, would fall to {then} bytes", upper.name))
        }
        Follows::To(then) if then < upper.mtu => falls_below(links, upper.index, then, smallest),
        Follows::To(_) => None,
        Follows::Unknown => {
            // If the upper device follows at all, it keeps the present difference for its own headers.
            let around = below.mtu.saturating_sub(upper.mtu);
            let may_fall = mtu < below.mtu && mtu.saturating_sub(around) < smallest;
            may_fall.then(|| {
                let kind = upper.kind.as_deref().unwrap_or("without a kind");
                format!(
                    "the MTU of {}, on top of it, might fall below {smallest} bytes; how a \
                     device of its kind ({kind}) follows is unknown",
                    upper.name
                )
            })
        }
    })
}

/// Whether its lower link is the one with this index.
fn stands_on(link: &Link, index: u32) -> bool {
    link.peer_index == Some(index) && !link.peer_elsewhere
}

/// The kernel's new MTU of a link when that of the link below changes: what each kind does at
/// `NETDEV_CHANGEMTU`.
fn follows(upper: &Link, then: u32) -> Follows {
    match upper.kind.as_deref() {
        // drivers/net/macvlan.c `macvlan_device_event`, net/8021q/vlan.c `vlan_device_event`.
        Some("macvlan" | "macvtap" | "vlan") => Follows::To(upper.mtu.min(then)),
        // drivers/net/ipvlan/ipvlan_main.c `ipvlan_adjust_mtu`.
        Some("ipvlan" | "ipvtap") => Follows::To(then),
        // drivers/net/macsec.c `macsec_notify`.
        Some("macsec") => Follows::To(upper.mtu.min(then.saturating_sub(MACSEC_OVERHEAD_BYTES))),
        // The peer has no device below it, and tunnels are not notified (drivers/net/vxlan/vxlan_core.c,
        // drivers/net/geneve.c, net/ipv4/ip_tunnel.c, net/ipv6/ip6_tunnel.c).
        Some(
            "veth" | "netkit" | "vxlan" | "geneve" | "gre" | "gretap" | "erspan" | "ipip" | "sit"
            | "ip6gre" | "ip6gretap" | "ip6erspan" | "ip6tnl" | "vti" | "vti6" | "xfrm",
        ) => Follows::To(upper.mtu),
        _ => Follows::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_scene;
    use goodput_netlink::Netlink;

    fn upper(kind: &str, mtu: u32) -> [Link; 2] {
        let below = Link { index: 2, mtu: 9000, ..Link::default() };
        let kind = Some(kind.into());
        [
            below,
            Link { index: 3, name: "up".into(), mtu, kind, peer_index: Some(2), ..Link::default() },
        ]
    }

    #[test]
    fn a_device_above_that_would_lose_ipv6_is_named() {
        let why = |links: &[Link], mtu| falls_below(links, 2, mtu, 1280);
        assert!(why(&upper("macsec", 8968), 1300).unwrap().contains("up, on top of it"));
        assert_eq!(why(&upper("macsec", 8968), 1500), None);
        assert_eq!(why(&upper("macvlan", 8000), 1500), None, "it becomes 1500, not 500");
        assert_eq!(why(&upper("vlan", 1300), 1280), None);
        assert_eq!(why(&upper("vxlan", 8950), 1300), None, "it is not notified");
        assert_eq!(why(&upper("veth", 8968), 1300), None, "a peer stands on nothing");
        assert_eq!(why(&upper("ipvlan", 9000), 1280), None);
        assert!(why(&upper("rmnet", 8968), 1300).unwrap().contains("rmnet"));
        assert_eq!(why(&upper("rmnet", 8968), 9216), None, "it does not fall");
        assert_eq!(why(&upper("macsec", 1200), 1280), None, "it has no IPv6 now");
    }

    #[test]
    fn a_device_two_floors_up_counts() {
        let [below, first] = upper("vlan", 9000);
        let second = Link { index: 4, peer_index: Some(3), ..upper("macsec", 8968)[1].clone() };
        assert!(falls_below(&[below, first, second], 2, 1300, 1280).is_some());
    }

    #[test]
    fn the_kernel_does_what_is_foreseen() {
        in_scene(|_| {
            let kinds =
                ["macvlan", "macvtap", "vlan id 7", "ipvlan", "macsec", "vxlan id 7 dstport 4789"];
            let mut seen = 0;
            for kind in kinds {
                for mtu in ["8000", "1400"] {
                    seen += usize::from(foreseen(kind, mtu));
                }
            }
            if seen == 0 {
                goodput_testing::skip("a device that stands on another");
            }
        });
    }

    /// Creates a link of this kind, and changes the MTU below; false if this kernel doesn't support the kind.
    fn foreseen(kind: &str, mtu: &str) -> bool {
        let ip = |words: &str| {
            let ip = std::process::Command::new("ip").args(words.split(' ')).output().unwrap();
            ip.status.success()
        };
        assert!(ip("link set eth0 mtu 9000"));
        let bound = if kind.starts_with("vxlan") { " dev eth0" } else { "" };
        if !ip(&format!("link add up0 link eth0 mtu {mtu} type {kind}{bound}")) {
            return false;
        }
        let mut netlink = Netlink::open().unwrap();
        let before = netlink.link("up0").unwrap();
        assert_eq!(
            follows(&before, 9000),
            Follows::To(match kind {
                "ipvlan" => 9000,
                _ => before.mtu,
            })
        );
        assert!(ip("link set eth0 mtu 1500"));
        let after = netlink.link("up0").unwrap().mtu;
        assert_eq!(follows(&before, 1500), Follows::To(after), "{kind}");
        assert!(ip("link del up0"));
        true
    }

    #[test]
    fn a_smaller_macvlan_is_no_obstacle_and_comes_back() {
        in_scene(|state_dir| {
            let mut netlink = Netlink::open().unwrap();
            let words = "link add up0 link eth0 mtu 8000 type macvlan mode bridge".split(' ');
            if !std::process::Command::new("ip").args(words).status().unwrap().success() {
                return goodput_testing::skip("macvlan");
            }
            let mut mtu = || netlink.link("up0").unwrap().mtu;
            let mut changes = crate::Changes::begin(state_dir, crate::testing::guard()).unwrap();
            changes.apply(&"link.mtu@eth0".parse().unwrap(), "1500").unwrap();
            assert_eq!(mtu(), 1500);
            assert!(changes.restore().is_clean());
            assert_eq!(mtu(), 8000);
        });
    }
}
