#!/bin/sh
# limit: 90 s
# `kbtp bench --verify`: ALLOC_STORE, STORE, LOAD and FREE over eight connections to two workers and
# a pool of 32 MiB, in which every octet of every LOAD is checked; by polling and by events, inline,
# with an STag for each request where the device can, and Ctrl-C.
#
# SPDX-License-Identifier: BSD-3-Clause
PATH=$BIN:$PATH
# siw counts the pool and the messages.
# shellcheck disable=SC3045 # dash and busybox have -l
ulimit -l unlimited
failures=0

fail() { # WHAT
    failures=$((failures + 1))
    echo "FAILED: $1 (after: $ran; status $status)"
    tail -n 12 out err
}

says() { # FILE TEXT
    grep -qF -- "$2" "$1" || fail "'$2' in $1"
}

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

kbtp target --listen "$ADDRESS:0" --trusted-network --threads 2 --blocks 512 --block-size 64KiB \
    --sessions 8 --connections 8 --metrics "$ADDRESS:0" >target.out 2>target.err </dev/null &
target=$!
tries=0
until grep -qs '^ready' target.out || [ $tries -eq 100 ]; do
    usleep 100000
    tries=$((tries + 1))
done
at=$(sed -n 's/.*alloc-store \([^ ]*\) .*/\1/p' target.out)
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

ran='SIGTERM to the target'
kill -TERM $target
wait $target
status=$?
[ $status -eq 0 ] || fail 'the target ended with status 0'
[ ! -s target.err ] || { fail 'the target complains of nothing' && cat target.err; }
cat target.out
[ $failures -eq 0 ]
