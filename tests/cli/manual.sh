#!/usr/bin/env bash
# The examples of the manual pages print what stands there. Digests stand there as 0x..., as they
# change whenever the simulator does.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"
PATH=${KBTP%/*}:$PATH
ln -s "$SOURCE/scenarios" scenarios

# Each literal block of a section becomes a file block-N, from 1.
take_blocks() { # PAGE SECTION
    rm -f block-*
    awk -v section="# $2" '
        /^# / { inside = $0 == section }
        /^```$/ { block = !block; n += inside && block; next }
        inside && block { gsub(/\\\\/, "\\"); print > ("block-" n) }' "$SOURCE/docs/$1.scd"
}

is_whole() { # COMMAND
    [[ $1 != *\\ ]] && bash -n <<<"$1" 2>/dev/null
}

# Splits the block into `commands` and the file `printed`.
read_block() { # BLOCK
    local line command=
    commands=()
    : >printed
    while IFS= read -r line; do
        if [ -n "$command" ]; then
            command+=$'\n'$line
        elif [[ $line == '$ '* ]]; then
            command=${line#'$ '}
        else
            printf '%s\n' "$line" >>printed
            continue
        fi
        if is_whole "$command"; then
            commands+=("$command")
            command=
        fi
    done <"$1"
}

same() { # FILE FILE: else the difference is told
    diff -u "$1" "$2" >&2
}

without_digests() { # FILE
    sed 's/0x[0-9a-f]\{16\}/0x.../g' "$1"
}

# Runs the blocks that show something, and counts them in `shown_blocks`.
examples_of() { # PAGE
    local n command
    take_blocks "$1" EXAMPLES
    shown_blocks=0
    for ((n = 1; ; n++)); do
        [ -e "block-$n" ] || break
        read_block "block-$n"
        [ -s printed ] || continue
        shown_blocks=$((shown_blocks + 1))
        : >all
        for command in "${commands[@]}"; do
            run bash -c "$command"
            quiet "$err"
            cat "$out" >>all
        done
        check "example $n of $1" same printed <(without_digests all)
    done
}

examples_of kbtp-replay.1
equal 'examples of kbtp-replay.1 that show something' 2 "$shown_blocks"
take_blocks kbtp-replay.1 FILES
check 'the steps in kbtp-replay.1' \
    same block-1 <(sed -n '/^steps:/,$p' overwritten.trace | without_digests /dev/stdin)

# What is proved is explained: every property that has a checker, in worlds of both kinds.
for scenario in races/end-to-end ring/table-2+1-k2 ring/2+1-k2; do
    run "$KBTP" explore "scenarios/$scenario.yaml" --json --max-states 100
    exits 3
    jq -r '.checked[]' "$out" >checked
    check "properties of $scenario" [ -s checked ]
    while read -r property; do
        check "$property of $scenario in kbtp-explore.1" grep -qxF "*$property*" \
            "$SOURCE/docs/kbtp-explore.1.scd"
    done <checked
done

# So is every word of a step: `fault dies`, `agent expire`.
sed -n 's/^    \[SIM_STEP_.*{"\([a-z-]*\)",.*/\1/p' "$SOURCE/sim/trace.c" >words
check 'words of steps in sim/trace.c' [ "$(wc -l <words)" -gt 20 ]
while read -r word; do
    check "step '$word' in kbtp-replay.1" grep -q "^[_*][a-z]*[_ ].*\b$word\*" \
        "$SOURCE/docs/kbtp-replay.1.scd"
done <words

examples_of kbtp-explore.1
equal 'examples of kbtp-explore.1 that show something' 2 "$shown_blocks"

echo '01 20 0000 0000000000000007 0000000000004001 0005 0000
00000008 00000000 0000000000150000' >completion.hex
echo '01 12 0001 0000000000000007 0000000000004001 0000 0000
00000000 0000000000000000 00000008 4b56424c4f434b2121' >request.hex
sed -n '/^initiators:/,/^default:/p' "$SOURCE/docs/kbtp-policy.5.scd" >policy.yaml
examples_of kbtp-policy.5
equal 'examples of kbtp-policy.5 that show something' 1 "$shown_blocks"

examples_of kbtp-run-real.1
equal 'examples of kbtp-run-real.1 that show something' 1 "$shown_blocks"

take_blocks kbtp-sweep.1 FILE
mv block-1 depth.yaml
examples_of kbtp-sweep.1
equal 'examples of kbtp-sweep.1 that show something' 1 "$shown_blocks"

examples_of kbtp-decode.1
equal 'examples of kbtp-decode.1 that show something' 3 "$shown_blocks"
finish
