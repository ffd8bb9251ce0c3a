#!/usr/bin/env bash
# The scripts that people run tell how they are used, and refuse what they do not know before they
# do anything.
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
failures=0

expect() { # STATUS TEXT SCRIPT ARGUMENT...: one line, on standard output if the status is 0
    local wanted=$1 text=$2 status=0
    shift 2
    "$SOURCE/scripts/$1" "${@:2}" >out 2>err || status=$?
    if [ "$wanted" -ne 0 ]; then mv out none && mv err out && mv none err; fi
    if [ "$status" -ne "$wanted" ] || [ -s err ] || [ "$(wc -l <out)" -ne 1 ] ||
        ! grep -qF -- "$text" out; then
        echo "FAILED: scripts/$*: status $status: $(cat out err)"
        failures=$((failures + 1))
    fi
}

for script in build test run races; do
    expect 0 "usage: scripts/$script" $script --help
    expect 0 "usage: scripts/$script" $script -h
    expect 2 "'--unknown'" $script --unknown
done
for script in build test; do
    expect 2 "no preset 'unknown'" $script unknown
done
expect 2 "'more'" build release more
expect 2 "'more'" run more
expect 2 "'-1'" races --docs -1
expect 2 "'3'" races 1 2 3

# Every preset that can be built is named.
for preset in $(jq -r '.buildPresets[].name' "$SOURCE/CMakePresets.json"); do
    "$SOURCE/scripts/build" --help | grep -qw "$preset" || {
        echo "FAILED: scripts/build --help has no preset $preset"
        failures=$((failures + 1))
    }
done
[ "$failures" -eq 0 ]
