#!/bin/sh
# limit: 120 s
# `kbtp run-real`: every scenario that can be run in turn, over the driver and in the simulator, with
# the same outcomes. What a driver cannot serve it says, and no more is left out than is known here.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh
the_same=0 unserved=''

set -- "$SCENARIOS"/faults/*.yaml "$SCENARIOS"/programs/*.yaml "$SCENARIOS"/races/*.yaml \
    "$SCENARIOS"/ring/*.yaml
kbtp run-real --list "$@" >list || exit 1
for scenario in $(sed -n 's/^yes  //p' list); do
    name=${scenario#"$SCENARIOS"/}
    timeout -s KILL 30 kbtp run-real "$scenario" --both --listen "$ADDRESS:0" --trusted-network \
        >out 2>err </dev/null
    status=$?
    if [ $status -eq 0 ]; then
        the_same=$((the_same + 1))
    elif [ $status -eq 4 ] && grep -q "$DEVICE cannot serve" err; then
        unserved="$unserved ${name%.yaml}"
    else
        ran=$name
        fail 'the same in both worlds'
        cat out err
    fi
done

echo "$the_same the same; not served:$unserved"
known=''
[ "$DRIVER" = rxe ] ||
    known=' programs/records races/direct-alloc races/direct-atomics races/direct-deadlock races/records'
[ "$unserved" = "$known" ] || fail "not served are:$known"
[ $the_same -ge 27 ] || fail 'there are scenarios to run'
conclude
