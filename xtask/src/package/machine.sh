# A machine that vanishes: systemd runs as the first process of an overlay of this machine's root, in namespaces and a
# control group of its own, with what it may not have a part of left out (modules, the clock, settings of the kernel).
#   machine.sh PLACE SAID SCRIPT FILE…
# systemd runs SCRIPT there, beside which the FILEs lie, and ends with its exit code. What it says is added to the file
# SAID. PLACE is an empty folder.
set -eu
place=$1 said=$2
shift 2
within=300

# Outside: a control group, which goes when all in it has ended.
if [ -z "${IN_GROUP-}" ]; then
    mkdir -p "$place/groups"
    mount -t cgroup2 cgroup2 "$place/groups"
    here=$(sed -n 's/^0:://p' /proc/self/cgroup)
    group=$place/groups$here/goodput-machine.$$
    mkdir "$group"
    trap 'find "$group" -depth -type d -exec rmdir {} +' EXIT
    status=0
    IN_GROUP=1 timeout --signal=KILL "$within" sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" \
        unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child sh "$0" "$place" "$said" "$@" || status=$?
    [ "$status" -ne 137 ] || echo "it did not end within $within s" >>"$said"
    exit "$status"
fi

# Inside: the root.
root=$place/root
mount -t tmpfs tmpfs "$place"
mkdir "$place/changed" "$place/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/changed,workdir=$place/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for folder in dev run; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
mount -t tmpfs tmpfs "$root/tmp"
for device in null zero full random urandom tty ptmx; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"

# What this machine has of goodput, what keeps services from being started, what is mounted, and what only takes time.
rm -rf "$root"/var/lib/goodput* "$root"/var/lib/private/goodput* "$root"/etc/systemd/system/goodput* \
    "$root"/etc/systemd/system/*.wants/goodput* "$root/usr/sbin/policy-rc.d" "$root/etc/fstab" \
    "$root/var/lib/man-db/auto-update"

tried=$root/run/tried
mkdir -p "$tried" "$root/run/systemd/system"
cp "$@" "$tried"
: >"$tried/said"
mount --bind "$said" "$tried/said"
cat >"$root/run/systemd/system/tried.service" <<END
[Unit]
DefaultDependencies=no
Requires=systemd-journald.service
After=systemd-journald.service
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root LC_ALL=C.UTF-8
WorkingDirectory=/run/tried
ExecStart=/bin/sh /run/tried/$(basename "$1")
StandardOutput=append:/run/tried/said
StandardError=append:/run/tried/said
END

ip link set lo up
# A root by chroot may have no user namespaces, which the units want.
mkdir "$root/run/before"
cd "$root"
pivot_root . run/before
umount --lazy /run/before
# Credentials of services are mounted (mount_namespaces(7)); systemd leaves this to what started it.
mount --make-rshared /
without=-sys_module,-sys_time,-sys_rawio,-syslog
exec env -i container=goodput PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set "$without" --inh-caps "$without" \
    chroot . /lib/systemd/systemd --unit=tried.service --show-status=no <>/dev/null >&0 2>&0
