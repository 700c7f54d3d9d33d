# A package is installed, used, upgraded and removed, in an overlay of this machine's root below $1.
# $2: a package; $3: the same with a higher version.
set -eu
place=$1 old=$2 new=$3

fail() {
    echo "package: $*" >&2
    exit 1
}

mount -t tmpfs tmpfs "$place"
mkdir "$place/changed" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/changed,workdir=$place/work" "$place/root"
mount -t proc proc "$place/root/proc"
mount --rbind /dev "$place/root/dev"
mkdir -p "$place/root/tmp"
mount -t tmpfs tmpfs "$place/root/tmp"
cp "$old" "$place/root/tmp/old.deb"
cp "$new" "$place/root/tmp/new.deb"
# To index all manuals takes a minute.
rm -f "$place/root/var/lib/man-db/auto-update"
ip link set lo up

in_root() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$place/root" "$@"
}

measures() {
    in_root goodput serve --bind 127.0.0.1 --one-off &
    server=$!
    tries=0
    until in_root goodput test 127.0.0.1 -t 0.2 --no-store >"$place/said" 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "no measurement with the $1 program: $(cat "$place/said")"
        sleep 0.1
    done
    wait "$server" || fail "the $1 server ended with $?"
    grep -q '^goodput ' "$place/said" || fail "the $1 program measured nothing: $(cat "$place/said")"
}

in_root dpkg --install /tmp/old.deb
measures installed
for file in /usr/share/man/man1/goodput.1.gz /usr/share/bash-completion/completions/goodput \
    /usr/lib/systemd/system/goodput.socket /etc/default/goodput; do
    [ -s "$place/root$file" ] || fail "$file is missing"
done

echo '# the administrator was here' >>"$place/root/etc/default/goodput"
in_root dpkg --install /tmp/new.deb
measures upgraded
grep -q 'administrator' "$place/root/etc/default/goodput" || fail "an upgrade took what the administrator wrote"

in_root dpkg --remove goodput
[ ! -e "$place/root/usr/bin/goodput" ] || fail "the program is still there after it was removed"
[ -e "$place/root/etc/default/goodput" ] || fail "removing took what the administrator wrote"
in_root dpkg --purge goodput
# What this machine itself had and the purge removed is a character device there.
left=$(find "$place/changed" -name '*goodput*' ! -type c)
[ -z "$left" ] || fail "left behind: $left"
