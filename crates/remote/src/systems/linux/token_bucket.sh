# Reads the token bucket (tbf) at the root of the device $1, exactly or not at all. Each line ends like a statement, because
# the lines are joined by blanks: a session takes one line at a time. Numbers: bytes, bytes per second, steps of 64 ns.
set -f; device=$1;
no() { status=$1; shift; echo "$*" >&2; exit "$status"; };
[ "$((1 << 40))" = 1099511627776 ] || no 1 "the shell there does not compute with 64 bits";
all=$(tc -r -d -j qdisc show dev "$device") || exit;
it=$(printf "%s\n" "$all" | tr "{" "\n" | sed -n "/^\"kind\":\"tbf\",\"handle\":\"[0-9a-f]*:\",\"root\":true,/{N;s/\n/ /;p;}");
[ "$it" ] || no 3 "the discipline at its root is no token bucket (tbf), or tc there does not print it in JSON";
handle=${it#*\"handle\":\"}; handle=${handle%%:*}; it=${it#*\"options\": };
# A change without a table of sizes removes the table, and a change of the limit reaches the discipline inside
# (net/sched/sch_api.c qdisc_change; net/sched/sch_fifo.c fifo_set_limit).
case $it in *\"stab\":*) no 1 "it has a table of sizes (stab), which a change would remove; change it with tc, which sets both at once";; esac;
case $all in *\"parent\":\"$handle:*) no 1 "it has another discipline inside, whose limit a change could set; remove that one first, or run goodput on that host to change it";; esac;
case $(tc -d qdisc show dev "$device") in *" peakrate "*) no 1 "it has a peak rate, which tc does not print exactly; run goodput on that host to change it";; esac;
rate= limit= raw= mpu= layer= overhead=0 IFS=,;
for p in ${it%%\}*}; do
v=${p#*:}; v=${v#\"}; v=${v%\"};
case $p in
\"rate\":*) rate=$v;; \"limit\":*) limit=$v;; \"burst_raw\":*) raw=$v;; \"mpu\":*) mpu=$v;;
\"overhead\":*) overhead=$v;; \"linklayer\":*) layer=$v;; \"burst\":* | \"lat\":*) ;;
*) no 1 "tc prints $p about it, which goodput does not know";; esac;
done;
unset IFS;
for v in "$rate" "$limit" "$mpu" "$overhead"; do
case $v in "" | *[!0-9]*) no 1 "tc there does not print its rate, limit, mpu and overhead as numbers";; esac;
done;
case $raw in "" | *[!0-9a-f]*) no 1 "tc there does not print its burst exactly";; esac;
case $layer in ethernet | atm) ;; *) no 1 "its link layer is \"$layer\", which goodput does not know";; esac;
[ "$rate" -gt 0 ] || no 1 "its rate is 0";
# The kernel's arithmetic (net/sched/sch_generic.c psched_ratecfg_precompute, include/net/sch_generic.h psched_l2t_ns);
# half of the factor, because the whole may need 64 bits without a sign.
clock() { half=500000000 shift=0;
while mult=$((half / rate * 2 + half % rate * 2 / rate));
[ "$mult" -lt 2147483648 ] && [ "$half" -lt 4611686018427387904 ]; do
half=$((half * 2)) shift=$((shift + 1)); done; };
ticks() { t=$(($1 + overhead)); [ "$t" -ge "$mpu" ] || t=$mpu;
[ "$layer" = ethernet ] || t=$(((t + 47) / 48 * 53)); t=$(((t * mult >> shift) >> 6)); };
# The smallest size that takes $1 steps, and the largest that takes as many as $1 bytes.
least() { low=0 least=1073741824; while [ $((least - low)) -gt 1 ]; do
mid=$(((low + least) / 2)); ticks "$mid";
if [ "$t" -lt "$1" ]; then low=$mid; else least=$mid; fi; done; };
most() { ticks "$1"; least $((t + 1)); most=$((least - 1)); };
raw=$((0x$raw)); clock; least "$raw"; burst=$least; ticks "$burst";
[ "$t" = "$raw" ] || no 1 "no burst at its rate takes $raw steps of 64 ns";
