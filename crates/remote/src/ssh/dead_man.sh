: goodput-dead-man
# It puts back what a session changed, if the session ends or falls silent. POSIX sh; $1 marks its answers, after $2
# seconds of silence the session counts as lost. It counts ticks and reads no clock, because a clock can jump.
# A text to put back stays after it was used: each asks first whether it is needed, and a change may come late. All judge
# what is ours before any writes: what is written drags other values along.
trap '' HUP INT QUIT TERM PIPE
mark=$1
limit=$2
top=0
quiet=0
main=
left=0
due=
more=
say() { printf '\n%s %s\n' "$mark" "$*"; }
each() {
  phase=$1
  shift
  for number; do
    eval "text=\${undo_$number}"
    eval "$text"
  done
}
undo() (
  each judge "$@"
  for round in 1 2 3 4 5 6; do
    wrote=
    bad=
    each back "$@"
    [ -n "$wrote" ] || exit
    # A device that starts anew refuses for a moment.
    [ -z "$bad" ] || sleep 1
  done
) </dev/null >/dev/null 2>&1
say guard "$$"
while IFS= read -r line; do
  rest=${line#* }
  case $line in
    tick)
      quiet=$((quiet + 1))
      if [ "$quiet" -ge "$limit" ]; then
        # The session must change nothing more.
        kill -9 "$main"
        break
      fi
      if [ -n "$due" ]; then
        left=$((left - 1))
        if [ "$left" -le 0 ]; then
          undo "$due"
          due=
        fi
      fi
      ;;
    beat) quiet=0 ;;
    'main '*) main=$rest ;;
    'more '*) more=$more$rest ;;
    'undo '*)
      number=${rest%% *}
      eval "undo_$number=\$more\${rest#* }"
      more=
      # What is known anew waits for no confirmation any more.
      [ "$due" != "$number" ] || due=
      [ "$number" -le "$top" ] || top=$number
      say armed "$number"
      ;;
    'confirm '*)
      due=${rest%% *}
      left=${rest#* }
      say waiting "$due"
      ;;
    'confirmed '*)
      if [ "$due" = "$rest" ]; then
        due=
        say confirmed "$rest"
      else
        say late "$rest"
      fi
      ;;
    end) break ;;
    bye)
      # It stays until the session ends, so that nobody else begins, and puts nothing back.
      top=0
      due=
      say released 0
      ;;
  esac
done
all=
while [ "$top" -gt 0 ]; do
  all="$all $top"
  top=$((top - 1))
done
undo $all
exit 0
