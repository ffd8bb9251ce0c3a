#!/usr/bin/env bash
# Whatever is wrong with a command line or a file: one clear line on standard error, nothing on
# standard output, status 2 (4 when the machine says no), and no file left behind.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # sed's $ and the inner shell's
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

refused() { # TEXT ARGUMENT...: kbtp must refuse, and say TEXT
    refuses 2 "$@"
}

# In "work" only kbtp could write.
mkdir in work directory
small_world 2 deferral >in/small.yaml
"$KBTP" explore in/small.yaml --mutant no-deferral --trace in/good.trace >/dev/null || [ $? -eq 1 ]
printf -v long %100000s ''
long=${long// /1}
two_lines=$'one\ntwo'
cd work

# ---- command lines ---------------------------------------------------------------------------

refused 'kbtp help'
refused "'frobnicate'" frobnicate
refused "''" ''
refused one "$two_lines"
refused 111 "$long"
refused --frobnicate --frobnicate
refused "'frobnicate'" help frobnicate
refused 'one command' help explore replay

refused scenario explore
refused scenario explore --json
refused trace replay
refused "'more.yaml'" explore ../in/small.yaml more.yaml
refused "'more.trace'" replay ../in/good.trace more.trace
refused one explore ../in/small.yaml "$two_lines"
refused 111 explore ../in/small.yaml "$long"
refused --frobnicate explore ../in/small.yaml --frobnicate
refused --frobnicate replay --frobnicate ../in/good.trace
refused one explore ../in/small.yaml "--$two_lines"
refused 111 explore ../in/small.yaml "--$long"
refused -x explore -x ../in/small.yaml
refused --counters replay ../in/good.trace --counters # no target in it
refused -x explore -xh ../in/small.yaml
refused --json explore ../in/small.yaml --json=yes
refused --max explore ../in/small.yaml --max 1000 # which of three?

for option in mode seed runs pct-depth max-states max-seconds max-memory memory store-buffer tear \
    dma-order ordering execution mutant trace; do
    refused "--$option" explore ../in/small.yaml "--$option"
done
for option in until msc; do
    refused "--$option" replay ../in/good.trace "--$option"
done

# Of every option: its values that are wrong.
while read -r command option values; do
    for value in $values "" ' 1' "$two_lines" "$long"; do
        if [ "$command" = replay ]; then
            refused "$option" replay ../in/good.trace "--$option" "$value"
        else
            refused "$option" explore ../in/small.yaml --mode "$command" "--$option" "$value"
        fi
    done
done <<'END'
random seed x -1 +1 1x 1.5 1e3 0x 0xg 18446744073709551616
exhaustive max-states x -1 0 1k 18446744073709551616
random runs 0 -1
pct pct-depth 0 33
exhaustive store-buffer 0 17
exhaustive max-memory 0 -1 1 1MiB 1.5MiB 1K 1MB 1mib MiB 16777216TiB 18446744073709551616
exhaustive max-seconds 0 0s -1 -1s nan inf 1e400 s 1x 1S
exhaustive mode exhaustiv
exhaustive memory TSO x86
exhaustive tear 16 4x
exhaustive dma-order up
exhaustive ordering any RDMAP
exhaustive execution chain
exhaustive mutant frobnicate ../kbtp
replay until 0 -1 x 4294967296
END

refused --runs explore ../in/small.yaml --runs 5
refused --runs explore ../in/small.yaml --mode exhaustive --runs 5
refused --pct-depth explore ../in/small.yaml --mode random --pct-depth 2
refused --check-commute explore ../in/small.yaml --mode random --check-commute
refused '--ordering: ../in/small.yaml is of kind ring' explore ../in/small.yaml --ordering strong

# ---- files that are nothing of the kind ------------------------------------------------------

mkfifo ../in/pipe
: >../in/empty
ln -s nowhere ../in/dangling
ln -s loop ../in/loop
truncate -s 20M ../in/zeros
head -c 20M /dev/zero | tr '\0' a >../in/letters
head -c 1000000 ../in/zeros >../in/few-zeros
head -c 1000000 ../in/letters >../in/few-letters
# As a program begins; not this one, whose octets differ from build to build.
{ printf '\177ELF\2\1\1\0'; head -c 50000 ../in/zeros | tr '\0' '\220'; } >../in/binary
head -c 100000 ../in/letters | tr a '[' >../in/brackets
printf 'caf\351: 1\n' >../in/latin-1

for command in explore replay; do
    refused 'missing: cannot be read: No such file or directory' $command missing
    refused 'missing: cannot be read: No such file or directory' $command missing --json
    refused 'cannot be read: No such file or directory' $command "$two_lines"
    refused 'cannot be read: No such file or directory' $command ''
    refused 'dangling: cannot be read: No such file or directory' $command ../in/dangling
    refused 'loop: cannot be read: Too many levels' $command ../in/loop
    refused 'cannot be read: Not a directory' $command ../in/empty/x
    refused 'cannot be read: File name too long' $command "${long:0:300}"
    refused 'directory: is a directory' $command ../directory
    refused '/dev/zero: is a device' $command /dev/zero
    refused 'pipe: is a pipe' $command ../in/pipe
    refused 'empty: is empty' $command ../in/empty
    for file in zeros letters; do
        refused "$file: is larger than" $command ../in/$file
    done
    for file in few-zeros few-letters binary brackets latin-1; do
        refused "$file:1:" $command ../in/$file
    done
done
refused replay explore ../in/good.trace # says what to do with it
refused 'no trace' replay ../in/small.yaml
rm ../in/zeros ../in/letters

# ---- scenarios with a mistake ----------------------------------------------------------------

original=../in/small.yaml
spoiled() { # PLACE KEY SED-SCRIPT: the scenario, changed, is refused naming place and key
    sed "$3" "$original" >../in/spoiled.yaml
    refused "spoiled.yaml:$1: $2: " explore ../in/spoiled.yaml
}

spoiled 2:1 slotz 's/slots/slotz/'
spoiled 11:1 frobnicate '$afrobnicate: 1'
spoiled 7:16 'allocators[1].allocation' '7s/allocations/allocation/'
spoiled 11:1 blocks '$ablocks: 4' # twice
spoiled 1:1 slots '/slots/d'
spoiled 1:1 kind '/kind/d'
spoiled 8:1 freers '/f1/d'
for value in '' '[4]' '{a: 1}' four -1 4x 010 0x 4.0 65 99999999999999999999 '"4 "'; do
    spoiled 3:1 blocks "s/blocks: 4/blocks: $value/"
done
spoiled 3:1 blocks 's/slots: 4/slots: 2/' # F > N
for value in 0 1 3 6 65535 131072; do
    spoiled 2:1 slots "s/slots: 4/slots: $value/"
done
spoiled 1:1 kind 's/ring/mesh/'
spoiled 4:1 memory 's/sc/fast/'
spoiled 1:1 title '1ititle: [a]'
spoiled 5:1 allocators '6,7d; s/allocators:/allocators: 3/'
spoiled 6:5 'allocators[0]' '6s/{.*}/a1/'
spoiled 6:16 'allocators[0].allocations' '6s/2/0/'
spoiled 7:6 'allocators[1].name' '7s/a2/a1/'
spoiled 9:6 'freers[0].name' '9s/f1/a name that is far too long/'
spoiled 10:14 'must_reach[0]' '10s/deferral/defferal/'
spoiled 10:1 must_reach '10s/\[.*\]/deferral/'
spoiled 10:17 'must_reach[0]' '10s/\[/\&a [*a, /' # an alias
spoiled 11:1 scenario '$a---\nkind: ring'
spoiled 2:1 scenario '2s/^/\t/'

spoiled 5:1 allocators '1s/ring/protocol/' # is of the other kind

cat >../in/protocol.yaml <<'END'
kind: protocol
slots: 4
blocks: 4
handles: 2
workers: [{name: W0}]
initiators:
  - {name: Y, workers: [W0], quota: 2, program: [{op: free, handle: 0, after: X.2}]}
  - name: X
    workers: [W0]
    quota: 2
    program:
      - {op: alloc_store, handle: 0}
      - {op: load, handle: Y.1, expect: [OK, LOST]}
must_reach: [in-doubt]
END
original=../in/protocol.yaml
spoiled 1:1 kind '1s/protocol/protokoll/'
spoiled 5:1 workers '1s/protocol/ring/'
spoiled 1:1 handles '/^handles/d'
spoiled 4:1 handles '4s/2/65/'
spoiled 5:12 'workers[0].name' '5s/W0/target-rnic/'
spoiled 9:15 'initiators[1].workers[0]' '9s/W0/W1/'
spoiled 10:5 'initiators[1].quota' '10s/2/3/'
spoiled 12:10 'initiators[1].program[0].op' '12s/alloc_store/allocate/'
spoiled 12:9 'initiators[1].program[0].handle' '12s/, handle: 0//'
spoiled 13:20 'initiators[1].program[1].handle' '13s/Y.1/Y.2/'
spoiled 13:42 'initiators[1].program[1].expect[0]' '13s/OK/Ok/'
spoiled 13:33 'initiators[1].program[1].seal' '13s/expect.*]/seal: true/'
spoiled 7:72 'initiators[0].program[0].after' '13s/load/load, after: Y.1/' # a circle
spoiled 14:14 'must_reach[0]' '14s/in-doubt/crash/'
spoiled 15:1 quota '$aquota: 4'

# ---- traces that are damaged -----------------------------------------------------------------

trace=../in/good.trace
size=$(wc -c <$trace)
stride=${slow:+2}61
for ((n = 0; n < size; n += n < size - 24 ? stride : 3)); do
    head -c "$n" $trace >../in/cut.trace
    refused cut.trace replay ../in/cut.trace
done
for ((at = 0; at < size; at += at < size - 97 ? 97 * stride / 61 : 7)); do
    other='~'
    [ "$(tail -c "+$((at + 1))" $trace | head -c 1)" != '~' ] || other='!'
    { head -c "$at" $trace && printf %s "$other" && tail -c "+$((at + 2))" $trace; } \
        >../in/changed.trace
    refused changed.trace replay ../in/changed.trace
done
{ cat $trace && echo; } >../in/longer.trace
refused longer.trace replay ../in/longer.trace
sed 's/$/\r/' $trace >../in/crlf.trace
refused crlf.trace replay ../in/crlf.trace

# ---- what cannot be written ------------------------------------------------------------------

unwritable() { # TEXT COMMAND...: status 4, and says TEXT
    local text=$1
    shift
    run "$@"
    exits 4
    complains "$text"
}

find_bad=("$KBTP" explore ../in/small.yaml --mutant no-deferral)
play_bad=("$KBTP" replay "$trace")
unwritable 'nowhere/x: cannot be written: No such file' "${find_bad[@]}" --trace nowhere/x
unwritable 'nowhere/x: cannot be written: No such file' "${find_bad[@]}" --json --trace nowhere/x
unwritable 'directory: cannot be written: Is a directory' "${find_bad[@]}" --trace ../directory
unwritable 'empty/x: cannot be written: Not a directory' "${find_bad[@]}" --trace ../in/empty/x
unwritable 'cannot be written: File name too long' "${find_bad[@]}" --trace "${long:0:300}"
unwritable 'nowhere/x: cannot be written: No such file' "${play_bad[@]}" --msc nowhere/x
unwritable 'directory: cannot be written: Is a directory' "${play_bad[@]}" --msc ../directory

# The disk is full: what was begun is taken away again.
on_full_disk='trap "" XFSZ; set -o pipefail; { ulimit -f 0; "$@" 2>&1 >/dev/null; } | cat >&2'
for command in "${find_bad[*]} --trace large" "${play_bad[*]} --msc large"; do
    # shellcheck disable=SC2086 # words
    unwritable 'large: cannot be written' bash -c "$on_full_disk" bash $command
done

# A pipe is written to, or refused, but never replaced by a file.
timeout 20 cat ../in/pipe >/dev/null &
run "${find_bad[@]}" --trace ../in/pipe
kill $! 2>/dev/null || true
check 'the pipe is still one' [ -p ../in/pipe ]

for arguments in help --version 'explore --mutant list' 'explore ../in/small.yaml' \
    'explore ../in/small.yaml --json' 'explore ../in/small.yaml --mutant no-deferral' \
    "replay $trace" "replay $trace --json"; do
    # shellcheck disable=SC2086 # words
    unwritable 'No space left on device' sh -c 'exec "$@" >/dev/full' sh "$KBTP" $arguments
    # shellcheck disable=SC2086 # words
    unwritable 'Bad file descriptor' sh -c 'exec "$@" >&-' sh "$KBTP" $arguments
done

equal 'files left behind' '' "$(find . ../directory ! -type d)"
equal 'files beside them' '../err ../out' \
    "$(find .. -maxdepth 1 ! -type d | sort | paste -s -d ' ')"
finish
