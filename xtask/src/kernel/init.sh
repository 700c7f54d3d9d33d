#!/bin/busybox sh
# The first process of the guest. What fails here is in the kernel's log, and the kernel stops.
set -e
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devices /dev
for module in /modules/*; do
    insmod "$module"
done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /host
mount -t tmpfs -o mode=755 layer /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /root
mkdir -p /root/lib/modules /root/dev /root/proc /root/sys /root/run /root/tmp
mount --bind "/host$(cat /goodput/kernel)/lib/modules" /root/lib/modules
mount -t tmpfs -o mode=755 run /root/run
cp -r /goodput /root/run/
umount /proc /sys
mount --move /dev /root/dev
exec switch_root /root /bin/sh /run/goodput/session
