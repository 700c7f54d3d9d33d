LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
mark=@MARK@
# Ends the answer to request $1: after its output the mark, and its exit code.
e() {
  s=$?
  printf '\n%s %s %s\n' "$mark" "$1" "$s"
  printf '\n%s %s\n' "$mark" "$1" >&2
}
# Carries out one line of standard input after another.
serve() { while IFS= read -r line; do eval "$line"; done; }
# The same with a dead-man, whose script is $1, for $2 seconds of silence. It reads what is written to descriptor 4;
# the end of that is the end of this session. Its last words are its network namespace, for a goodput here that may not look
# that up (a system without such namespaces has none), and the process that started it: if it has another parent, that one
# has ended.
guarded() {
  {
    (
      # By exec, so that the shell saves no copy that a child would hold open.
      exec 4>&1 >&3 3>&-
      self=$(exec sh -c 'echo "$PPID"')
      printf 'main %s\n' "$self" >&4
      (
        trap '' HUP
        while sleep 1; do
          kill -0 "$self" 2>/dev/null || exit
          echo tick >&4 || exit
        done
      ) </dev/null >/dev/null 2>&1 &
      serve
      echo end >&4
    ) | sh -c 'exec sh -c "$@" "$PPID"' sh "$1" goodput-dead-man "$mark" "$2" \
      "$(readlink /proc/self/ns/net 2>/dev/null)" 3>&-
  } 3>&1
  exit
}
{
  printf '\n%s ready\n' "$mark"
  printf '\n%s ready\n' "$mark" >&2
  serve
  exit
}
