# The units of a package are started, go through an upgrade, and are purged, by a systemd that is the first process here.
# Beside this script lie the packages old.deb and new.deb, of a higher version.
set -eu

fail() {
    echo "package: $*" >&2
    journalctl --no-pager --lines=30 >&2
    exit 1
}

property() {
    systemctl show --property="$1" --value "$2"
}

is() {
    [ "$(property ActiveState "$1")" = "$2" ] || fail "$1 is $(property ActiveState "$1"), not $2: $3"
}

# Waits until the command succeeds.
until_it() {
    tries=0
    until "$@" >last 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "in vain: $*: $(cat last)"
        sleep 0.1
    done
}

measures() {
    goodput test 127.0.0.1 -t 0.2 --no-store >last 2>&1 || fail "no measurement $1: $(cat last)"
}

# Whether the service $1 has kept a result. Its files are its user's, so that a copy is read.
has_kept() {
    rm -rf copy
    mkdir copy
    cp -r "/var/lib/$1/goodput" copy && XDG_DATA_HOME=$PWD/copy goodput history export --csv | grep -q '127\.0\.0\.1'
}

drop_in() {
    mkdir -p "/run/systemd/system/$1.d"
    printf '[Service]\n%s\n' "$2" >"/run/systemd/system/$1.d/tried.conf"
    systemctl daemon-reload
}

# Where a package has files. Those that this machine has for another reason don't count.
files() {
    find /etc /usr /var/lib /run/systemd -xdev -name '*goodput*' ! -type c | sort
}

files >before
dpkg --install old.deb
is goodput.socket inactive "a package opens no port by itself"
systemctl enable --now goodput.socket
is goodput.service inactive "it starts with its first client"
measures "by the socket"
is goodput.service active "it has had a client"
[ "$(stat --format=%u "/proc/$(property MainPID goodput.service)")" -ne 0 ] || fail "the server is root's"
# The state of root's own goodput is not the service's.
goodput settings undo >last 2>&1 || fail "root can't undo settings: $(cat last)"

systemctl start goodput-watch.service goodput-agent.service goodput-coordinator.service || true
for unit in goodput-watch goodput-agent goodput-coordinator; do
    is "$unit.service" inactive "nothing was set up for it"
done
drop_in goodput-watch.service 'Environment=GOODPUT_TARGETS=127.0.0.1 "GOODPUT_OPTIONS=--every 1s -n 1M"'
systemctl start goodput-watch.service
until_it has_kept goodput-watch

dpkg --install new.deb
for unit in goodput.socket goodput.service goodput-watch.service; do
    is "$unit" active "an upgrade lets it go on"
done
running=$(readlink "/proc/$(property MainPID goodput-watch.service)/exe")
[ "$running" = /usr/bin/goodput ] || fail "after the upgrade, the watch still runs $running"
measures "after the upgrade"
systemctl stop goodput-watch.service
rm -rf /var/lib/goodput-watch/goodput
systemctl start goodput-watch.service
until_it has_kept goodput-watch

# As a timer would start it.
systemctl stop goodput-watch.service
rm -rf /var/lib/goodput-watch/goodput
drop_in goodput-watch.service 'Type=oneshot
Restart=no
ExecStart=
ExecStart=/usr/bin/goodput watch --once $GOODPUT_OPTIONS $GOODPUT_TARGETS
Environment=GOODPUT_TARGETS=127.0.0.1 "GOODPUT_OPTIONS=--every 1h -n 1M"'
systemctl start goodput-watch.service || fail "a single test of each target failed"
has_kept goodput-watch || fail "a single test was not kept"

# A fleet of one site with goodput and one that speaks iperf3, which is the server here.
cat >mesh.toml <<'END'
[test]
length = "0.2s"
[site.a]
[site.b]
server = "iperf3://127.0.0.1"
END
goodput fleet keys mesh.toml -o keys >last 2>&1 || fail "no keys: $(cat last)"
printf 'listen: "127.0.0.1:4222"\njetstream { store_dir: "/run/tried/bus" }\ninclude "keys/fleet.conf"\n' >nats.conf
nats-server -c nats.conf >bus.log 2>&1 &
mkdir -p /etc/goodput/fleet /etc/goodput/coordinator
cp keys/a.site/* /etc/goodput/fleet
cp keys/coordinator.d/* mesh.toml /etc/goodput/coordinator
drop_in goodput-agent.service 'Environment=GOODPUT_NATS=nats://127.0.0.1 GOODPUT_SITE=a'
drop_in goodput-coordinator.service 'Environment=GOODPUT_NATS=nats://127.0.0.1 "GOODPUT_OPTIONS=--stay"'
until_it grep -q 'Server is ready' bus.log
for unit in goodput-coordinator goodput-agent; do
    systemctl start "$unit.service" || fail "$unit does not start: $(tail -5 bus.log)"
done
until_it has_kept goodput-agent
until_it has_kept goodput-coordinator
rm -r /etc/goodput

dpkg --purge goodput
for unit in goodput.socket goodput.service goodput-watch.service goodput-agent.service goodput-coordinator.service; do
    is "$unit" inactive "its package was purged"
done
rm -rf /run/systemd/system/goodput*
left=$(files | comm -13 before -)
[ -z "$left" ] || fail "left behind: $left"
