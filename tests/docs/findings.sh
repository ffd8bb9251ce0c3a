#!/usr/bin/env bash
# Runs the commands of docs/findings.md that find out what they say within LIMIT states, and compares
# property, states and steps of the shrunk trace with the line below each.
# Usage: KBTP=... SOURCE=... findings.sh [LIMIT]       default 60000
set -euo pipefail
limit=${1:-60000} least=20 wrong=0 ran=0
if [ -n "${SLOW-}" ]; then
    limit=1000 least=3
fi
trace=$PWD/trace list=$PWD/list
cd "$SOURCE"

# "command<TAB>ok or property<TAB>states<TAB>steps or nothing", one for each with figures
awk '
    command != "" && match($0, /^        [a-z-]+, [0-9,]+ states/) {
        states = steps = ""
        line = substr($0, 9)
        property = substr(line, 1, index(line, ",") - 1)
        match(line, /[0-9,]+ states/)
        states = substr(line, RSTART, RLENGTH - 7)
        if (match(line, /[0-9,]+ steps/))
            steps = substr(line, RSTART, RLENGTH - 6)
        gsub(/,/, "", states)
        print command "\t" property "\t" states "\t" steps
    }
    { command = "" }
    /^    kbtp explore / { command = substr($0, 18) }
' docs/findings.md >"$list"

while IFS=$'\t' read -r command property states steps; do
    [ "$states" -le "$limit" ] || continue
    ran=$((ran + 1))
    # shellcheck disable=SC2086 # words are arguments
    found=$("$KBTP" explore $command --json --trace "$trace" 2>/dev/null |
        jq -r '[.property // .result, .states, .trace_steps // ""] | join(" ")') || true
    if [ "$found" != "$property $states $steps" ]; then
        echo "docs/findings.md: kbtp explore $command: says '$property $states $steps', finds '$found'"
        wrong=1
    fi
done <"$list"
echo "$ran commands compared"
[ "$wrong" -eq 0 ] && [ "$ran" -ge "$least" ]
