#!/bin/sh
# limit: 120 s
# Two processes that know nothing of this project exchange SENDs and WRITEs over a connection of
# rdma_cm: what fails here is the guest's. Times are those of an emulator, without worth.

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

measure() { # NAME PROGRAM OPTION...
    name=$1
    shift
    "$@" -d "$DEVICE" -R -F >"$name.server" 2>&1 &
    server=$!
    if listening && timeout 25 "$@" -d "$DEVICE" -R -F "$ADDRESS" >"$name" 2>&1; then
        wait $server && grep -A 1 '#bytes' "$name" && return
    fi
    kill -KILL $server
    wait $server
    cat "$name.server" "$name"
    return 1
}

# Even so: once more.
twice() {
    measure "$@" && return
    echo "$1: once more"
    measure "$@"
}

twice send-latency ib_send_lat -s 64 -n 200 || exit
twice write-latency ib_write_lat -s 64 -n 200 || exit
twice write-bandwidth ib_write_bw -s 65536 -n 50
