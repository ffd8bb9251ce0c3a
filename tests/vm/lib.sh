#!/bin/sh
# What tests in the guest share: commands whose status and words are as they must be, and a target.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2034 # some variables are for who includes this
PATH=$BIN:$PATH
# siw counts the pool and the messages.
# shellcheck disable=SC3045 # dash and busybox have -l
ulimit -l unlimited
failures=0 ran='' status=-

fail() { # WHAT
    failures=$((failures + 1))
    echo "FAILED: $1 (after: $ran; status $status)"
    head -n 3 out err 2>/dev/null
    [ $failures -lt 10 ] || exit 1
}

# Where it is, with the seconds since the guest began.
step() {
    cut -d ' ' -f 1 /proc/uptime | tr '\n' ' '
    echo "$*"
}

run() { # STATUS COMMAND...: its output is in out and err
    expected=$1
    shift
    ran="$*"
    timeout -s KILL 30 "$@" >out 2>err </dev/null
    status=$?
    [ $status -eq "$expected" ] || fail "exit status $expected"
}

says() { # FILE TEXT
    grep -qF -- "$2" "$1" || fail "'$2' in $1"
}

same() { # FILE FILE
    cmp "$1" "$2" || fail "$1 is as $2"
}

octets() { # COUNT FILE
    dd if=/dev/urandom of="$2" bs="$1" count=1 2>/dev/null
}

# Starts a target, waits until it is ready, and sets `at` to what the other side types.
start() { # ADDRESS OPTION...
    listen=$1
    shift
    ran="kbtp target $*"
    rm -f target.out
    kbtp target --listen "$listen" --trusted-network "$@" >target.out 2>target.err </dev/null &
    target=$!
    tries=0
    until grep -qs '^ready' target.out || ! kill -0 "$target" 2>/dev/null || [ $tries -eq 100 ]; do
        usleep 100000
        tries=$((tries + 1))
    done
    grep -qs '^ready' target.out || {
        status=-
        fail "the target is ready"
        cat target.out target.err
    }
    at=$(sed -n 's/.*alloc-store \([^ ]*\) .*/\1/p' target.out)
}

stop() { # the target ends well, and says what it counted
    ran="SIG${1-TERM} to the target"
    kill -"${1-TERM}" "$target"
    wait "$target"
    status=$?
    [ $status -eq 0 ] || fail "the target ended with status 0"
    [ ! -s target.err ] || { fail "the target complains of nothing" && cat target.err; }
    says target.out "ended by SIG${1-TERM}; counted:"
}

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

# Both sides of a program of perftest; its line of figures is in `figures`, what both said in `server`
# and `client`. Once more when it fails: both crash now and then.
perftest() { # PROGRAM OPTION...
    for _ in 1 2; do
        "$@" -d "$DEVICE" -R -F >server 2>&1 &
        server=$!
        if listening && timeout 40 "$@" -d "$DEVICE" -R -F "$ADDRESS" >client 2>&1; then
            wait $server
            figures=$(grep -A 1 '#bytes' client | tail -n 1)
            [ -z "$figures" ] || return 0
        fi
        kill -KILL $server
        wait $server
        cat server client
    done
    ran="$*"
    fail 'there are figures'
    return 1
}

conclude() { # at the end
    [ $failures -eq 0 ]
}
