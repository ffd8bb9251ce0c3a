#!/usr/bin/env bash
# `scripts/requirements`: the committed page is up to date; and in a small project of its own, what
# it understands and what it complains of.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # backquotes are those of Markdown
set -eu
"$SOURCE/scripts/requirements" --check --strict

failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# ---- a project of eight requirements ---------------------------------------------------------

level() {
    if [ "$1" = 04 ]; then echo MUST; else echo PROSE; fi
}

x=R-XY # not an id of the draft, and no comment
mkdir -p p/docs p/tests/{ref,cli,mutants} p/scenarios/ring
{
    printf 'id\tsection\tlevel\tbinds\trequirement\ttest idea\n'
    for n in 01 02 03 04 05 06 07 08; do
        printf '%s\t1 One\t%s\ttarget\tRequirement %s.\t-\n' $x-$n "$(level $n)" $n
    done
} >p/docs/requirements.tsv
printf '%s\n' "/* $x-01: all of this file. */" '#include <it.h>' '' \
    "/* $x-02: of a helper. */" 'static int helper(void)' '{' '    return 1;' '}' '' \
    "/* $x-02 to" " * -03. Wrong peer: $x-04. */" 'static void is_a_test(void)' '{' \
    '    helper(); /* "no string" */' '}' '' 'static const struct test tests[] = {' \
    '    {"is a test",' '     is_a_test},' '};' >p/tests/ref/test_it.c
printf '# %s-05\n' $x >p/tests/cli/it.sh
printf '# %s-06\nkind: ring\n' $x >p/scenarios/ring/one.yaml
printf '# Breaks it (%s-04, -07).\n--- a/x\n# %s-08\n' $x $x >p/tests/mutants/found.patch
printf '# Breaks it (%s-08).\n--- a/x\n' $x >p/tests/mutants/equal.patch
printf '# mutant\nfound\ta\tring/one.yaml\t-\t-\nequal\tequivalent\tring/one.yaml\t-\t-\n' \
    >p/tests/mutants/expected.tsv

run() {
    status=0
    "$SOURCE/scripts/requirements" "$@" >out 2>&1 || status=$?
}

complains() { # TEXT: exit status 1, and one line with this text
    [ "$status" -eq 1 ] || fail "status $status, not 1"
    [ "$(wc -l <out)" -eq 1 ] || fail "not one line: $(cat out)"
    grep -qF -- "$1" out || fail "not '$1': $(cat out)"
}

good() {
    [ "$status.$(cat out)" = 0. ] || fail "status $status: $(cat out)"
}

row() { # ID TEXT: the row of this requirement ends with these columns
    grep -qxF "| $x-$1 | $(level "$1") | 1 One | Requirement $1. | $2 |" p/docs/requirements.md ||
        fail "$(grep "^| $x-$1" p/docs/requirements.md || echo "no row $1")"
}

run --check p
complains 'docs/requirements.md is out of date'
run p
good
run --check p
good
row 01 '`ref/test_it.c` | '
row 02 '`ref/test_it.c`: is a test | '
row 03 '`ref/test_it.c`: is a test | '
it='`ref/test_it.c`: is a test'
row 04 "$it<br>\`scenarios/ring/one.yaml\` | \`found\`<br>wrong peer: $it"
row 05 '`cli/it.sh` | '
row 06 '`scenarios/ring/one.yaml` | '
row 07 '`scenarios/ring/one.yaml` | `found`'
row 08 '**open** | '
grep -qxF -- "- $x-08 (PROSE): Requirement 08." p/docs/requirements.md || fail 'not in the list'

# ---- complaints ------------------------------------------------------------------------------

run --check --strict p
complains "$x-08 (PROSE) is open"
printf '%s-08\tbecause\n' $x >p/docs/requirements-reasons.tsv
run p
good
row 08 'reason: because | '
run --check --strict p
good

try() { # TEXT: complains, in a page that is otherwise unchanged; the file is restored
    run --check p
    complains "$1"
}

printf '%s-01\twhy\n' $x >>p/docs/requirements-reasons.tsv
try "a reason is given for $x-01, which has a test"
printf '%s-08\tbecause\n%s-09\twhy\n' $x $x >p/docs/requirements-reasons.tsv
try "docs/requirements-reasons.tsv:2: $x-09 is no requirement"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    printf '%s-08\tbecause\n' $x
done >p/docs/requirements-reasons.tsv
try 'more than 12 reasons'
run p
complains 'more than 12 reasons'
printf '%s-08\tbecause\n' $x >p/docs/requirements-reasons.tsv

printf '# %s-05, -99\n' $x >p/tests/cli/it.sh
try "tests/cli/it.sh: $x-99 is no requirement"
printf '# %s-05 to -09\n' $x >p/tests/cli/it.sh
run --check p
grep -qF "$x-09 is no requirement" out || fail 'a range too far'
printf '# %s-05\n' $x >p/tests/cli/it.sh
printf '/* %s-01 */\n\nint unused;\n' $x >p/tests/ref/helper.c
try 'tests/ref/helper.c: names requirements, but has no tests'
printf 'int one;\n/* %s-01 */\nint two(void);\n' $x >p/tests/ref/helper.c
try 'tests/ref/helper.c:3: no test uses two, which names requirements'
rm p/tests/ref/helper.c
printf '# %s-06 and -07\n' $x >p/scenarios/ring/one.yaml
run --check p
good
run --frobnicate
[ "$status" -eq 2 ] || fail "an unknown option: status $status"
[ "$failures" -eq 0 ]
