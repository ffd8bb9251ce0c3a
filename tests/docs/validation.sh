#!/usr/bin/env bash
# docs/validation.md has what its commands print, and what it says about errors is so.
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
validate=${KBTP%/*}/bench/validate
"$validate" "$SOURCE/docs/validation/verbs.csv" "$SOURCE/scenarios/nic" >table
sed -n '/^<!-- verbs -->$/,/^<!-- end -->$/p' "$SOURCE/docs/validation.md" | sed '1d;$d' >printed
diff -u printed table || {
    echo "docs/validation.md has another table than bench/validate prints"
    exit 1
}
# Both wires, where it is quick to see: one request at a time, and a link that is full.
sed -n '/^<!-- wires -->$/,/^<!-- wires end -->$/p' "$SOURCE/docs/validation.md" | grep '^| `' >wires
if [ -z "${SLOW:-}" ]; then
    for scenario in ping-pong-load ping-pong-alloc-free stalled; do
        "$SOURCE/bench/wires" "$KBTP" "$SOURCE/scenarios/timed/$scenario.yaml" | tail -1 >row
        grep -qxFf row wires || {
            echo "docs/validation.md has another row for $scenario: $(cat row)"
            exit 1
        }
    done
    [ "$(grep -c 'ping-pong.* equal ' wires)" -ge 4 ] || { echo "digests are not equal"; exit 1; }
fi
# A step at a time against a message at a time; chains.
rows() { # MARK
    sed -n "/^<!-- $1 -->\$/,/^<!-- $1 end -->\$/p" "$SOURCE/docs/validation.md" | grep '^| [^-]' |
        tail -n +2
}
tests=${KBTP%/*}/tests/sim
"$tests/test_timed_levels" | grep '^| ' >levels
{
    "$tests/test_timed_chain"
    [ -n "${SLOW:-}" ] || "$tests/test_chain_load"
} | grep '^| ' >chains
[ -n "${SLOW:-}" ] || rows chains | diff -u - chains
rows levels | diff -u - levels
# Aim: 10 % for figures that have not set the model; the exceptions are those that the page names.
"$validate" "$SOURCE/docs/validation/verbs.csv" "$SOURCE/scenarios/nic" --csv >figures
awk -F, '
    NR == 1 { next }
    { error = $8 < 0 ? -$8 : $8 }
    $9 != "check" { inputs++; if (error > 10) { print "input off by " error " %: " $0; bad = 1 } ; next }
    $1 == "B" && $4 < 1024 { if (error > 20) { print; bad = 1 } ; next }
    $1 == "A" && $3 == "fetch_add_mops" { if (error > 11) { print; bad = 1 } ; next }
    $1 == "5d" { next }
    { checks++; if (error > 10) { print "off by " error " %: " $0; bad = 1 } }
    END { print inputs " inputs, " checks " checks within 10 %"; exit bad || checks < 50 }' figures
# every figure says where it is from, and no cost model is without one that was compared or is derived
awk -F, 'NR > 1 && $10 == "" { print "no source: " $0; bad = 1 } END { exit bad }' \
    "$SOURCE/docs/validation/verbs.csv"
