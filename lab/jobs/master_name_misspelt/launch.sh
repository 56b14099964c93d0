#!/bin/bash
# The cluster's names, all of which are known: none is called as the job's master is.
echo "hosts: files" > nsswitch.conf
printf '127.0.0.1 localhost\n127.0.0.1 trainer-0.resnet.cluster.local\n' > hosts
exec unshare --user --map-root-user --mount bash -c '
    mount --bind nsswitch.conf /etc/nsswitch.conf
    mount --bind hosts /etc/hosts
    exec python train.py --master trainer0.resnet.cluster.local
'
