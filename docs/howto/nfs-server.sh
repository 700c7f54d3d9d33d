#!/bin/sh
# Exports the folder DIR by NFS (nfs-ganesha), for reading, until this script or its parent ends: nfs-server.sh DIR
# The server finds its port mapper at a socket in /run, so both get a /run of their own.
set -eu
DIR=$(realpath "$1")
OWN=$(mktemp -d)
export DIR OWN
cat > "$OWN/conf" <<CONF
NFS_CORE_PARAM { Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }
EXPORT { Export_Id = 1; Path = $DIR; Pseudo = /1; Protocols = 3; Access_Type = RO; Squash = None;
         SecType = sys; Transports = TCP; FSAL { Name = VFS; } }
CONF
exec setpriv --pdeathsig TERM unshare --mount sh -eu -c '
    mount -t tmpfs tmpfs /run
    rpcbind -f & mapper=$!
    ganesha.nfsd -F -f "$OWN/conf" -L "$OWN/log" -p "$OWN/pid" & server=$!
    trap exit TERM
    trap "kill $mapper $server; wait; rm -r \"\$OWN\"" EXIT
    wait $server'
