#!/bin/sh
# limit: 900 s
# In the guest, once with each driver (bench/verbs-vs-perftest): rounds of perftest and of kbtp bench
# in turn. Leaves `perftest`, lines of ROUND NAME VALUE (typical microseconds; average MiB/s), and
# `kbtp`, lines of ROUND NAME and what kbtp bench --json printed.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
rounds=5
request=40 # octets of a LOAD
: >perftest
: >kbtp

figure() { # NAME COLUMN PROGRAM OPTION...
    name=$1 column=$2
    shift 2
    perftest "$@" || exit 1
    echo "$round $name $(echo "$figures" | awk -v c="$column" '{ print $c }')" >>perftest
}

serve() { # OPTION...
    start "$ADDRESS:0" --sessions 4 --connections 4 "$@"
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
    figure send-lat 5 ib_send_lat -s $request -n 1000
    figure write-lat 5 ib_write_lat -s 4096 -n 1000
    serve --blocks 128 --poll
    suite poll --poll
    [ "$DRIVER" = siw ] || suite invalidate --poll --invalidate
    stop TERM
    figure write-bw 4 ib_write_bw -s 65536 -n 1000
    figure read-bw 4 ib_read_bw -s 65536 -n 500
    serve --blocks 128
    suite events
    stop TERM
    figure write-bw-1m 4 ib_write_bw -s 1048576 -n 100
    figure read-bw-1m 4 ib_read_bw -s 1048576 -n 50
    serve --blocks 64 --block-size 1MiB --poll
    bench poll-load-bw-1m --mix load=1 --duration 500ms --poll
    bench poll-store-bw-1m --mix alloc-free=1 --duration 500ms --poll
    stop TERM
    echo "round $round"
done
conclude
