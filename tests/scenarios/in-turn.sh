#!/usr/bin/env bash
# `kbtp run-real`: what comes of every scenario that can be run in turn is what stands in in-turn.txt,
# in the simulator and, over the rdma-core for tests, over a device like siw and one like rxe. The same
# over the drivers themselves: tests/vm/guest/scenarios.sh.
# After a change that is meant: KBTP=build/release/kbtp SOURCE=$PWD bash tests/scenarios/in-turn.sh print
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
fake=${KBTP%/*}/tests/cli/run-real-fake
expected=$SOURCE/tests/scenarios/in-turn.txt
failures=0

fail() { # WHAT
    echo "FAILED: $*"
    failures=$((failures + 1))
}

cd "$SOURCE"
mapfile -t suitable < <("$KBTP" run-real --list scenarios/{faults,programs,races,ring}/*.yaml | sed -n 's/^yes  //p')

simulated() {
    for scenario in "${suitable[@]}"; do
        echo "== $scenario"
        "$KBTP" run-real "$scenario" --simulated || fail "$scenario in the simulator"
    done
}

if [ "${1:-}" = print ]; then
    simulated >"$expected"
    exit
fi

simulated >"$OLDPWD/simulated"
diff -u "$expected" "$OLDPWD/simulated" || fail 'other outcomes than in in-turn.txt'
for driver in siw rxe; do
    same=0 unserved=
    for scenario in "${suitable[@]}"; do
        status=0
        "$fake" $driver "$scenario" --both --listen 10.0.0.1:0 --trusted-network \
            >"$OLDPWD/out" 2>"$OLDPWD/err" || status=$?
        case $status in
        0) same=$((same + 1)) ;;
        4)
            grep -q 'cannot serve' "$OLDPWD/err" || fail "$driver: $(cat "$OLDPWD/err")"
            unserved+=" $scenario"
            ;;
        *)
            cat "$OLDPWD/out" "$OLDPWD/err"
            fail "$scenario over $driver"
            ;;
        esac
    done
    echo "$driver: $same of ${#suitable[@]} the same; not served:$unserved"
    known=
    [ "$driver" = rxe ] || known=$(printf ' scenarios/%s.yaml' programs/records races/direct-alloc \
        races/direct-atomics races/direct-deadlock races/records)
    [ "$unserved" = "$known" ] || fail "$driver: known as not served are:$known"
done
[ $failures -eq 0 ]
