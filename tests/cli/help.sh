#!/usr/bin/env bash
# Help is where people look for it, goes to standard output, and tells of what there is.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

shows() { # TEXT ARGUMENT...
    local text=$1
    shift
    kbtp "$@"
    exits 0
    quiet "$err"
    says "$out" "$text"
    check 'lines of at most 100 columns' [ "$(wc -L <"$out")" -le 100 ]
}

same() { # FILE ARGUMENT...: kbtp prints the file
    local file=$1
    shift
    kbtp "$@"
    exits 0
    quiet "$err"
    check "the same as $file" cmp -s "$file" "$out"
}

shows 'usage: kbtp COMMAND' help
says "$out" 'exit status'
cp "$out" all
same all --help
same all -h

for command in explore replay policy devices target load store alloc-store free run-real bench run sweep; do
    check "$command in kbtp help" grep -q "^  $command " all
    shows "usage: kbtp $command" help $command
    says "$out" 'exit status'
    cp "$out" $command
    same $command $command -h
    same $command $command --help
    same $command $command missing -h
    same $command $command --json --help missing

    # What help names is known: at most a value is missing.
    grep -oE -- '--[a-z][a-z-]*' $command | sort -u >options
    while read -r option; do
        kbtp $command "$option"
        check "$option is known" lacks "$err" 'there is no option'
    done <options
done
for option in mode seed max-states max-seconds max-memory execution memory tear dma-order ordering \
    check-commute mutant trace json; do
    says explore "--$option"
done
for option in until msc json; do
    says replay "--$option"
done
for option in blocks json; do
    says policy "--$option"
done

kbtp --version
exits 0
quiet "$err"
version=$(sed -n 's/^project(kbtp VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
check "version $version" [ "$(cat "$out")" = "kbtp $version" ]

for patch in "$SOURCE"/tests/mutants/*.patch; do
    basename "$patch" .patch
done | sort >patches
same patches explore --mutant list
same patches explore --mutant list scenario
same patches explore --mutant=list
while read -r mutant; do
    check "mutant $mutant can be run" [ -x "$KBTP-mutant-$mutant" ]
done <patches
finish
