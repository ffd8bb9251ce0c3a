#!/bin/sh
# limit: 90 s
# What an operation costs in system calls when both sides poll. N operations and twice as many are
# run under strace; what the second run has more is what N operations need: no call but the device's
# doorbell, at most one for each batch of work requests (so no memory is allocated), and looks for
# events, of which there is one in 1,024 polls that found nothing, however many operations there
# are. Nothing is registered.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
operations=200
others=60 # writes before and after: filling half of the handles is 16 or 32 of them
spare=4 # calls of making a connection, which is not always the same

bench() { # OPTION...
    kbtp bench "$at" --trusted-network --warm-up 0 --poll --seed 1 --json "$@"
}

# Of a table by strace -c, with "0" when there is none of it.
calls() { # FILE CALL
    awk -v name="$2" '$NF == name { n = $4 } END { print n + 0 }' "$1"
}

number() { # FILE KEY: the first of this name
    sed -n "s/.*\"$2\":{*\"*\(count\":\)*\([0-9]*\).*/\2/p" "$1"
}

measure() { # OPERATIONS: bench.N, target.N, json.N
    strace -f -c -o "target.$1" -p $target 2>strace.err &
    strace=$!
    until grep -qs attached strace.err; do usleep 100000; done
    strace -f -c -o "bench.$1" kbtp bench "$at" --trusted-network --warm-up 0 --poll --seed 1 \
        --json --count "$1" >"json.$1" || fail "kbtp bench ended with $?"
    kill -INT $strace
    wait $strace
}

# What the target posts at most: an RDMA Read, or the RDMA Write of a LOAD that is not the oldest
# request, is a batch of its own, and so is each completion without an RDMA Write before it.
target_batches() { # FILE
    echo $((2 * ($(number "$1" LOAD) + $(number "$1" STORE) + $(number "$1" ALLOC_STORE)) + \
        $(number "$1" FREE)))
}

# That the second run has more.
more() { # SIDE CALL
    echo $(($(calls "$1.$((2 * operations))" "$2") - $(calls "$1.$operations" "$2")))
}

# Doorbells are write() to the device's file. siw's library leaves some out, now more, now fewer: so
# those of the whole second run count, with the ones before and after it is measured.
check() { # SIDE BATCHES-OF-THE-SECOND-RUN
    n=$(calls "$1.$((2 * operations))" write)
    [ "$n" -le $(($2 + others)) ] || fail "$1: $n write, at most $2 and $others others"
    [ "$n" -ge $operations ] || fail "$1: $n write: strace has not seen the doorbells"
    awk '$1 ~ /^[0-9]/ && NF > 3 { print $NF }' "$1.$((2 * operations))" | sort -u >names
    while read -r call; do
        case $call in
            total | epoll_wait) continue ;;
            write) continue ;; # below
            mmap | munmap | mremap | brk | madvise | ioctl) most=0 ;;
            *) most=$spare ;;
        esac
        n=$(more "$1" "$call")
        [ "$n" -le "$most" ] || fail "$1: $n more $call for $operations operations, at most $most"
    done <names
    n=$(calls "$1.$((2 * operations))" write)
    echo "$1: for $operations operations $(more "$1" write) more writes ($n in all, at most $2 batches and $others others)," \
        "$(more "$1" mmap) mmap, $(more "$1" munmap) munmap, $(more "$1" brk) brk," \
        "$(more "$1" ioctl) ioctl, $(more "$1" epoll_wait) looks"
}

start "$ADDRESS:0" --poll --blocks 64 --block-size 8KiB --sessions 2 --connections 2
bench --count 50 >json.first || fail "kbtp bench ended with $?" # what only the first one needs
measure $operations
measure $((2 * operations))
twice=json.$((2 * operations))
check bench "$(number $twice send_doorbells)"
check target "$(target_batches $twice)"
for n in $operations $((2 * operations)); do
    [ "$(number "json.$n" registrations)" = 0 ] || fail "registrations in json.$n"
    looks=$(($(calls "bench.$n" epoll_wait) - $(number "json.$n" looks)))
    echo "bench: $(number "json.$n" looks) looks while measured, and $looks before and after"
done
stop TERM
cat bench.* target.[0-9]*
conclude
