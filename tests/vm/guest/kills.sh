#!/bin/sh
# limit: 300 s
# Initiators and targets are killed at any moment, while several requests are under way: nobody
# hangs, who survives says what happened, a target goes on serving the others, who comes back within the
# retention time finds what was bound, and in the end every block can be had (I-16, I-33, I-35).
# KILLS=50: so many of each, instead of 12; SEED=N: the same moments again.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
kills=${KILLS:-12}
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
lanes=3 retention=5
sessions=4 quota=12
blocks=$((sessions * quota))
echo "SEED=$seed KILLS=$kills"

# Numbers below LIMIT, a line each.
moments() { # STREAM COUNT LIMIT
    awk -v seed="$((seed * 64 + $1))" -v count="$2" -v limit="$3" \
        'BEGIN { srand(seed); while (count--) print int(rand() * limit) }'
}

serve() { # PORT THREADS
    start "$ADDRESS:$1" --threads "$2" --blocks $blocks --block-size 16KiB --sessions $sessions \
        --quota $quota --handles 64 --max-inline 512 --credits 8 --connections 16 \
        --retention ${retention}s
}

# The value of a counter or gauge, all its labels summed up, that the target has printed.
counted() { # PATTERN
    awk -v pattern="^$1" '$0 ~ pattern { sum += $NF } END { print sum + 0 }' target.out
}

# Whoever was killed, nothing is lost: fresh initiators have all blocks.
check_nothing_lost() {
    run 0 vm-fill "$at" $sessions $blocks 100
    says out "$blocks blocks"
    stop TERM
    step "the target counted"
    grep '^kbtp' target.out
    had=$(counted 'kbtp_requests_total\{opcode="ALLOC_STORE",status="OK"')
    freed=$(counted 'kbtp_requests_total\{opcode="FREE",status="OK"')
    released=$(counted kbtp_released_blocks_total)
    echo "allocated $had, freed $freed, released $released"
    status=$had
    [ "$had" -ge $blocks ] || fail "each of $blocks blocks was allocated"
    [ "$had" -eq $((freed + released)) ] || fail "what was allocated was freed: $freed + $released"
}

# Does it in all lanes at once.
side_by_side() { # FUNCTION WHAT
    pids=''
    for lane in $(seq $lanes); do
        ("$1" "$lane") >"$1.$lane" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid"
        status=$?
        ran=$1
        [ $status -eq 0 ] || fail "$2"
    done
    cat "$1".*
}

# ---- initiators

# Until a line of a file begins with a word, or 10 s are over.
await() { # WORD FILE
    tries=0
    until grep -qs "^$1" "$2" || [ $tries -eq 500 ]; do
        usleep 20000
        tries=$((tries + 1))
    done
}

seconds() {
    sed 's/\..*//' /proc/uptime
}

# What an initiator keeps is as it was, if one was there within the retention time.
check_kept() {
    grep -q '^busy' out || return 0
    grep '^kept' out >now
    if [ "$found" -ge 0 ] && [ $(($(seconds) - last)) -lt $retention ]; then
        cmp now kept || fail 'what was bound is found again'
        found=$((found + 1))
    fi
    [ "$found" -ge 0 ] || found=0
    mv now kept
    last=$(seconds)
}

# One after the other. The first moments are those of connecting; others begin with the work.
kill_initiators() { # LANE
    mkdir "lane$1" && cd "lane$1" || exit
    moments "$1" $(((kills + lanes - 1) / lanes)) 600 >at_ms
    failures=0 found=-1
    while read -r moment; do
        rm -f out
        vm-work "$at" "$1" 60 "$moment" >out 2>err &
        victim=$!
        ran="initiator $1, to be killed after $moment ms"
        [ $((moment % 3)) -eq 0 ] || await busy out
        usleep $((moment * 1000))
        check_kept
        kill -KILL $victim 2>/dev/null
        wait $victim 2>/dev/null
        status=$?
        [ $status -eq 137 ] || fail 'it works until it is killed'
    done <at_ms
    ran="initiator $1, who comes back"
    run 0 vm-work "$at" "$1" 0 0
    check_kept
    step "initiator $1 found what it had bound $found times"
    [ "$found" -gt 0 ] || fail 'it finds what it had bound'
    conclude
}

step "initiators are killed"
serve 0 2
vm-work "$at" 0 3600 "$seed" >survivor.out 2>survivor.err &
survivor=$!
side_by_side kill_initiators "they are killed and come back"
step "nothing is lost"
kill -TERM $survivor
wait $survivor
status=$?
ran='the other initiator'
[ $status -eq 0 ] || { fail 'it is served all the time' && cat survivor.err; }
cat survivor.out
sleep $((retention + 1))
check_nothing_lost

# ---- targets

# The line of an initiator whose target was killed.
check_survivor() { # PID NUMBER
    wait "$1"
    status=$?
    step "the target is missed"
    ran="initiator $2, whose target was killed"
    [ $status -eq 4 ] || fail 'status 4'
    [ "$(wc -l <"err$2")" -eq 1 ] || fail 'one line'
    says "err$2" 'the connection was lost'
    cat "err$2"
}

kill_targets() { # LANE
    mkdir "targets$1" && cd "targets$1" || exit
    moments "$1$1" $(((kills + lanes - 1) / lanes)) 400 >at_ms
    port=0 failures=0
    while read -r moment; do
        serve "$port" 1
        port=${at##*:}
        rm -f out1 out2
        vm-work "$at" 1 60 "$moment" >out1 2>err1 &
        pid1=$!
        vm-work "$at" 2 60 "$moment" >out2 2>err2 &
        pid2=$!
        await busy out1
        await busy out2
        usleep $((moment * 1000))
        kill -KILL $target
        wait $target 2>/dev/null
        check_survivor $pid1 1
        check_survivor $pid2 2
    done <at_ms
    serve "$port" 2
    check_nothing_lost
    conclude
}

step "targets are killed"
side_by_side kill_targets "they are killed, and the next is there"
step "end"
conclude
