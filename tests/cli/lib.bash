# shellcheck shell=bash
# What the scripts of this directory share: they source it, run kbtp, look at what it did, and end
# with finish. A failed check is told and counted; the script goes on.
#
# SPDX-License-Identifier: BSD-3-Clause
set -eu
: "${KBTP:?the program to test}" "${SOURCE:?the directory of the project}"
export LC_ALL=C
out=$PWD/out err=$PWD/err # of the last run
status=0                  # of the last run
shown=                    # what was run, for messages
limit=60                  # seconds of a run
checks=0 failures=0
# Builds with sanitizers (SLOW is set) try less.
# shellcheck disable=SC2034 # by those who source this
slow=${SLOW:-}

fail() { # WHAT
    failures=$((failures + 1))
    {
        printf 'FAILED: %s\n    after: %.300s\n    status %s\n' "$1" "$shown" "$status"
        [ ! -s "$out" ] || head -n 4 "$out" | cut -c 1-300 | sed 's/^/    stdout: /'
        [ ! -s "$err" ] || head -n 4 "$err" | cut -c 1-300 | sed 's/^/    stderr: /'
    } >&2
}

check() { # WHAT COMMAND...: the command must succeed; what it prints is of no interest
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" >/dev/null || fail "$what"
}

equal() { # WHAT EXPECTED FOUND
    check "$1: expected $2, found $3" [ "$2" = "$3" ]
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$failures" -eq 0 ]
}

# Runs a command with a time limit (status 124); its output goes to the files $out and $err.
run() { # COMMAND...
    printf -v shown '%.100s ' "$@"
    status=0
    timeout -k 2 "$limit" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

kbtp() { # ARGUMENT...
    run "$KBTP" "$@"
}

exits() { # STATUS
    check "exit status $1" [ "$status" -eq "$1" ]
}

contains() { # FILE TEXT
    local text
    read -r -d '' text <"$1" || true
    [[ $text == *"$2"* ]]
}

lacks() { # FILE TEXT
    ! contains "$@"
}

says() { # FILE TEXT: the text stands in the file
    check "'$2' in ${1##*/}" contains "$1" "$2"
}

quiet() { # FILE: nothing stands in it
    check "nothing in ${1##*/}" [ ! -s "$1" ]
}

# One line on standard error, or a second one that says where help is; each is for people: short,
# whole and without anything that moves a terminal's cursor.
complains() { # TEXT: stands in it
    check 'one clear line on stderr' one_message
    says "$err" "$1"
}

one_message() {
    local lines line
    mapfile lines <"$err"
    [ "${#lines[@]}" -eq 1 ] ||
        { [ "${#lines[@]}" -eq 2 ] && [[ ${lines[1]} == "try \`kbtp help"* ]]; } || return
    for line in "${lines[@]}"; do
        [[ $line == *$'\n' && ${line%$'\n'} != *[[:cntrl:]]* && ${#line} -lt 1000 ]] || return
    done
    [[ ${lines[0]} == kbtp* ]]
}

refuses() { # STATUS TEXT ARGUMENT...: kbtp ends with it, says TEXT, and nothing else
    kbtp "${@:3}"
    exits "$1"
    quiet "$out"
    complains "$2"
}

ends() { # STATUS ARGUMENT...: kbtp does, and says nothing but what is wrong if it fails
    kbtp "${@:2}"
    exits "$1"
    [ "$1" -eq 0 ] || check 'one clear line on stderr' one_message
}

digest() { # ARGUMENT...: of a timed run
    ends 0 run --wire fifo --json "$@"
    jq -r .digest "$out"
}

changed() { # SED FILE NEW: a copy in which something is different
    sed "$1" "$2" >"$3"
    ! cmp -s "$2" "$3" || fail "nothing was changed by $1"
}

# Two allocators and a freer around a ring of four slots. When nothing is wrong: 8000 states with
# two allocations each, 85000 with three.
small_world() { # ALLOCATIONS MUST-REACH
    cat <<END
kind: ring
slots: 4
blocks: 4
memory: sc
allocators:
  - {name: a1, allocations: $1}
  - {name: a2, allocations: $1}
freers:
  - {name: f1}
must_reach: [$2]
END
}

# More than anybody can explore.
endless_world() {
    cat <<END
kind: ring
slots: 16
blocks: 16
memory: relaxed
allocators:
  - {name: a1, allocations: 50}
  - {name: a2, allocations: 50}
  - {name: a3, allocations: 50}
freers:
  - {name: f1}
  - {name: f2}
END
}
