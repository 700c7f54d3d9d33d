//! Saving below a root made by the test.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::testing::Tmpfs;

fn assignment(text: &str) -> Assignment {
    let (setting, value) = text.split_once('=').unwrap();
    (setting.parse().unwrap(), value.into())
}

fn save(root: &Path, texts: &[&str]) -> Result<Vec<SavedFile>, SaveError> {
    let assignments: Vec<_> = texts.iter().map(|text| assignment(text)).collect();
    save_below(root, &assignments, Path::new("/bin/sh"), |_| Ok(()))
}

/// Every file below, with its text.
fn all(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    _ = found
                        .insert(entry.path(), fs::read_to_string(entry.path()).unwrap_or_default())
                }
            }
        }
    }
    found
}

#[test]
fn a_value_is_saved_once_replaced_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let files = save(root, &["sysctl.net.ipv4.tcp_sack=1"]).unwrap();
    let path = below(root, "/etc/sysctl.d/90-goodput.conf");
    assert_eq!(files[0].path, path);
    save(root, &["sysctl.net.ipv4.tcp_ecn=1"]).unwrap();
    save(root, &["sysctl.net.ipv4.tcp_sack=0"]).unwrap();
    let before = all(root);
    save(root, &["sysctl.net.ipv4.tcp_sack=0"]).unwrap();
    assert_eq!(all(root), before, "saved twice is saved once");
    let text = &before[&path];
    assert!(text.ends_with("\nnet.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_sack = 0\n"), "{text}");
    let listed = saved_below(root);
    assert!(listed.len() == 1 && listed[0].intact && listed[0].keeps.len() == 2);
    assert!(remove_below(root).iter().all(|(_, outcome)| outcome.is_ok()));
    assert!(all(root).is_empty(), "{:?}", all(root));
}

#[test]
fn files_are_noted_before_they_are_written() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let keeps = [assignment("sysctl.net.ipv4.tcp_sack=1")];
    let save = |note: &dyn Fn(&Written) -> Result<(), SettingError>| {
        save_below(root, &keeps, Path::new("/bin/sh"), note)
    };
    let refused = save(&|_| Err(SettingError::Closed(keeps[0].0.clone())));
    assert!(refused.is_err() && all(root).is_empty(), "what is not noted is not written");
    let note = |written: &Written| {
        assert!(!written.files.is_empty() && all(root).is_empty(), "it is noted first");
        Ok(())
    };
    assert_eq!(save(&note).unwrap().len(), 1);
    assert_eq!(all(root).len(), 1);
}

#[test]
fn drafts_of_writers_that_are_gone_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let folder = below(root.path(), "/etc/sysctl.d");
    fs::create_dir_all(&folder).unwrap();
    // No process has so high a number (proc_sys_kernel(5), pid_max).
    let [gone, lives, other] =
        ["4194305", "1", "x"].map(|writer| folder.join(format!(".90-goodput.conf.{writer}")));
    for draft in [&gone, &lives, &other] {
        fs::write(draft, "a draft").unwrap();
    }
    save(root.path(), &["sysctl.net.ipv4.tcp_sack=1"]).unwrap();
    assert!(!gone.exists() && lives.exists() && other.exists());
}

#[test]
fn what_no_file_can_say_is_set_at_boot() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    save(root, &["qdisc.tbf.burst@eth0=250000", "sysctl.net.ipv4.tcp_sack=1"]).unwrap();
    let unit = &all(root)[&below(root, boot_unit::FILE)];
    assert!(unit.contains("qdisc.tbf.burst@eth0=250000\""), "{unit}");
    let wanted = below(root, boot_unit::WANTED);
    assert_eq!(fs::read_link(&wanted).unwrap(), Path::new(boot_unit::FILE));
    assert_eq!(saved_below(root).len(), 2);
    remove_below(root);
    assert!(fs::symlink_metadata(wanted).is_err() && all(root).is_empty());
}

#[test]
fn what_is_not_ours_any_more_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let path = below(root, "/etc/sysctl.d/90-goodput.conf");
    save(root, &["sysctl.net.ipv4.tcp_sack=1"]).unwrap();
    let edited = fs::read_to_string(&path).unwrap().replace("tcp_sack = 1", "tcp_sack = 0");
    fs::write(&path, &edited).unwrap();
    let again = save(root, &["qdisc.tbf.burst@eth0=9000", "sysctl.net.ipv4.tcp_ecn=1"]);
    assert!(matches!(again, Err(SaveError::Edited(_))), "{again:?}");
    let removed = remove_below(root);
    assert!(matches!(removed[0].1, Err(SaveError::Edited(_))));
    fs::write(&path, "net.ipv4.tcp_sack = 1\n").unwrap();
    let foreign = save(root, &["sysctl.net.ipv4.tcp_ecn=1"]);
    let Err(SaveError::Foreign { lines, .. }) = foreign else { panic!("{foreign:?}") };
    assert_eq!(lines, "net.ipv4.tcp_ecn = 1", "what is to be written, not what is there");
    assert!(saved_below(root).is_empty() && all(root).len() == 1);
}

/// A link to nowhere looks like no file, and one to /dev/null is how an administrator switches a file off.
#[test]
fn a_link_is_never_replaced() {
    for to in ["/dev/null", "/nowhere/at/all"] {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let path = below(root, "/etc/sysctl.d/90-goodput.conf");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap();
        let refused = save(root, &["sysctl.net.ipv4.tcp_ecn=1"]);
        assert!(matches!(refused, Err(SaveError::Link { .. })), "{refused:?}");
        assert_eq!(fs::read_link(&path).unwrap(), Path::new(to));
        assert!(saved_below(root).is_empty());
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let wanted = below(root, boot_unit::WANTED);
    fs::create_dir_all(wanted.parent().unwrap()).unwrap();
    symlink("/dev/null", &wanted).unwrap();
    let refused = save(root, &["qdisc.tbf.burst@eth0=9000"]);
    assert!(matches!(refused, Err(SaveError::Link { .. })), "{refused:?}");
    assert_eq!(fs::read_link(&wanted).unwrap(), Path::new("/dev/null"));
    assert!(saved_below(root).is_empty(), "all or nothing");
}

#[test]
fn what_another_file_sets_later_is_said() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let later = below(root, "/etc/sysctl.d/99-local.conf");
    fs::create_dir_all(later.parent().unwrap()).unwrap();
    fs::write(&later, "net.ipv4.tcp_sack = 0\n").unwrap();
    let files = save(root, &["sysctl.net.ipv4.tcp_sack=1", "sysctl.net.ipv4.tcp_ecn=1"]).unwrap();
    let sack = "sysctl.net.ipv4.tcp_sack".parse().unwrap();
    assert_eq!(files[0].overruled, [(sack, later)]);
    assert_eq!(saved_below(root)[0].overruled, files[0].overruled);
}

#[test]
fn all_is_saved_or_nothing() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    save(root, &["sysctl.net.ipv4.tcp_sack=1"]).unwrap();
    let before = all(root);
    // A file blocks the folder of the unit.
    fs::create_dir_all(below(root, "/etc/systemd")).unwrap();
    fs::write(below(root, "/etc/systemd/system"), "").unwrap();
    let failed = save(root, &["sysctl.net.ipv4.tcp_sack=0", "qdisc.tbf.burst@eth0=9000"]);
    assert!(failed.is_err(), "{failed:?}");
    fs::remove_file(below(root, "/etc/systemd/system")).unwrap();
    assert_eq!(all(root), before);
}

#[test]
fn what_belongs_elsewhere_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for text in ["far:sysctl.net.ipv4.tcp_sack=1", "socket.rcvbuf=4M"] {
        let refused = save(root.path(), &[text]);
        assert!(matches!(refused, Err(SaveError::NotHere(..))), "{text}: {refused:?}");
    }
    assert!(all(root.path()).is_empty());
}

#[test]
fn a_program_that_others_can_replace_is_not_run_at_boot() {
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("goodput");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    let unit = [assignment("qdisc.tbf.burst@eth0=9000")];
    let save = |program: &Path| save_below(root.path(), &unit, program, |_| Ok(()));
    let refused = save(&program);
    assert!(matches!(refused, Err(SaveError::Program { .. })), "{refused:?}");
    let gone = save(&root.path().join("gone"));
    assert!(matches!(gone, Err(SaveError::Io { .. })), "{gone:?}");
    fs::remove_file(program).unwrap();
    assert!(all(root.path()).is_empty());
}

#[test]
fn a_full_or_read_only_disk_is_named_and_nothing_is_half_written() {
    for is_full in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let Some(disk) = Tmpfs::mount(root) else {
            return goodput_testing::skip("the right to mount");
        };
        save(root, &["sysctl.net.ipv4.tcp_sack=1"]).unwrap();
        match is_full {
            true => disk.fill("full"),
            false => disk.make_read_only(),
        }
        let before = all(root);
        for more in ["sysctl.net.ipv4.tcp_ecn=1", "qdisc.tbf.burst@eth0=9000"] {
            let failed = save(root, &["sysctl.net.ipv4.tcp_sack=0", more]).unwrap_err();
            let said = failed.to_string();
            let why = if is_full { "No space left" } else { "Read-only file system" };
            assert!(said.contains(why) && said.contains("/etc/s"), "{said}");
            assert_eq!(all(root), before, "{more}");
        }
        let removed = remove_below(root);
        assert_eq!(removed[0].1.is_ok(), is_full, "what is there can be removed, if anything");
        assert_eq!(saved_below(root).is_empty(), is_full);
    }
}

/// A host whose udevd, of this version, has applied a file to `eth0`.
fn with_udevd(root: &Path, version: &str, applied: &str, text: &str) {
    let index = goodput_netlink::Netlink::open().unwrap().link("eth0").unwrap().index;
    let put = |path: &str, text: &str| {
        let path = below(root, path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    };
    let program = below(root, "/usr/bin/udevadm");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    goodput_testing::write_script(&program, &format!("#!/bin/sh\necho {version}\n"));
    let known = format!("E:ID_NET_LINK_FILE={applied}\nE:ID_PATH=pci-0000:03:00.0\n");
    put(&format!("/run/udev/data/n{index}"), &known);
    put(applied, text);
}

fn address() -> String {
    let link = goodput_netlink::Netlink::open().unwrap().link("eth0").unwrap();
    link.address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

const DEFAULT: &str = "/usr/lib/systemd/network/99-default.link";
const DEFAULT_TEXT: &str =
    "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel\nMACAddressPolicy=persistent\n";

#[test]
fn a_device_with_the_default_of_udevd_gets_a_copy_of_it_for_itself() {
    crate::testing::in_scene(|state_dir| {
        let root = state_dir.with_file_name("root");
        let root = root.as_path();
        with_udevd(root, "252", DEFAULT, DEFAULT_TEXT);
        let before = all(root);
        let files = save(root, &["link.mtu@eth0=9000", "offload.tso@eth0=off"]).unwrap();
        let path = below(root, "/etc/systemd/network/98-goodput-eth0.link");
        assert_eq!(files.iter().map(|file| &file.path).collect::<Vec<_>>(), [&path]);
        let text = &all(root)[&path];
        let own =
            "Path=pci-0000:03:00.0\n[Link]\nNamePolicy=keep kernel\nMACAddressPolicy=persistent\n";
        assert!(text.contains(own) && text.contains("[Match]\nMACAddress="), "{text}");
        assert!(!text.contains("OriginalName"), "{text}");
        assert!(text.contains("MTUBytes=9000\nTCPSegmentationOffload=no"), "{text}");
        // After the next boot it is what udevd has applied.
        with_udevd(root, "252", "/etc/systemd/network/98-goodput-eth0.link", text);
        save(root, &["link.mtu@eth0=1500"]).unwrap();
        let again = &all(root)[&path];
        assert!(again.contains(own) && again.contains("MTUBytes=1500"), "{again}");
        assert_eq!(again.matches("NamePolicy").count(), 1, "{again}");
        assert_eq!(saved_below(root).len(), 1);
        with_udevd(root, "252", DEFAULT, DEFAULT_TEXT);
        assert!(remove_below(root).iter().all(|(_, outcome)| outcome.is_ok()));
        assert_eq!(all(root), before);
    });
}

#[test]
fn an_administrators_file_for_the_device_gets_a_drop_in() {
    crate::testing::in_scene(|state_dir| {
        let root = state_dir.with_file_name("root");
        let root = root.as_path();
        let (theirs, text) = ("/etc/systemd/network/10-lan.link", "[Link]\nName=eth0\n");
        let text = format!("[Match]\nMACAddress={}\n{text}", address().to_uppercase());
        with_udevd(root, "252", theirs, &text);
        let before = all(root);
        save(root, &["link.mtu@eth0=9000"]).unwrap();
        let drop_in = below(root, "/etc/systemd/network/10-lan.link.d/90-goodput.conf");
        let ours = &all(root)[&drop_in];
        assert!(ours.ends_with("\n[Link]\nMTUBytes=9000\n"), "{ours}");
        assert!(saved_below(root)[0].intact);
        remove_below(root);
        assert_eq!(all(root), before);
        assert!(!drop_in.parent().unwrap().exists(), "the folder was made for ours");
    });
}

#[test]
fn what_udevd_may_apply_to_other_devices_too_is_set_at_boot() {
    crate::testing::in_scene(|state_dir| {
        let theirs = "/etc/systemd/network/10-lan.link";
        let whole = "[Match]\nDriver=e1000e\n[Link]\nName=lan0\n";
        for (version, applied, text) in
            [("252", theirs, whole), ("249", DEFAULT, DEFAULT_TEXT), ("?", DEFAULT, DEFAULT_TEXT)]
        {
            let folder = tempfile::tempdir_in(state_dir.parent().unwrap()).unwrap();
            let root = folder.path();
            with_udevd(root, version, applied, text);
            let files = save(root, &["link.mtu@eth0=9000"]).unwrap();
            assert_eq!(files[0].path, below(root, boot_unit::FILE), "{version} {applied}");
        }
    });
}

#[test]
fn a_value_that_moves_to_another_file_is_there_once() {
    crate::testing::in_scene(|state_dir| {
        let root = state_dir.with_file_name("root");
        let root = root.as_path();
        save(root, &["link.mtu@eth0=9000", "offload.tso@eth0=off"]).unwrap();
        let unit = below(root, boot_unit::FILE);
        with_udevd(root, "252", DEFAULT, DEFAULT_TEXT);
        save(root, &["link.mtu@eth0=1500"]).unwrap();
        let text = fs::read_to_string(&unit).unwrap();
        assert!(!text.contains("link.mtu") && text.contains("offload.tso"), "{text}");
        assert!(saved_below(root).len() == 2 && saved_below(root).iter().all(|file| file.intact));
        save(root, &["offload.tso@eth0=off"]).unwrap();
        assert!(!unit.exists() && fs::symlink_metadata(below(root, boot_unit::WANTED)).is_err());
        assert_eq!(saved_below(root).len(), 1);
    });
}

/// A host whose networkd configures `eth0` by this file.
fn with_networkd(root: &Path, text: &str) {
    with_udevd(root, "252", DEFAULT, DEFAULT_TEXT);
    let index = goodput_netlink::Netlink::open().unwrap().link("eth0").unwrap().index;
    let theirs = "/run/systemd/network/10-lan.network";
    let state = format!("ADMIN_STATE=configured\nNETWORK_FILE={theirs}\n");
    for (path, text) in [(&*format!("/run/systemd/netif/links/{index}"), &*state), (theirs, text)] {
        let path = below(root, path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn the_discipline_of_a_device_of_networkd_is_kept_by_a_drop_in() {
    crate::testing::in_scene(|state_dir| {
        let root = state_dir.with_file_name("root");
        let root = root.as_path();
        with_networkd(root, "[Match]\nName=eth0\n\n[Network]\nDHCP=yes\n");
        let before = all(root);
        let drop_in = below(root, "/etc/systemd/network/10-lan.network.d/90-goodput.conf");
        for (kind, lines) in [("fq", "[FairQueueing]\nParent=root\n"), ("default", "")] {
            let files = save(root, &[&format!("qdisc.kind@eth0={kind}")]).unwrap();
            assert_eq!(files.iter().map(|file| &file.path).collect::<Vec<_>>(), [&drop_in]);
            let text = &all(root)[&drop_in];
            assert!(
                text.contains(lines) && text.contains(&format!("qdisc.kind@eth0={kind}\n")),
                "{text}"
            );
        }
        assert!(!all(root)[&drop_in].contains("[FairQueueing]"), "one discipline at a time");
        assert!(saved_below(root).len() == 1 && saved_below(root)[0].intact);
        remove_below(root);
        assert_eq!(all(root), before);
        assert!(!drop_in.parent().unwrap().exists(), "the folder was made for ours");
    });
}

#[test]
fn what_networkd_would_not_take_from_a_drop_in_is_set_at_boot() {
    crate::testing::in_scene(|state_dir| {
        let own = "[Match]\nName=eth0\n";
        let bucket = "[Match]\nName=eth0\n[TokenBucketFilter]\nRate=1M\n";
        for (text, setting) in [
            ("[Match]\nName=e*\n", "qdisc.kind@eth0=fq"),
            (bucket, "qdisc.kind@eth0=fq"),
            (own, "qdisc.tbf.burst@eth0=9000"),
            (own, "qdisc.kind@eth0=sfb"),
        ] {
            let folder = tempfile::tempdir_in(state_dir.parent().unwrap()).unwrap();
            let root = folder.path();
            with_networkd(root, text);
            let files = save(root, &[setting]).unwrap();
            assert_eq!(files[0].path, below(root, boot_unit::FILE), "{text} {setting}");
        }
    });
}

#[test]
fn options_of_a_mount_are_kept_for_its_mount_point() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let path = below(root, mount::FILE);
    let at = |setting: &str, point: &str| of_mount(&setting.parse().unwrap(), point).unwrap();
    assert_eq!(at("nfs.rsize", "/mnt/a").to_string(), "nfs.rsize@/mnt/a");
    assert!(of_mount(&"nfs.slots".parse().unwrap(), "/mnt/a").is_none(), "no mount option");
    save(root, &["nfs.rsize@/mnt/a=1M", "nfs.rsize@/mnt/b=1M"]).unwrap();
    save(root, &["nfs.nconnect@/mnt/a=4"]).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let sections = "[ MountPoint \"/mnt/a\" ]\nrsize=1048576\nnconnect=4\n[ MountPoint \"/mnt/b\" ]\nrsize=1048576\n";
    assert!(text.ends_with(sections), "{text}");
    let fstab = below(root, "/etc/fstab");
    fs::write(
        &fstab,
        "nas:/x /mnt/a nfs4 ro,rsize=65536,hard 0 0\n#nas:/y /mnt/b nfs rsize=1 0 0\n",
    )
    .unwrap();
    let listed = saved_below(root);
    assert_eq!(listed[0].overruled, [(at("nfs.rsize", "/mnt/a"), fstab)]);
    let refused = save(root, &["nfs.wsize@/mnt/\"a=1M"]);
    assert!(matches!(refused, Err(SaveError::NotHere(..))), "{refused:?}");
    assert!(remove_below(root).iter().all(|(_, outcome)| outcome.is_ok()) && !path.exists());
}
