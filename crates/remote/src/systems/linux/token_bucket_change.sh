# Changes what $2 names to $3, and nothing else. Along with a rate, $4 bytes are its burst, if the present one differs from
# them by no more than rounding at another rate can explain.
change() { tc qdisc change dev "$device" handle "$handle:" root tbf rate "$1"bps burst "$2" limit "$3"
mpu "$mpu" overhead "$overhead" linklayer "$layer"; };
most "$burst"; was="$rate $most"; before=$most; open=$limit;
case $2 in
rate) rate=$3; clock; off=$((burst - $4)); [ "${off#-}" -gt $(($4 / 200)) ] || burst=$4;;
burst) burst=$3;; limit) limit=$3;; esac;
most "$burst";
# A packet that is longer than a smaller bucket would block the queue for ever (net/sched/sch_tbf.c tbf_dequeue). So the
# queue is closed by a limit of one byte, empties, and opens behind the change.
if [ "$most" -lt "$before" ]; then
change $was 1 || exit; tries=0;
while waits=$(tc -s -j qdisc show dev "$device" | tr "{" "\n" |
sed -n "/^\"kind\":\"tbf\",\"handle\":\"$handle:\",/{n;s/.*\"backlog\":\([0-9]*\),.*/\1/p;}");
[ "$waits" != 0 ]; do
tries=$((tries + 1));
[ "$tries" -lt 25 ] || { change $was "$open";
no 1 "nothing leaves its queue, and a longer packet there would block it for ever; look what stops the queue"; };
[ "$tries" -lt 20 ] || sleep 1; done;
change "$rate" "$most" 1 || { change $was "$open"; exit 1; };
fi;
change "$rate" "$most" "$limit"
