#!/usr/bin/env bash
# Every mutant is found by a checker, or is shown to be equivalent where expected.tsv says so; every
# trace fails again in the same way, twice, in another directory. Prints the table.
set -eu
list=$SOURCE/tests/mutants/expected.tsv
work=$PWD
elsewhere=$work/elsewhere
mkdir -p "$elsewhere"
failures=0
# Slow builds (sanitizers) try every second row, and take what they reach within these bounds; the
# others cover the rest. Almost half of the rows end before 2,000 states, and all others but one
# need more than 6,000; what costs time is to begin and end a program with sanitizers.
bounds=
[ -z "${SLOW:-}" ] || bounds="--max-states 2000"

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# A trace fails the same property with the same digest, each time.
check_replays() {
    local trace=$1 property=$2 digest=$3 i again
    for i in 1 2; do
        again=$(cd "$elsewhere" && "$KBTP" replay "$trace" --json) && fail "$trace: replay finds nothing"
        [ "$(jq -r '.property, .digest, .as_recorded' <<<"$again" | paste -sd ' ')" = \
            "$property $digest true" ] || fail "$trace: replay $i differs: $again"
    done
}

printf '%-27s %-26s %-17s %-22s %9s %6s %7s\n' mutant scenario options property states depth shrunk
number=0 found=0
while IFS=$'\t' read -r mutant expectation scenario options why; do
    case $mutant in '#'* | '') continue ;; esac
    number=$((number + 1))
    [ -z "$bounds" ] || [ $((number % 2)) -eq 0 ] || continue
    [ "$options" != - ] || options=
    trace=$work/$number-$mutant.trace
    status=0
    # shellcheck disable=SC2086 # options are words
    json=$("$KBTP" explore "$SOURCE/scenarios/$scenario" --mutant "$mutant" $options $bounds --json \
        --trace "$trace") || status=$?
    IFS=$'\t' read -r result property states depth shrunk digest < <(jq -r \
        '[.result, .property // "-", .states, .found_depth // "-", .trace_steps // "-",
          .trace_digest // "-"] | @tsv' <<<"$json")
    printf '%-27s %-26s %-17s %-22s %9s %6s %7s\n' "$mutant" "$scenario" "${options:--}" \
        "$property" "$states" "$depth" "$shrunk"
    if [ -n "$bounds" ] && [ "$status $result" = "3 incomplete" ]; then
        continue
    fi
    found=$((found + 1))
    if [ "$expectation" = equivalent ]; then
        [ "$status $result" = "0 ok" ] || fail "$mutant should be equivalent here ($why): $json"
        continue
    fi
    if [ "$status $result" != "1 violation" ]; then
        fail "$mutant survives: $json"
        continue
    fi
    [ "$property" = "$expectation" ] || fail "$mutant: $property fails, not $expectation"
    [ "$shrunk" -le "$depth" ] || fail "$mutant: shrinking made the trace longer"
    [ "$shrunk" -gt 0 ] || fail "$mutant is found in set-up: no step exercises it"
    check_replays "$trace" "$property" "$digest"
done <"$list"

for mutant in $("$KBTP" explore --mutant list); do
    grep -q "^$mutant	" "$list" ||
        fail "$mutant is not in $list"
done
[ "$found" -gt 8 ] || fail "only $found mutants were tried"
[ "$failures" -eq 0 ]
