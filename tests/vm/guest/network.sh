#!/bin/sh
# limit: 120 s
# A target stops for longer than --timeout, and the network fails while operations are under way:
# every initiator ends in time with status 4 and one line that says why, or goes on later as if
# nothing had been; and is served again when the cause has gone.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
timeout=2 slack=6
# siw lets nobody go whose connection is being made, until nobody has answered for 10 s.
[ "$DRIVER" = rxe ] || slack=16
octets 65536 block

seconds() {
    sed 's/\..*//' /proc/uptime
}

serve() {
    start "$ADDRESS:0" --threads 2 --blocks 60 --block-size 64KiB --sessions 5 --quota 12 \
        --handles 64 --max-inline 512 --credits 8 --connections 16 --retention forever
    run 0 kbtp alloc-store "$at" +0 --seal --identity one.id --trusted-network --input block
}

# Two that have always something under way.
work() {
    vm-work "$at" 1 3600 1 >work1.out 2>work1.err &
    worker1=$!
    vm-work "$at" 2 3600 2 >work2.out 2>work2.err &
    worker2=$!
    tries=0
    until grep -qs '^busy' work1.out && grep -qs '^busy' work2.out || [ $tries -eq 200 ]; do
        usleep 100000
        tries=$((tries + 1))
    done
    usleep 200000
}

worked() { # STATUS OF BOTH
    for worker in $worker1 $worker2; do
        [ "$1" -ne 0 ] || kill -TERM "$worker"
        wait "$worker"
        status=$?
        ran='an initiator that works'
        [ $status -eq "$1" ] || fail "status $1"
    done
    tail -qn 1 work?.out work?.err
    [ "$1" -eq 0 ] || [ "$(cat work?.err | wc -l)" -eq 2 ] || fail 'one line of each'
}

# Four who come now all end in time, each with a line.
expect_failures() { # WHEN
    begun=$(seconds) pids=''
    for n in 1 2 3 4; do
        kbtp load "$at" +0 --identity one.id --trusted-network --timeout ${timeout}s \
            --output none 2>"err$n" &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid"
        status=$?
        ran="kbtp load, $1"
        [ $status -eq 4 ] || fail 'status 4'
    done
    cat err?
    for n in 1 2 3 4; do
        [ "$(wc -l <err$n)" -eq 1 ] || fail 'one line'
    done
    took=$(($(seconds) - begun))
    step "$1: all had ended after $took s"
    [ $took -le $((timeout + slack)) ] || fail "they end in time"
}

expect_served() {
    run 0 kbtp load "$at" +0 --identity one.id --trusted-network --output loaded
    same loaded block
    step "served again"
}

serve
work
kill -STOP "$target"
expect_failures 'while the target is stopped'
kill -CONT "$target"
expect_served
worked 0

# Both ends are here. What siw sends goes through lo, and TCP repeats it later; whoever connects
# meanwhile is held in the kernel for minutes. What rxe sends goes nowhere, but not when its
# interface is down; and that this rxe never gets over.
work
step "the network goes down"
if [ "$DRIVER" = siw ]; then
    ip link set lo down
    sleep 3
    ip link set lo up
    expect_served
    worked 0
    stop TERM
else
    ip link set net-rxe down
    worked 4
    expect_failures 'while the network is down'
    ip link set net-rxe up
    stop TERM
    rdma link delete rxe0
    rdma link add rxe0 type rxe netdev net-rxe
    ip address add "$ADDRESS6/64" dev net-rxe nodad
    serve
    expect_served
    stop TERM
fi
conclude
