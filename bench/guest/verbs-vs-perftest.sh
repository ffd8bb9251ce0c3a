#!/bin/sh
# limit: 900 s
# In the guest, once with each driver (bench/verbs-vs-perftest): rounds of perftest and of kbtp bench
# in turn. Leaves `perftest`, lines of ROUND NAME VALUE (typical microseconds; average MiB/s), and
# `kbtp`, lines of ROUND NAME and what kbtp bench --json printed.
#
# SPDX-License-Identifier: BSD-3-Clause
PATH=$BIN:$PATH
# siw counts the pool and the messages.
# shellcheck disable=SC3045 # dash and busybox have -l
ulimit -l unlimited
rounds=5
request=40 # octets of a LOAD
: >perftest
: >kbtp

# perftest's client crashes where nobody listens yet, and an rdma_cm id that is listed as listening
# is not at once.
listening() {
    for _ in $(seq 100); do
        if rdma resource show cm_id | grep -q 'state LISTEN'; then
            sleep 0.3
            return
        fi
        sleep 0.1
    done
    return 1
}

once() { # PROGRAM OPTION...: its line of figures is in `figures`
    "$@" -d "$DEVICE" -R -F >server 2>&1 &
    server=$!
    if listening && timeout 40 "$@" -d "$DEVICE" -R -F "$ADDRESS" >client 2>&1; then
        wait $server
        figures=$(grep -A 1 '#bytes' client | tail -n 1)
        [ -n "$figures" ] && return
    fi
    kill -KILL $server
    wait $server
    cat server client
    return 1
}

perftest() { # NAME COLUMN PROGRAM OPTION...
    name=$1 column=$2
    shift 2
    once "$@" || once "$@" || exit 1
    echo "$round $name $(echo "$figures" | awk -v c="$column" '{ print $c }')" >>perftest
}

start_target() { # OPTION...
    rm -f target.out
    kbtp target --listen "$ADDRESS:0" --trusted-network --sessions 4 --connections 4 "$@" >target.out 2>target.err </dev/null &
    target=$!
    tries=0
    until grep -qs '^ready' target.out || [ $tries -eq 100 ]; do
        usleep 100000
        tries=$((tries + 1))
    done
    at=$(sed -n 's/.*alloc-store \([^ ]*\) .*/\1/p' target.out)
}

stop_target() {
    kill -TERM $target
    wait $target || exit 1
}

bench() { # NAME OPTION...
    name=$1
    shift
    echo "$round $name $(timeout 60 kbtp bench "$at" --trusted-network --json --warm-up 100ms \
        "$@")" >>kbtp
    tail -n 1 kbtp | grep -q '"wrong":null' || exit 1
}

# Loads and stores, and latency, which takes as little time as perftest does.
suite() { # PREFIX OPTION...
    prefix=$1
    shift
    bench "$prefix-load-bw" --mix load=1 --duration 500ms "$@"
    bench "$prefix-load-bw-verify" --mix load=1 --verify --duration 500ms "$@"
    bench "$prefix-store-bw" --mix alloc-free=1 --duration 500ms "$@"
    for _ in 1 2 3; do
        bench "$prefix-load-lat" --mix load=1 --length 4KiB --depth 1 --duration 100ms "$@"
    done
    bench "$prefix-load-lat-verify" --mix load=1 --length 4KiB --depth 1 --verify \
        --duration 100ms "$@"
}

round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    perftest send-lat 5 ib_send_lat -s $request -n 1000
    perftest write-lat 5 ib_write_lat -s 4096 -n 1000
    start_target --blocks 128 --poll
    suite poll --poll
    [ "$DRIVER" = siw ] || suite invalidate --poll --invalidate
    stop_target
    perftest write-bw 4 ib_write_bw -s 65536 -n 1000
    perftest read-bw 4 ib_read_bw -s 65536 -n 500
    start_target --blocks 128
    suite events
    stop_target
    perftest write-bw-1m 4 ib_write_bw -s 1048576 -n 100
    perftest read-bw-1m 4 ib_read_bw -s 1048576 -n 50
    start_target --blocks 64 --block-size 1MiB --poll
    bench poll-load-bw-1m --mix load=1 --duration 500ms --poll
    bench poll-store-bw-1m --mix alloc-free=1 --duration 500ms --poll
    stop_target
    echo "round $round"
done
