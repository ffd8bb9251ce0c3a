#!/bin/sh
# limit: 150 s
# 1,000 connections come and go, half of them without a word and at any moment, while others work:
# the target goes on, and has neither descriptors nor memory nor objects of the device more than
# after the first 100. CONNECTIONS=N: so many; SEED=N: the same moments again.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
connections=${CONNECTIONS:-1000}
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "SEED=$seed CONNECTIONS=$connections"

# Connections that the target has, by its own account.
connected() {
    wget -q -O - "http://$ADDRESS:$metrics/metrics" | sed -n 's/^kbtp_connections \([0-9]*\)$/\1/p'
}

# Of the target, when all others have gone.
measure() { # FILE
    tries=0
    until [ "$(connected)" = 0 ] || [ $tries -eq 100 ]; do
        usleep 200000
        tries=$((tries + 1))
    done
    sleep 1
    find "/proc/$target/fd" -type l | wc -l >"$1.descriptors"
    find "/proc/$target/task" -maxdepth 1 | wc -l >"$1.threads"
    rdma resource show | grep "$DEVICE:" >"$1.resources"
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$target/status" >"$1.resident"
    sed -n 's/^VmData:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$target/status" >"$1.data"
    for what in descriptors threads resources resident data; do
        echo "$1 $what: $(cat "$1.$what")"
    done
}

start "$ADDRESS:0" --threads 2 --blocks 480 --block-size 4KiB --sessions 40 --quota 12 \
    --handles 16 --max-inline 512 --credits 8 --connections 64 --retention 2s --metrics "$ADDRESS:0"
metrics=$(sed -n 's/^metrics at port \([0-9]*\).*/\1/p' target.out)
step "the first"
run 0 vm-drop "$at" 100 4 "$seed"
measure before
step "all"
pids=''
for n in 0 1; do
    vm-work "$at" $n 3600 "$seed" >worker$n.out 2>worker$n.err &
    pids="$pids $!"
done
ran='vm-drop'
timeout -s KILL 120 vm-drop "$at" "$connections" 4 $((seed + 1)) >out 2>err
status=$?
[ $status -eq 0 ] || fail 'all connections come and go'
step "they are gone"
cat out
for pid in $pids; do
    kill -TERM "$pid"
    wait "$pid"
    status=$?
    ran='an initiator that works'
    [ $status -eq 0 ] || { fail 'it is served all the time' && cat worker*.err; }
done
tail -qn 1 worker*.out
measure after
status=-
ran="$connections connections"
same before.descriptors after.descriptors
same before.threads after.threads
same before.resources after.resources
for what in resident data; do
    grown=$(($(cat after.$what) - $(cat before.$what)))
    [ $grown -le 256 ] || fail "memory ($what) has not grown by $grown KiB"
done
# Retained sessions expire, and then nothing is in use.
sleep 2
stop TERM
grep '^kbtp' target.out | grep -v kbtp_session_quota
conclude
