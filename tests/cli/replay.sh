#!/usr/bin/env bash
# A trace is the same every time it is made, and says the same wherever it is run again.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # the inner shell's $
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

# The trace of the last exploration is $trace; $found is what it found.
explored() { # ARGUMENT...
    kbtp explore "$@" --json --trace "$trace"
    exits 1
    quiet "$err"
    found=$(jq -c '[.property, .what, .trace_steps, .trace_digest]' "$out")
    check 'the JSON names the trace' contains "$out" "\"trace\":\"$trace\""
    kbtp explore "$@" --trace again
    exits 1
    says "$out" 'replay it:'
    check 'the same trace the second time' cmp -s "$trace" again
}

replays() { # COMMAND...: prints as JSON what the exploration found
    run "$@"
    exits 1
    quiet "$err"
    equal 'what is found' "$found true" "$(jq -r '"\([.property, .what, .steps, .digest]) \(
        .as_recorded and .recorded_property == .property and .recorded_digest == .digest)"' "$out")"
}

everywhere() {
    replays "$KBTP" replay "$trace" --json
    replays "$KBTP" replay "$trace" --json
    replays "$KBTP" replay --json "${trace##*/}"
    replays sh -c 'cd / && exec "$@"' elsewhere "$KBTP" replay "$trace" --json
    replays env -i "$KBTP" replay "$trace" --json
    # Whichever executable begins, the one that the trace names runs it.
    replays "$KBTP-mutant-no-consume" replay "$trace" --json
    ln -sf "$KBTP" linked
    replays ./linked replay "$trace" --json
    replays sh -c 'cd "$1" && shift && exec "$@"' beside "${KBTP%/*}" ./kbtp replay "$trace" --json
    if setarch -R true 2>/dev/null; then
        replays setarch -R "$KBTP" replay "$trace" --json
    fi
}

# ---- in words, in part ----------------------------------------------------------------------

numbered() { # FILE: its lines that are steps
    grep -E '^ *[0-9]+  ' "$1"
}

in_words() {
    local property what
    property=$(jq -rn --argjson found "$found" '$found[0]')
    what=$(jq -rn --argjson found "$found" '$found[1]')
    steps=$(jq -rn --argjson found "$found" '$found[2]')
    kbtp replay "$trace"
    exits 1
    quiet "$err"
    says "$out" "still fails $property: $what"
    says "$out" ', as recorded'
    cp "$out" whole
    equal 'steps in words' "$steps" "$(numbered whole | wc -l)"
    kbtp replay "$trace"
    check 'the same words the second time' cmp -s whole "$out"
}

in_part() { # N, less than all
    kbtp replay "$trace" --until "$1"
    exits 0
    says "$out" "after $1 of $steps steps"
    says "$out" 'memory then:'
    equal "the first $1 steps" "$(numbered whole | head -n "$1")" "$(numbered "$out")"
    kbtp replay "$trace" --until "$1" --json
    exits 0
    equal "JSON of the first $1 steps" "[$1,null,null,false]" \
        "$(jq -c '[.steps, .property, .what, .as_recorded]' "$out")"
    jq -r .digest "$out" >>digests
}

until_steps() {
    : >digests
    for n in 1 2 $((steps / 2)) $((steps - 1)); do
        in_part "$n"
    done
    equal 'digests of parts differ' "$(wc -l <digests)" "$(sort -u digests | wc -l)"
    replays "$KBTP" replay "$trace" --json --until "$steps"
    replays "$KBTP" replay "$trace" --json --until 0xffffffff
}

# ---- pictures and JSON ----------------------------------------------------------------------

is_svg() { # FILE
    [[ $(head -c 5 "$1") == '<svg ' || $(head -c 5 "$1") == '<?xml' ]] &&
        [[ $(tail -n 1 "$1") == *'</svg>' ]] &&
        [ "$(tr -cd '<' <"$1" | wc -c)" -eq "$(tr -cd '>' <"$1" | wc -c)" ] &&
        [ "$(grep -o '<text' "$1" | wc -l)" -eq "$(grep -o '</text>' "$1" | wc -l)" ] &&
        ! sed -E 's/&(amp|lt|gt|quot|apos|#[0-9]+);//g' "$1" | grep -q '&'
}

drawn() {
    kbtp replay "$trace" --msc chart.svg
    exits 1
    says "$out" chart.svg
    check 'well-formed SVG' is_svg chart.svg
    says chart.svg "$(jq -rn --argjson found "$found" '$found[0]')"
    replays "$KBTP" replay "$trace" --json --msc again.svg
    check 'the same picture the second time' cmp -s chart.svg again.svg
    kbtp replay "$trace" --msc part.svg --until 2
    exits 0
    check 'well-formed SVG of a part' is_svg part.svg
}

keys() {
    kbtp replay "$trace" --json
    equal 'lines of JSON' 1 "$(wc -l <"$out")"
    check 'keys and types' jq -e --arg trace "$trace" '.trace == $trace and
        (.steps | type == "number") and (.as_recorded | type == "boolean") and
        ([.scenario, .mutant, .recorded_property, .property, .what, .digest, .recorded_digest] |
            all(type == "string" and length > 0))' "$out"
}

# ---- counters -------------------------------------------------------------------------------

# R-OPER-03: what the target has counted, in both forms. This one counts every answer as OK.
counters() {
    local text
    kbtp replay "$trace" --counters
    exits 1
    text=$(sed -n 's/^kbtp_requests_total{opcode="LOAD",status="OK"} //p' "$out")
    says "$out" '# TYPE kbtp_requests_total counter'
    says "$out" "still fails counters-agree: LOADs answered OK: the target counts $text, "
    if command -v promtool >/dev/null; then # of Debian's prometheus; the same text is --metrics'
        grep -E '^(# (HELP|TYPE) )?kbtp_' "$out" >metrics
        check 'promtool likes it' promtool check metrics <metrics
    fi
    kbtp replay "$trace" --counters --json
    equal 'the same as JSON' "$text" "$(jq '.counters[] | select(.name == "kbtp_requests_total" and
        .labels == {"opcode": "LOAD", "status": "OK"}) | .value' "$out")"
    kbtp replay "$trace" --counters --until 1 --json
    exits 0
    equal 'nothing was answered at first' 0 "$(jq '[.counters[] | select(.name ==
        "kbtp_requests_total" and .labels.opcode != "HELLO") | .value] | add' "$out")"
}

# ---- the traces -----------------------------------------------------------------------------

# Only with addresses that differ from run to run do equal results mean that none leaks into them.
if [ "$(cat /proc/sys/kernel/randomize_va_space 2>/dev/null)" = 0 ]; then
    echo 'note: addresses are not randomised on this machine'
fi

small_world 2 deferral >small.yaml
small_world 4 deferral >four.yaml

trace=$PWD/no-deferral.trace
explored small.yaml --mutant no-deferral
mv small.yaml away.yaml # the trace has it
everywhere
in_words
until_steps
drawn
keys
mv away.yaml small.yaml

trace=$PWD/offset-first.trace # needs a fourth allocation: a slot's third tenant
explored four.yaml --mutant offset-first
everywhere
in_words
drawn

if [ -z "$slow" ]; then
    trace=$PWD/literal-free-rule.trace
    explored "$SOURCE/scenarios/races/deferred-free.yaml" --mutant literal-free-rule
    everywhere
    in_words
    until_steps
    drawn
fi

trace=$PWD/answers-counted-ok.trace
explored "$SOURCE/scenarios/races/pipelined.yaml" --mutant answers-counted-ok
counters

# What the command line overrides, and how it was searched, is in the trace too.
trace=$PWD/overridden.trace
for options in '--memory relaxed --store-buffer 2 --tear 4 --dma-order descending' \
    '--memory tso --merged-drains' '--no-private-steps' '--exact' '--check-commute' \
    '--mode random --seed 7' '--mode pct --seed 7 --pct-depth 5'; do
    # shellcheck disable=SC2086 # words
    explored small.yaml --mutant no-deferral $options
    replays sh -c 'cd / && exec "$@"' elsewhere "$KBTP" replay "$trace" --json
done
finish
