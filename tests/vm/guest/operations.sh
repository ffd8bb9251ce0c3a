#!/bin/sh
# limit: 200 s
# `kbtp target` and the operations, each a process of its own, over a driver: data, statuses,
# identities, quota, retention, RELEASE, two threads, IPv6, metrics, and the end by SIGTERM.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
port=7471

as() { # IDENTITY STATUS OPERATION HANDLE OPTION...
    identity=$1 wanted=$2 operation=$3 handle=$4
    shift 4
    run "$wanted" kbtp "$operation" "$at" "$handle" --trusted-network --identity "$identity" "$@"
}

octets 4096 block
octets 100 small
octets 4097 large

step 'the device'

run 0 kbtp devices "$DEVICE"
cat out
says out "driver $DRIVER, port active"
says out 'DIRECT_LOAD        yes'
[ "$DRIVER" = siw ] && can=no || can=yes
says out "DIRECT_ALLOC       $can"
run 0 kbtp devices --json
[ "$(wc -l <out)" -ge 1 ] || fail 'a line for each device'
run 4 kbtp devices nothing

step 'errors before there is a session'

run 2 kbtp load "$ADDRESS:$port" +0
says err --trusted-network
run 4 kbtp load "$ADDRESS:$port" +0 --trusted-network --timeout 5s
says err 'nobody listens'
run 4 kbtp target --listen 203.0.113.9:7471 --trusted-network
run 4 kbtp target --listen "$ADDRESS:$port" --trusted-network --device nothing

step 'one worker'

start "$ADDRESS:0" --blocks 8 --block-size 4KiB --sessions 2 --quota 3 --handles 16 \
    --first-handle 0x1000 --direct-load --records --connections 8 --metrics "$ADDRESS:0"
cat target.out
run 0 sh -c "echo hello | kbtp alloc-store $at +0 --seal --identity a.id --trusted-network"
says out 'ALLOC_STORE OK: handle 0x1000, Generation'
[ "$(stat -c %a a.id)" = 600 ] || fail 'the identity is its owner'\''s alone'
as a.id 0 load +0 --output loaded
[ "$(cat loaded)" = hello ] || fail 'what was stored is loaded'
as a.id 0 load 0x1000
[ "$(cat out)" = hello ] || fail 'to standard output'
says err 'LOAD OK: handle 0x1000'
as a.id 1 store +0 --input small
says err 'SEALED'
as a.id 1 alloc-store +0 --input small
says err 'ALREADY_BOUND'

# By RDMA Read and inline; whole blocks, nothing, too much.
as a.id 0 alloc-store +1 --input block
as a.id 1 load +1 --output loaded
says err 'NOT_SEALED'
as a.id 0 load +1 --output loaded --allow-unsealed
same loaded block
as a.id 0 store +1 --input small --inline --seal --json
says out '"status":"OK"'
generation=$(sed 's/.*"generation":\([0-9]*\).*/\1/' out)
as a.id 0 load +1 --output loaded --generation "$generation"
same loaded small
as a.id 1 load +1 --output loaded --generation $((generation % 65535 + 1))
says err 'STALE_GENERATION'
as a.id 1 load +1 --output loaded --length 99
says err 'TOO_LARGE'
as a.id 1 alloc-store +2 --input large
says err 'TOO_LARGE'
as a.id 2 alloc-store +2 --input large --inline
says err '4097 octets, the target takes 4096'
as a.id 0 alloc-store +2 --input block --inline --seal
as a.id 0 load +2 --output loaded
same loaded block

# Completion records, where there is Immediate Data (the draft: not over RDMAP).
if [ "$DRIVER" = siw ]; then
    as a.id 1 load +0 --record --output loaded
    says err '--record: the target does not offer that'
else
    as a.id 0 load +0 --record --output loaded
    says out ', by a record'
    [ "$(cat loaded)" = hello ] || fail 'loaded, told by a record'
    as a.id 1 store +0 --record --input small --json
    says out '"record":true'
    says out '"status":"SEALED"'
fi

# The quota is kept over processes; other identities have other handles.
as a.id 1 alloc-store +3 --input small
says err 'NO_SPACE'
as a.id 0 free +2
says out 'FREE OK: handle 0x1002'
as a.id 1 load +2 --output loaded
says err 'NOT_VALID'
as a.id 0 alloc-store +3 --input small --seal
as b.id 2 store 0x1000 --input small
says err 'is not of this identity, which has 16 from 0x1010'
as b.id 0 load 0x1000 --output loaded
as b.id 1 load 0x9999 --output loaded
says err 'INVALID_HANDLE'
run 1 kbtp load "$at" 0x1000 --trusted-network
says err 'no session'
as b.id 1 load +0 --release --output loaded # then its session is there for another
run 0 kbtp load "$at" 0x1000 --trusted-network --output loaded
chmod 644 b.id
as b.id 2 load +0 --output loaded
says err 'mode 0644'
chmod 600 b.id

# RELEASE frees all.
as a.id 0 free +3 --release
as a.id 1 load +0 --output loaded
says err 'NOT_VALID'

metrics=$(sed -n 's/^metrics at port \([0-9]*\).*/\1/p' target.out)
run 0 wget -q -O metrics "http://$ADDRESS:$metrics/metrics"
grep -q '^kbtp_requests_total{opcode="LOAD",status="OK"} [1-9]' metrics || fail 'metrics of LOAD'
grep -q '^kbtp_requests_total{opcode="ALLOC_STORE",status="NO_SPACE"} 1$' metrics ||
    fail 'metrics of NO_SPACE'
! grep -vE '^# (HELP|TYPE) (kbtp|process)_[a-z_]+ .+$|^kbtp_[a-z_]+(\{[a-z_]+="[^"\\]*"(,[a-z_]+="[^"\\]*")*\})? -?[0-9]+$|^process_cpu_seconds_total [0-9]+\.[0-9]+$' \
    metrics || fail 'metrics are as Prometheus wants them'
[ "$(grep -c '^# TYPE' metrics)" = "$(grep -c '^# HELP' metrics)" ] || fail 'each has a type'
for _ in 1 2 3 4 5 6 7 8; do
    run 0 wget -q -O metrics "http://$ADDRESS:$metrics/metrics"
done
run 1 wget -q -O none "http://$ADDRESS:$metrics/other"

# Who has nothing to do sleeps: CPU time, in hundredths of a second, over one second.
ticks() {
    awk '{ print $14 + $15 }' "/proc/$target/stat"
}
before=$(ticks)
sleep 1
used=$(($(ticks) - before))
echo "CPU time of an idle target in a second: $used hundredths"
ran=idle
[ $used -le 2 ] || fail 'an idle target sleeps'
stop TERM
says target.out 'kbtp_requests_total{opcode="ALLOC_STORE",status="NO_SPACE"} 1'
cat target.out

step 'two workers, IPv6'

start "[$ADDRESS6]:0" --blocks 8 --block-size 64KiB --threads 2 --sessions 8 \
    --connections 8
octets 65536 big
for id in 1 2 3 4 5 6; do
    (
        kbtp alloc-store "$at" +0 --input big --seal --identity "t$id.id" --trusted-network &&
            kbtp load "$at" +0 --output "t$id" --identity "t$id.id" --trusted-network &&
            cmp "t$id" big
    ) >"t$id.log" 2>&1 &
    eval "pid$id=$!"
done
for id in 1 2 3 4 5 6; do
    ran="client $id of two workers"
    eval "wait \$pid$id" || { status=$? && fail 'stores and loads' && cat "t$id.log"; }
done
stop INT
says target.out 'kbtp_sessions_opened_total{kind="new"} 6'
says target.out 'kbtp_stored_octets_total{by="read"} 393216'

ran='one that never sleeps'
start "$ADDRESS:0" --poll --direct-alloc --direct-load --blocks 8 --block-size 4KiB --quota 4 \
    --sessions 2 --first-handle 0x1000 --ticket-timeout 2s --connections 4
# rxe's atomics are none against those of CPUs: the target has the device take its tickets (I-37).
if [ "$DRIVER" = siw ]; then
    says target.out 'does not offer DIRECT_ALLOC: '
elif grep -F 'does not offer DIRECT_ALLOC' target.out; then
    fail 'DIRECT_ALLOC over rxe'
fi
as a.id 0 alloc-store +0 --input block --seal
as a.id 0 load +0 --output loaded
same loaded block

# Direct Modes, beside requests of the same session and of another.
as b.id 0 load 0x1000 --direct --output directly
same directly block
as b.id 1 load 0x1001 --direct --output directly
says err NOT_VALID
as b.id 1 load 0x99 --direct --output directly
says err "none of this target's"
as a.id 2 alloc-store +1 --direct --seal --input block
if [ "$DRIVER" = siw ]; then
    as a.id 1 alloc-store +1 --direct --input small
    says err '--direct: the target does not offer that'
else
    as a.id 0 alloc-store +1 --direct --input small
    as a.id 0 load +1 --allow-unsealed --output loaded
    same loaded small
    as a.id 0 alloc-store +2 --input block
    as a.id 0 alloc-store +3 --direct --input block
    as a.id 1 alloc-store +4 --direct --input block
    says err 'TICKET_ABANDONED: no block came'
    as a.id 0 free +1
    as a.id 0 alloc-store +4 --direct --input block
    as a.id 1 alloc-store +4 --direct --input block
    as a.id 0 load +4 --allow-unsealed --output loaded
    same loaded block
fi
stop TERM

step 'retention'

start "$ADDRESS:$port" --blocks 4 --block-size 4KiB --sessions 1 --retention 4s \
    --connections 4
as a.id 0 alloc-store +0 --input small --seal
as a.id 0 load +0 --output loaded
sleep 5
as b.id 1 load +0 --output loaded
says err NOT_VALID
kill -9 $target
wait $target
run 4 kbtp load "$at" +0 --trusted-network --timeout 3s

conclude
