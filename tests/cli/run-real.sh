#!/usr/bin/env bash
# `kbtp run-real`: bad command lines and scenarios, what is unfit and why, and what is printed when two
# worlds differ. That they do not: tests/scenarios/in-turn.sh.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"
races=$SOURCE/scenarios/races
fake=${KBTP%/*}/tests/cli/run-real-fake
at=10.0.0.1:0

refused() { # TEXT ARGUMENT...: a bad command line or scenario
    refuses 2 "$1" run-real "${@:2}"
}

over() { # siw|rxe ARGUMENT...: over the rdma-core for tests
    run "$fake" "$@"
}

# ---- bad command lines -----------------------------------------------------------------------

refused 'which scenario'
refused 'which scenario' --list
refused 'where? --simulated, or --listen' "$races/quota.yaml"
refused 'over which device' "$races/quota.yaml" --both
refused 'one scenario at a time' "$races/quota.yaml" "$races/records.yaml" --simulated
refused 'for both worlds say --both' "$races/quota.yaml" --simulated --listen $at
refused 'for both worlds say --both' "$races/quota.yaml" --simulated --both
refused '--list runs nothing' "$races/quota.yaml" --list --simulated
refused '--list runs nothing' "$races/quota.yaml" --list --json
refused 'say --trusted-network on both' "$races/quota.yaml" --listen $at
refused '--timeout' "$races/quota.yaml" --timeout 0
refused '--listen needs a value' "$races/quota.yaml" --listen
for value in 127.0.0.1 :7471 127.0.0.1:x 127.0.0.1:65536 ::1:7471; do
    refused 'not of the form HOST:PORT' "$races/quota.yaml" --trusted-network --listen "$value"
done

# ---- bad scenarios ---------------------------------------------------------------------------

for options in --simulated --list; do
    refused 'missing: cannot be read: No such file' missing $options
    refused 'is a directory' . $options
    : >empty
    refused 'empty: is empty' empty $options
    echo 'kind: protocol' >short.yaml
    refused 'short.yaml:1:' short.yaml $options
done
echo 'kbtp trace 1' >a.trace
refused 'a.trace' a.trace --simulated

# ---- what is unfit, and why ------------------------------------------------------------------

refused 'kind: ring has no requests' "$races/deferred-free.yaml" --simulated
refused 'losses: connections that may be lost, which only the simulator decides' \
    "$races/reconnect-in-flight.yaml" --simulated
unfit() { # KEY: VALUE
    sed "\$a$1" "$races/quota.yaml" >unfit.yaml
    refused "unfit.yaml cannot be run so: ${1%%:*}: " unfit.yaml --simulated
    refused "unfit.yaml cannot be run so: ${1%%:*}: " unfit.yaml --listen $at --trusted-network
    kbtp run-real --list unfit.yaml
    exits 0
    says "$out" "no   unfit.yaml: ${1%%:*}: "
}
for key in 'losses: 1' 'stops: 1' 'silent_stops: 1' 'restarts: 1' 'retention_ends: true' \
    'retention_ends: late' 'probes: late' 'ticket_timeout: true'; do
    unfit "$key"
done
sed '0,/quota: 1/s//quota: 1\n    retries: 1/' "$races/quota.yaml" >unfit.yaml
refused 'initiators[0].retries: another try' unfit.yaml --simulated
kbtp run-real --list "$races/quota.yaml" "$races/deferred-free.yaml"
exits 0
equal 'lines' 2 "$(wc -l <"$out")"
says "$out" "yes  $races/quota.yaml"

# ---- what is printed -------------------------------------------------------------------------

kbtp run-real "$races/quota.yaml" --simulated
exits 0
quiet "$err"
cp "$out" simulated
over rxe "$races/quota.yaml" --listen $at --trusted-network
exits 0
quiet "$err"
check 'both transcripts are the same' cmp "$out" simulated
over rxe "$races/quota.yaml" --listen $at --trusted-network --both --json
exits 0
equal 'the same' true "$(jq .same "$out")"
check 'lines of both' [ "$(jq '.simulated == .device and (.device | length) == 9' "$out")" = true ]

# A status that is not expected.
sed '0,/NO_SPACE/s//OK/' "$races/quota.yaml" >unexpected.yaml
kbtp run-real unexpected.yaml --simulated
exits 1
complains 'violation of expected-status'
over siw unexpected.yaml --listen $at --trusted-network
exits 1
says "$err" 'unexpected.yaml: 1 statuses'
check 'everything was run' cmp "$out" simulated

# What the device cannot serve, or is not there.
over siw "$races/records.yaml" --listen $at --trusted-network --both
exits 4
quiet "$out"
complains 'fake0 cannot serve X.1: RECORD_COMPLETION: RDMAP does not order'
over siw "$races/quota.yaml" --listen $at --trusted-network --device fake7
exits 4
complains 'fake7'
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    refuses 4 'no RDMA device is here' run-real "$races/quota.yaml" --listen 127.0.0.1:0 --trusted-network
fi
finish
