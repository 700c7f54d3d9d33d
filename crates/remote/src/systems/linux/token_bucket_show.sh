# Prints the token bucket, with the burst that the kernel makes of $2 bytes at its rate if they are given.
if [ "$2" ]; then ticks "$2"; least "$t"; burst=$least; fi;
printf "%s\n" "rate $rate" "burst $burst" "limit $limit"
