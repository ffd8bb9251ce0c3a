#!/usr/bin/env bash
# Whatever is wrong with a command line or a file: one clear line on standard error, nothing on
# standard output, status 2 (4 when the machine says no), and no file left behind.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

refused() { # TEXT ARGUMENT...: kbtp must refuse, and say TEXT
    local text=$1
    shift
    kbtp "$@"
    exits 2
    quiet "$out"
    complains "$text"
}

mkdir work directory
cd work
small_world >small.yaml
"$KBTP" explore small.yaml --mutant no-deferral --trace good.trace >/dev/null || [ $? -eq 1 ]
long=$(head -c 100000 /dev/zero | tr '\0' 1)
two_lines=$'one\ntwo'

# ---- command lines ---------------------------------------------------------------------------

refused 'kbtp help'
refused "'frobnicate'" frobnicate
refused "''" ''
refused 'one' "$two_lines"
refused '--frobnicate' --frobnicate
refused "'frobnicate'" help frobnicate
refused 'one command' help explore replay

refused 'scenario' explore
refused 'scenario' explore --json
refused 'trace' replay
refused "'more.yaml'" explore small.yaml more.yaml
refused "'more.trace'" replay good.trace more.trace
refused 'one' explore small.yaml "$two_lines"
refused '--frobnicate' explore small.yaml --frobnicate
refused '--frobnicate' replay --frobnicate good.trace
refused 'one' explore small.yaml "--$two_lines"
refused '-x' explore -x small.yaml
refused '-x' explore -xh small.yaml
refused '--json' explore small.yaml --json=yes
refused '--max' explore small.yaml --max 1000 # which of three?

for option in mode seed runs pct-depth max-states max-seconds max-memory memory store-buffer tear \
    dma-order execution mutant trace; do
    refused "--$option" explore small.yaml "--$option"
done
for option in until msc; do
    refused "--$option" replay good.trace "--$option"
done

for value in '' x -1 +1 ' 1' '1 ' 1x 1.5 1e3 0x 0xg 18446744073709551616 "$two_lines" "$long"; do
    refused '--seed' explore small.yaml --mode random --seed "$value"
    refused '--max-states' explore small.yaml --max-states "$value"
    refused '--until' replay good.trace --until "$value"
done
refused '--runs' explore small.yaml --mode random --runs 0
refused '--max-states' explore small.yaml --max-states 0
refused '--until' replay good.trace --until 0
for value in 0 33; do
    refused '--pct-depth' explore small.yaml --mode pct --pct-depth "$value"
done
for value in 0 17; do
    refused '--store-buffer' explore small.yaml --store-buffer "$value"
done
for value in '' 0 -1 ' 1' 1.5MiB 1K 1MB 1mib MiB 16777216TiB 18446744073709551616 "$two_lines" "$long"; do
    refused '--max-memory' explore small.yaml --max-memory "$value"
done
for value in '' 0 0s -1 -1s ' 1' nan inf 1e400 s 1x '1 s' 1S "$two_lines" "$long"; do
    refused '--max-seconds' explore small.yaml --max-seconds "$value"
done
for value in '' x -1 "$two_lines" "$long"; do
    for option in mode memory tear dma-order execution mutant; do
        refused "$option" explore small.yaml "--$option" "$value"
    done
done
refused '--memory' explore small.yaml --memory TSO
refused '--mode' explore small.yaml --mode exhaustiv
refused '--tear' explore small.yaml --tear 16
refused 'frobnicate' explore small.yaml --mutant frobnicate
refused '../kbtp' explore small.yaml --mutant ../kbtp

refused '--runs' explore small.yaml --runs 5
refused '--runs' explore small.yaml --mode exhaustive --runs 5
refused '--pct-depth' explore small.yaml --mode random --pct-depth 2
refused '--check-commute' explore small.yaml --mode random --check-commute

# ---- files that are nothing of the kind ------------------------------------------------------

mkfifo pipe
: >empty
ln -s nowhere dangling
ln -s loop loop
truncate -s 20M zeros
head -c 20M /dev/zero | tr '\0' a >letters
head -c 1000000 zeros >few-zeros
head -c 1000000 letters >few-letters
head -c 50000 "$KBTP" >binary
head -c 100000 letters | tr a '[' >brackets
printf 'caf\351: 1\n' >latin-1

for command in explore replay; do
    refused 'missing: cannot be read: No such file or directory' $command missing
    refused 'cannot be read: No such file or directory' $command "$two_lines"
    refused 'cannot be read: No such file or directory' $command ''
    refused 'dangling: cannot be read: No such file or directory' $command dangling
    refused 'loop: cannot be read: Too many levels' $command loop
    refused 'cannot be read: Not a directory' $command empty/x
    refused 'cannot be read: File name too long' $command "${long:0:300}"
    refused 'directory' $command ../directory
    refused '/dev/zero: is a device' $command /dev/zero
    refused 'pipe: is a pipe' $command pipe
    refused 'empty: is empty' $command empty
    for file in zeros letters; do
        refused "$file: is larger than" $command "$file"
    done
    for file in few-zeros few-letters binary brackets latin-1; do
        refused "$file:1:" $command "$file"
    done
done
refused 'missing' explore --json missing
refused 'missing' replay --json missing
refused 'replay' explore good.trace
refused 'no trace' replay small.yaml

# ---- scenarios with a mistake ----------------------------------------------------------------

spoiled() { # PLACE-AND-KEY SED-SCRIPT: small.yaml, changed, is refused naming place and key
    sed "$2" small.yaml >spoiled.yaml
    refused "spoiled.yaml:$1: " explore spoiled.yaml
}

spoiled 2:1:\ slotz 's/slots/slotz/'
spoiled 11:1:\ frobnicate '$afrobnicate: 1'
spoiled 7:16:\ 'allocators[1].allocation' '7s/allocations/allocation/'
spoiled 3:1:\ blocks '$ablocks: 4' # the second of two: its place is checked below
spoiled 1:1:\ slots '/slots/d'
spoiled 1:1:\ kind '/kind/d'
spoiled 8:1:\ freers '/f1/d'
for value in '' '[4]' '{a: 1}' four -1 4x 010 0x 4.0 65 99999999999999999999 '"4 "'; do
    spoiled 3:1:\ blocks "s/blocks: 4/blocks: $value/"
done
spoiled 3:1:\ blocks 's/slots: 4/slots: 2/'
for value in 0 1 3 6 65535 131072; do
    spoiled 2:1:\ slots "s/slots: 4/slots: $value/"
done
spoiled 1:1:\ kind 's/ring/mesh/'
spoiled 4:1:\ memory 's/sc/fast/'
spoiled 1:1:\ title '1ititle: [a]'
spoiled 5:1:\ allocators '6,7d; s/allocators:/allocators: 3/'
spoiled 6:5:\ 'allocators[0]' '6s/{.*}/a1/'
spoiled 6:16:\ 'allocators[0].allocations' '6s/3/0/'
spoiled 7:6:\ 'allocators[1].name' '7s/a2/a1/'
spoiled 9:6:\ 'freers[0].name' '9s/f1/a name that is far too long/'
spoiled 10:14:\ 'must_reach[0]' '10s/deferral/defferal/'
spoiled 10:1:\ must_reach '10s/\[.*\]/deferral/'
spoiled 12:1:\ scenario '$a---\nkind: ring'
spoiled 10:13:\ must_reach '10s/\[/\&a [*a, /' # an alias
spoiled 2:1:\ scenario '2s/^/\t/'

# ---- traces that are damaged -----------------------------------------------------------------

size=$(wc -c <good.trace)
for ((n = 0; n < size; n += n < size - 24 ? 59 : 1)); do
    head -c "$n" good.trace >cut.trace
    refused 'cut.trace' replay cut.trace
done
for ((at = 0; at < size; at += at < size - 97 ? 97 : 7)) do
    [ "$(tail -c "+$((at + 1))" good.trace | head -c 1)" = '~' ] && other='!' || other='~'
    { head -c "$at" good.trace && printf %s "$other" && tail -c "+$((at + 2))" good.trace; } >changed.trace
    refused 'changed.trace' replay changed.trace
done
{ cat good.trace && echo; } >longer.trace
refused 'longer.trace' replay longer.trace
sed 's/$/\r/' good.trace >crlf.trace
refused 'crlf.trace' replay crlf.trace

# ---- what cannot be written ------------------------------------------------------------------

unwritable() { # TEXT COMMAND...: status 4, and says so
    local text=$1
    shift
    run "$@"
    exits 4
    complains "$text"
}

explore_bad=("$KBTP" explore small.yaml --mutant no-deferral)
for command in '--trace' '--json --trace'; do
    # shellcheck disable=SC2086 # words
    unwritable 'nowhere/x: cannot be written: No such file' "${explore_bad[@]}" $command nowhere/x
done
unwritable 'directory: cannot be written: Is a directory' "${explore_bad[@]}" --trace ../directory
unwritable 'empty/x: cannot be written: Not a directory' "${explore_bad[@]}" --trace empty/x
unwritable 'cannot be written: File name too long' "${explore_bad[@]}" --trace "${long:0:300}"
unwritable 'nowhere/x: cannot be written: No such file' "$KBTP" replay good.trace --msc nowhere/x
unwritable 'directory: cannot be written: Is a directory' "$KBTP" replay good.trace --msc ../directory

# A file that may not grow: what was begun is taken away again.
small_file() { # COMMAND...
    unwritable 'large: cannot be written' bash -c 'trap "" XFSZ; set -o pipefail; ulimit -f 1; "$@" | cat >/dev/null' \
        small-file "$@"
}
small_file "${explore_bad[@]}" --trace large
small_file "$KBTP" replay good.trace --msc large

# A pipe is written to, or refused, but never replaced by a file.
timeout 20 cat pipe >/dev/null &
run timeout 20 "${explore_bad[@]}" --trace pipe
kill $! 2>/dev/null || true
check 'the pipe is still one' [ -p pipe ]

full() { # ARGUMENT...
    unwritable 'No space left on device' sh -c '"$@" >/dev/full' full "$KBTP" "$@"
    unwritable 'Bad file descriptor' sh -c '"$@" >&-' closed "$KBTP" "$@"
}
full help
full --version
full explore --mutant list
full explore small.yaml
full explore small.yaml --json
full explore small.yaml --mutant no-deferral
full replay good.trace
full replay good.trace --json

check 'no file is left behind' [ "$(find . ../directory ! -type d | sort | tr '\n' ' ')" = \
    './binary ./brackets ./changed.trace ./crlf.trace ./cut.trace ./dangling ./empty ./few-letters '\
'./few-zeros ./good.trace ./latin-1 ./letters ./longer.trace ./loop ./pipe ./small.yaml '\
'./spoiled.yaml ./zeros ' ]
rm zeros letters
finish
