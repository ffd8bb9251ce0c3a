#!/usr/bin/env bash
# `kbtp explore --json` prints one object with every key that is promised, whatever the result; and
# the same search gives the same digest.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

# Names what is wrong with the objects in its input, if anything.
cat >types.jq <<'END'
def count: type == "number" and . >= 0 and floor == .;
def text: type == "string" and length > 0;
def digest: type == "string" and test("^0x[0-9a-f]{16}$");
if length != 1 then "not one object but \(length)" else
    .[0] | . as $o |
    (["scenario", "mode", "execution", "seed", "result", "property", "reached", "states",
      "transitions", "depth_max", "states_per_s", "seconds", "trace", "trace_steps", "digest"] - keys |
     .[] | "no key \(.)"),
    (("scenario", "mode", "execution") | select($o[.] | text | not)),
    (("seed", "states", "transitions", "depth_max") | select($o[.] | count | not)),
    (("states_per_s", "seconds") | select($o[.] | type != "number" or . < 0)),
    ("reached" | select($o[.] | type != "object" or ([.[] | count] | all | not))),
    ("digest" | select($o[.] | digest | not)),
    ("result" | select($o[.] | IN("ok", "violation", "vacuous", "incomplete") | not)),
    ("property" | select(($o[.] | text) != ($o.result == "violation"))),
    ("trace_steps" | select(($o[.] | count) != ($o.result == "violation"))),
    ("trace" | select($o[.] != null and ($o[.] | text | not)))
end
END

json() { # STATUS JQ-CONDITION ARGUMENT...: explores with --json; the condition must hold
    local expected=$1 condition=$2 wrong
    shift 2
    kbtp explore --json "$@"
    exits "$expected"
    quiet "$err"
    check 'one line' [ "$(wc -l <"$out")" -eq 1 ]
    wrong=$(jq -rs -f types.jq "$out" 2>&1 | tr '\n' ' ')
    check "keys and types: $wrong" [ -z "$wrong" ]
    check "$condition" jq -e "$condition" "$out" >/dev/null
}

small_world 3 'deferral, wait' >small.yaml
small_world 2 'ticket-wrap, ring-wrap' >vacuous.yaml
endless_world >endless.yaml
race=$SOURCE/scenarios/races/deferred-free.yaml

# ---- each result -----------------------------------------------------------------------------

json 0 '.result == "ok" and .scenario == "small.yaml" and .mode == "exhaustive" and
    .execution == "software" and .seed == 1 and .states > 1000 and .transitions > .states and
    .trace == null and (.reached | keys == ["deferral", "wait"] and .deferral > 0)' small.yaml
json 0 '.result == "ok" and (.reached | length == 4 and all(. > 0))' "$race" --trace unused
check 'no trace when nothing is wrong' [ ! -e unused ]

json 1 '.result == "violation" and .property == "slot-not-overwritten" and .trace == null and
    .trace_steps > 5' small.yaml --mutant no-deferral
json 1 '.result == "violation" and .property == "slot-not-overwritten" and .trace == "bad.trace"' \
    small.yaml --mutant no-deferral --trace bad.trace
check 'trace_steps steps in the trace' [ "$(jq .trace_steps "$out")" -eq "$(grep -c '^- ' bad.trace)" ]
json 1 '.result == "violation" and .property == "stuck"' small.yaml --mutant no-consume

json 1 '.result == "vacuous" and .reached == {"ticket-wrap": 0, "ring-wrap": .reached["ring-wrap"]} and
    .reached["ring-wrap"] > 0' vacuous.yaml
json 1 '.result == "vacuous" and .trace == null' vacuous.yaml --mode random --trace unused
check 'no trace of what is vacuous' [ ! -e unused ]

# ---- bounds ----------------------------------------------------------------------------------

json 3 '.result == "incomplete" and .bound == "states" and .states >= 100 and .states <= 101' \
    small.yaml --max-states 100
json 3 '.result == "incomplete" and .bound == "memory" and .states > 0' endless.yaml --max-memory 1MiB
json 3 '.bound == "memory" and .states > 10000 and .memory_octets < 1.25 * 16 * 1024 * 1024' \
    endless.yaml --max-memory 16MiB
json 3 '.bound == "memory" and .states > 1000 and .memory_octets < 1.25 * 16 * 1024 * 1024' \
    endless.yaml --max-memory 16MiB --exact
json 3 '.result == "incomplete" and .bound == "seconds" and .states > 100 and .seconds >= 0.3 and
    .seconds < 1.5' endless.yaml --max-seconds 300ms
for mode in random pct; do
    json 3 '.bound == "states" and .states >= 100 and .states <= 101' \
        endless.yaml --mode $mode --max-states 100
    json 3 '.bound == "seconds" and .seconds < 1.5' \
        endless.yaml --mode $mode --runs 1000000000 --max-seconds 300ms
done
json 0 '.bound == null' small.yaml --max-states 1000000 --max-seconds 5min --max-memory 1GiB

# ---- modes, seeds and digests ----------------------------------------------------------------

digest() {
    jq -r .digest "$out"
}

for mode in random pct; do
    walks=(small.yaml --mode $mode --runs 300)
    json 0 ".mode == \"$mode\" and .seed == 7 and .walks == 300 and .depth_max > 10" "${walks[@]}" --seed 7
    # What must hold when everything has come to rest is only tested where a walk ends.
    check 'walks end at rest' jq -e '.quiescent > 0' "$out" >/dev/null
    first=$(digest)
    json 0 '.seed == 7' "${walks[@]}" --seed 7
    check 'the same seed gives the same digest' [ "$(digest)" = "$first" ]
    json 0 '.seed == 8' "${walks[@]}" --seed 0x8
    check 'another seed gives another digest' [ "$(digest)" != "$first" ]
    json 1 '.result == "violation" and .property == "slot-not-overwritten"' \
        small.yaml --mutant no-deferral --mode $mode
done
json 0 '.seed > 18446744073709500000' small.yaml --mode random --runs 1 --seed 18446744073709551615

same='[.states, .transitions, .digest, .depth_max, .reached, .quiescent_digest]'
for scenario in small.yaml "$race"; do
    json 0 '.collision_probability > 0' "$scenario"
    fingerprints=$(jq -c "$same" "$out")
    json 0 true "$scenario"
    check 'the same search gives the same' [ "$(jq -c "$same" "$out")" = "$fingerprints" ]
    json 0 '.collision_probability == 0' "$scenario" --exact
    check 'whole states give the same' [ "$(jq -c "$same" "$out")" = "$fingerprints" ]
done
plain=$(digest)
json 0 '.commuting_pairs > 0' "$race" --check-commute
check 'checking pairs changes nothing' [ "$(digest)" = "$plain" ]
json 0 '.memory == "relaxed"' "$race" --memory relaxed
check 'another machine gives another digest' [ "$(digest)" != "$plain" ]

# ---- names that JSON must escape -------------------------------------------------------------

small_world 1 ring-wrap >'a "b" \ c.yaml'
cp 'a "b" \ c.yaml' $'caf\303\251.yaml'
cp 'a "b" \ c.yaml' $'caf\351.yaml' # not UTF-8
json 1 '.scenario == "a \"b\" \\ c.yaml"' 'a "b" \ c.yaml'
json 1 '.scenario == "caf\u00e9.yaml"' $'caf\303\251.yaml'
json 1 '.scenario | startswith("caf")' $'caf\351.yaml'
json 1 '.trace | startswith("caf")' small.yaml --mutant no-deferral --trace $'caf\351.trace'
kbtp replay --json $'caf\351.trace'
check 'replay names the trace' jq -e '.trace | startswith("caf")' "$out" >/dev/null
finish
