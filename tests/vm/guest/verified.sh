#!/bin/sh
# limit: 90 s
# `kbtp bench --verify`: ALLOC_STORE, STORE, LOAD and FREE over eight connections to two workers and
# a pool of 32 MiB, in which every octet of every LOAD is checked; by polling and by events, inline,
# with an STag for each request where the device can, and Ctrl-C.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh

bench() { # STATUS OPTION...
    expected=$1
    shift
    ran="kbtp bench $*"
    timeout -s KILL 40 kbtp bench "$at" --trusted-network "$@" >out 2>err </dev/null
    status=$?
    echo "$ran"
    cat out
    [ $status -eq "$expected" ] || fail "exit status $expected"
}

start "$ADDRESS:0" --threads 2 --blocks 512 --block-size 64KiB --sessions 8 --connections 8 \
    --metrics "$ADDRESS:0"
metrics=$(sed -n 's/^metrics at port \([0-9]*\).*/\1/p' target.out)

bench 0 --connections 8 --count 2000 --verify --seed 1 --target-metrics "$ADDRESS:$metrics"
says out '2000 operations of 65536 octets'
says out 'statuses     OK 2000'
says out 'at the target'
says out 'in all       0 registrations'
bench 0 --connections 8 --duration 2s --verify --poll --mix load=40,store=20,alloc-free=40 \
    --length 4088 --json
says out '"registrations":0'
says out '"ALLOC_STORE":{'
bench 0 --connections 4 --count 1000 --verify --inline --length 999 --depth 3
bench 0 --connections 1 --count 200 --verify --depth 1 --handles 1 --mix store=1,load=1
case $DRIVER in
    rxe)
        bench 0 --connections 2 --count 600 --verify --invalidate
        says out 'in all       0 registrations'
        ;;
    siw)
        bench 4 --invalidate
        says err 'siw0 has no memory windows'
        ;;
esac
bench 2 --depth 17
says err 'the target gives 16 credits'
bench 2 --length 65537
bench 2 --handles 65
bench 2 --inline --length 4097
bench 1 --connections 9 --timeout 20s
says err 'no session for connection'

ran='kbtp bench and SIGINT'
kbtp bench "$at" --trusted-network --duration 30s --verify >out 2>err &
bench=$!
sleep 3
kill -INT $bench
wait $bench
status=$?
[ $status -eq 3 ] || fail 'exit status 3'
says out '(interrupted)'

stop TERM
cat target.out
conclude
