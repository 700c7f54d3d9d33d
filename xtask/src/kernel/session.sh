# The first process of the guest from here on: the files are the host's.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts terminals /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 groups /sys/fs/cgroup
hostname guest
busybox ip link set lo up

# Without udev nobody loads the drivers: those of the network devices, and of the device that makes others.
modprobe --all --quiet tun
for device in /sys/bus/pci/devices/*; do
    case $(cat "$device/class") in
    0x02*) modprobe --all --quiet "$(cat "$device/modalias")" ;;
    esac
done
modprobe --all --quiet $(cat /sys/bus/virtio/devices/*/modalias)

port() {
    for port in /sys/class/virtio-ports/*; do
        if [ "$(cat "$port/name")" = "$1" ]; then
            echo "/dev/${port##*/}"
        fi
    done
}

# Says to programs that this is a guest, and of which kernel.
GOODPUT_GUEST=$(uname -r)
export GOODPUT_GUEST
sh /run/goodput/command </dev/null >"$(port stdout)" 2>"$(port stderr)"
echo $? >"$(port status)"
busybox poweroff -f
