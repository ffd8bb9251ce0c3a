#!/bin/sh
# limit: 90 s
# Two workers in threads while initiators work, connections come and go, and metrics are asked for.
# It is there to be run with ThreadSanitizer (scripts/vm-test --preset tsan threads): whatever that
# finds in the target goes to its standard error, and it does not end with status 0 then.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
export TSAN_OPTIONS='exitcode=66 halt_on_error=0'
start "$ADDRESS:0" --threads 2 --blocks 480 --block-size 4KiB --sessions 40 --quota 12 \
    --handles 16 --max-inline 512 --credits 8 --connections 64 --retention 1s --metrics "$ADDRESS:0"
metrics=$(sed -n 's/^metrics at port \([0-9]*\).*/\1/p' target.out)
pids=''
for n in 1 2 3; do
    vm-work "$at" $n 6 $n >work$n.out 2>work$n.err &
    pids="$pids $!"
done
vm-drop "$at" 100 2 1 >drop.out 2>drop.err &
pids="$pids $!"
for _ in 1 2 3 4; do
    sleep 1
    run 0 wget -q -O metrics "http://$ADDRESS:$metrics/metrics"
done
for pid in $pids; do
    wait "$pid"
    status=$?
    ran='an initiator'
    [ $status -eq 0 ] || fail 'status 0'
done
cat work?.out work?.err drop.out drop.err
stop TERM
says target.out 'kbtp_sessions_opened_total{kind="new"}'
conclude
