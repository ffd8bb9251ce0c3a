#!/usr/bin/env bash
# Ctrl-C ends a search in order and at once: what was covered is told, status 3. Progress is for
# terminals only.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

endless_world >endless.yaml

catches() { # PID SIGNAL-NUMBER: it has a handler for the signal
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    ((0x${mask:-0} >> ($2 - 1) & 1))
}

# Explores without end, until the signal; $took is how many milliseconds that was heard after.
interrupted() { # SIGNAL ARGUMENT...
    local signal=$1 pid tries sent
    shift
    shown="kbtp explore endless.yaml $* and SIG$signal"
    timeout -k 1 60 "$KBTP" explore endless.yaml "$@" >"$out" 2>"$err" </dev/null &
    pid=$!
    # The signal is for kbtp, the only child of timeout.
    for ((tries = 0; tries < 200; tries++)); do
        child=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || true
        child=${child%% *}
        [ -n "$child" ] && catches "$child" "$(kill -l "$signal")" && break
        sleep 0.05
    done
    sleep 0.3
    sent=${EPOCHREALTIME/./}
    kill -s "$signal" "$child"
    status=0
    wait "$pid" || status=$?
    took=$(((${EPOCHREALTIME/./} - sent) / 1000))
}

covered() { # it says in words how far it came
    exits 3
    quiet "$err"
    check "ends soon, took $took ms" [ "$took" -lt ${slow:+1}2000 ]
    says "$out" 'interrupted'
    check 'states that were covered' grep -Eq '[1-9][0-9]+ states' "$out"
}

interrupted INT
covered
interrupted TERM
covered
for options in '--mode random --runs 1000000000' '--mode pct --runs 1000000000' --exact \
    --check-commute; do
    # shellcheck disable=SC2086 # words
    interrupted INT $options
    covered
done
interrupted INT --json --trace unused
exits 3
quiet "$err"
check 'an object that says so' jq -e '.result == "incomplete" and .bound == "interrupted" and
    .states > 100' "$out"
check 'no trace' [ ! -e unused ]

# ---- progress --------------------------------------------------------------------------------

if ! script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    echo 'note: progress on a terminal is not tested, there is no script(1) of util-linux'
    finish
    exit
fi

# What a terminal gets; redirections in COMMAND are followed.
terminal() { # COMMAND
    shown=$1
    status=0
    timeout -k 1 60 script -qec "$1" /dev/null >typescript </dev/null 2>&1 || status=$?
}

explore="$(printf %q "$KBTP") explore endless.yaml --max-seconds 1600ms"
erase=$'\r\033[K'

terminal "$explore 2>$err"
exits 3
quiet "$err"
check 'no progress but on stderr' [ "$(grep -c $'\033' typescript)" -eq 0 ]

terminal "$explore >$out"
exits 3
check 'progress on a terminal' grep -q "${erase/\[/\\[}[0-9.]* M states" typescript
check 'the last progress is erased' [ "$(tail -c 4 typescript)" = "$erase" ]
says "$out" 'result      incomplete'
check 'no progress on stdout' [ "$(grep -c $'\033' "$out")" -eq 0 ]
finish
