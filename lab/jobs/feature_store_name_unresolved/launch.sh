#!/bin/bash
# The cluster's name server is down (NAMESERVER=down), or answers as the hosts file below does.
echo "nameserver 127.0.0.1" > resolv.conf
echo "127.0.0.1 localhost" > hosts
[ "$NAMESERVER" = up ] && echo "127.0.0.1 features.cluster.local" >> hosts
python store.py &
trap "kill $!" EXIT
sleep 1
unshare --user --map-root-user --mount bash -c '
    mount --bind resolv.conf /etc/resolv.conf
    mount --bind hosts /etc/hosts
    exec python train.py
'
