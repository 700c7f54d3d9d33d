# The program $2 measures in a root below $1 that has nothing but the program and a home: no libraries and no /etc. With
# $3, the root of another system, it has what that system has, in an overlay that vanishes.
# The kernel is there (/proc), as in a container.
# It runs as a user whom the root does not know, as in a container.
set -eu
place=$1 program=$2 system=${3-}

fail() {
    echo "static: $*" >&2
    exit 1
}

mount -t tmpfs tmpfs "$place"
mkdir "$place/root" "$place/changed" "$place/work"
[ -z "$system" ] ||
    mount -t overlay overlay -o "lowerdir=$system,upperdir=$place/changed,workdir=$place/work" "$place/root"
cp "$program" "$place/root/goodput"
mkdir -p "$place/root/home" "$place/root/proc"
mount -t proc proc "$place/root/proc"
chown 65532:65532 "$place/root/home"
ip link set lo up

alone() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home chroot --userspec=65532:65532 "$place/root" /goodput "$@"
}

measures() {
    alone serve --bind 127.0.0.1 --one-off &
    server=$!
    tries=0
    until alone test "$1" -t 0.2 --no-store >"$place/said" 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "no measurement to $1: $(cat "$place/said")"
        sleep 0.1
    done
    wait "$server" || fail "the server of $1 ended with $?"
    grep -q '^goodput ' "$place/said" || fail "nothing was measured to $1: $(cat "$place/said")"
}

alone --version | grep -q '^goodput ' || fail "it does not say its version"
measures 127.0.0.1
mkdir -p "$place/root/etc"
echo '127.0.0.1 localhost' >"$place/root/etc/hosts"
measures localhost
