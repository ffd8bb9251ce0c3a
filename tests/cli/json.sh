#!/usr/bin/env bash
# `kbtp explore --json` prints one object with every key that is promised, whatever the result; and
# the same search gives the same digest.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

# Prints what is wrong with the objects in the input, if anything.
# shellcheck disable=SC2016 # jq's $
types='
def count: type == "number" and . >= 0 and floor == .;
def text: type == "string" and length > 0;
if length != 1 then "\(length) objects" else
    .[0] | . as $o | (.result == "violation") as $violated |
    (["scenario", "mode", "execution", "seed", "result", "property", "reached", "states",
      "transitions", "depth_max", "states_per_s", "seconds", "trace", "trace_steps", "digest", "ordering"] -
     keys | .[] | "no key \(.)"),
    (("scenario", "mode", "execution") | select($o[.] | text | not)),
    (("seed", "states", "transitions", "depth_max") | select($o[.] | count | not)),
    (("states_per_s", "seconds") | select($o[.] | type != "number" or . < 0)),
    ("reached" | select($o[.] | type != "object" or ([.[] | count] | all | not))),
    ("digest" | select($o[.] | tostring | test("^0x[0-9a-f]{16}$") | not)),
    ("result" | select($o[.] | IN("ok", "violation", "vacuous", "incomplete") | not)),
    ("property" | select(($o[.] | text) != $violated)),
    ("trace_steps" | select(($o[.] | count) != $violated)),
    ("trace" | select($o[.] | . != null and (text and $violated | not))),
    ("condition" | select($o | condition | not))
end'

json() { # STATUS CONDITION ARGUMENT...: explores with --json; jq finds the condition true
    local expected=$1 condition=$2 wrong
    shift 2
    kbtp explore --json "$@"
    exits "$expected"
    quiet "$err"
    equal 'lines of JSON' 1 "$(wc -l <"$out")"
    wrong=$(jq -rs "def condition: $condition; $types" "$out" 2>&1) || wrong="$wrong (jq)"
    check "$condition; wrong: ${wrong//$'\n'/, }" [ -z "$wrong" ]
}

small_world 2 deferral >small.yaml
small_world 2 'ticket-wrap, deferral' >vacuous.yaml
endless_world >endless.yaml
race=$SOURCE/scenarios/races/deferred-free.yaml

# ---- each result -----------------------------------------------------------------------------

json 0 '.result == "ok" and .scenario == "small.yaml" and .mode == "exhaustive" and
    .execution == "software" and .seed == 1 and .states > 1000 and .transitions > .states and
    .trace == null and .ordering == null and (.reached | keys == ["deferral"] and .deferral > 0)' \
    small.yaml --trace unused
check 'no trace when nothing is wrong' [ ! -e unused ]

json 1 '.result == "violation" and .property == "slot-not-overwritten" and .trace == null and
    .trace_steps > 5' small.yaml --mutant no-deferral
json 1 '.result == "violation" and .property == "slot-not-overwritten" and .trace == "bad.trace"' \
    small.yaml --mutant no-deferral --trace bad.trace
equal 'steps in the trace' "$(jq .trace_steps "$out")" "$(grep -c '^- ' bad.trace)"

json 1 '.result == "vacuous" and .reached["ticket-wrap"] == 0 and .reached.deferral > 0 and
    (.reached | length == 2)' vacuous.yaml
json 1 '.result == "vacuous" and .trace == null' \
    vacuous.yaml --mode random --runs 300 --trace unused
check 'no trace of what is vacuous' [ ! -e unused ]

# ---- bounds ----------------------------------------------------------------------------------

json 3 '.result == "incomplete" and .bound == "states" and .states >= 100 and .states <= 101 and
    .trace == null' small.yaml --max-states 100
json 3 '.result == "incomplete" and .bound == "memory" and .states > 0' \
    endless.yaml --max-memory 4MiB
for options in '' --exact; do
    # shellcheck disable=SC2086 # words
    json 3 '.bound == "memory" and .states > 10000 and .memory_octets < 5 * 1024 * 1024' \
        endless.yaml --max-memory 4MiB $options
done
for mode in exhaustive random pct; do
    runs=(--mode "$mode")
    [ "$mode" = exhaustive ] || runs+=(--runs 1000000000)
    json 3 '.bound == "seconds" and .states > 100 and .seconds >= 0.3 and .seconds < 3' \
        endless.yaml "${runs[@]}" --max-seconds 300ms
    json 3 '.bound == "states" and .states >= 100 and .states <= 101' \
        endless.yaml "${runs[@]}" --max-states 100
done
json 0 '.bound == null' small.yaml --max-states 1000000 --max-seconds 5min --max-memory 1GiB

# ---- modes, seeds and digests ----------------------------------------------------------------

digest() {
    jq -r .digest "$out"
}

for mode in random pct; do
    walks=(small.yaml --mode "$mode" --runs 300)
    json 0 ".mode == \"$mode\" and .seed == 7 and .walks == 300 and .depth_max > 10" \
        "${walks[@]}" --seed 7
    # What must hold when everything has come to rest is only tested where a walk ends.
    check 'walks end at rest' jq -e '.quiescent > 0' "$out"
    first=$(digest)
    json 0 '.seed == 7' "${walks[@]}" --seed 7
    check 'the same seed gives the same digest' [ "$(digest)" = "$first" ]
    json 0 '.seed == 8' "${walks[@]}" --seed 0x8
    check 'another seed gives another digest' [ "$(digest)" != "$first" ]
    json 1 '.result == "violation" and .property == "slot-not-overwritten"' \
        small.yaml --mutant no-deferral --mode $mode
done
json 0 ".seed == 9223372036854775807" "${walks[@]}" --seed 9223372036854775807

same='[.states, .transitions, .digest, .depth_max, .reached, .quiescent_digest]'
alike() { # SCENARIO: whole states and fingerprints, once and again, give the same
    local first
    json 0 '.collision_probability > 0' "$1"
    first=$(jq -c "$same" "$out")
    json 0 true "$1"
    equal 'the same search' "$first" "$(jq -c "$same" "$out")"
    json 0 '.collision_probability == 0' "$1" --exact
    equal 'whole states' "$first" "$(jq -c "$same" "$out")"
}
[ -n "$slow" ] || alike "$race"
alike small.yaml
plain=$(digest)
json 0 '.commuting_pairs > 0' small.yaml --check-commute
equal 'digest with pairs tried both ways' "$plain" "$(digest)"
json 0 '.memory == "relaxed"' small.yaml --memory relaxed
check 'another machine gives another digest' [ "$(digest)" != "$plain" ]

# ---- names that JSON must escape -------------------------------------------------------------

small_world 1 ticket-wrap >'a "b" \ c.yaml'
cp 'a "b" \ c.yaml' $'caf\303\251.yaml'
cp 'a "b" \ c.yaml' $'caf\351.yaml' # not UTF-8
json 1 '.scenario == "a \"b\" \\ c.yaml"' 'a "b" \ c.yaml'
json 1 '.scenario == "caf\u00e9.yaml"' $'caf\303\251.yaml'
json 1 '.scenario | startswith("caf")' $'caf\351.yaml'
json 1 '.trace | startswith("caf")' small.yaml --mutant no-deferral --trace $'caf\351.trace'
kbtp replay --json $'caf\351.trace'
check 'replay names the trace' jq -e '.trace | startswith("caf")' "$out"
finish
