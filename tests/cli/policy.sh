#!/usr/bin/env bash
# `kbtp policy`: the example is good and is what it says; each mistake is told with its place and
# key; an Initiator ID is never shown in full (R-SESS-12), the quotas fit (R-QUOTA-02, R-OPER-02),
# and DIRECT_LOAD is for those who may read everything (R-DL-01).
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # sed's $
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"
good=$SOURCE/docs/policy.yaml
mkdir work

no_id() { # neither output holds an ID, or more than its first four octets
    local id
    while read -r id; do
        check "no more than 4 octets of ${id:0:8}" lacks "$out" "${id:0:9}"
        check "no more than 4 octets of ${id:0:8} in a message" lacks "$err" "${id:0:9}"
    done < <(sed -n 's/.* id: //p' "$good")
}

shows() { # CONDITION ARGUMENT...: jq finds it true
    local condition=$1
    shift
    kbtp policy --json "$@"
    exits 0
    quiet "$err"
    no_id
    equal 'lines of JSON' 1 "$(wc -l <"$out")"
    check "$condition" jq -e "$condition" "$out"
}

# ---- what is good ----------------------------------------------------------------------------

kbtp policy "$good" --blocks 1024
exits 0
quiet "$err"
no_id
says "$out" '1f0a5c3e...'
says "$out" '4096-8191'
says "$out" 'engines,gateways'
says "$out" 'DIRECT_LOAD,DIRECT_ALLOC'
equal 'the last line' '12 sessions, quotas of 768 blocks out of 1024, 10753 handles' \
    "$(tail -n 1 "$out")"
kbtp policy "$good"
equal 'the last line' '12 sessions, quotas of 768 blocks, 10753 handles' "$(tail -n 1 "$out")"

shows '.blocks == null and .sessions == 12 and .quotas == 768 and .handles == 10753' "$good"
shows '.blocks == 768 and (.grants | length) == 5' "$good" --blocks 768
shows '[.grants[].first_entry] == [0, 4096, 8192, 10240, 10241]' "$good"
shows '[.grants[].sessions] == [1, 1, 1, 1, 8]' "$good"
shows '[.grants[].quota] == [256, 256, 128, 0, 16]' "$good"
shows '[.grants[].trust_domain] == [1, 1, 1, 2, 3]' "$good"
shows '[.grants[].class] == ["engines", "engines", "engines", "gateways", null]' "$good"
shows '[.grants[].readable_by] == [["engines", "gateways"], ["engines", "gateways"], ["engines"],
    null, null]' "$good"
shows '.grants[0].features == ["DIRECT_LOAD", "DIRECT_ALLOC"] and .grants[2].features == []' "$good"
shows '.grants[0].initiator == "1f0a5c3e..." and .grants[4].initiator == "default"' "$good"

printf 'default: {sessions: 3, quota: 2, handles: 4, readable_by: [owner]}\n' >work/default.yaml
shows '.grants == [{initiator: "default", sessions: 3, quota: 2, handles: 4, first_entry: 0,
    trust_domain: 0, class: null, readable_by: ["owner"], features: []}]' work/default.yaml --blocks 6
{ printf 'initiators:\n' && for ((n = 0; n < 4096; n++)); do
    printf '  - {id: %032x, quota: 0, handles: 1}\n' "$n"
done; } >work/many.yaml
shows '.sessions == 4096' work/many.yaml

# ---- mistakes --------------------------------------------------------------------------------

refused() { # TEXT ARGUMENT...
    refuses 2 "$1" policy "${@:2}"
    no_id
}

spoiled() { # PLACE KEY SED-SCRIPT [ARGUMENT...]: the example, changed, is refused
    sed "$3" "$good" >work/spoiled.yaml
    refused "spoiled.yaml:$1: $2: " work/spoiled.yaml "${@:4}"
}

refused 'which policy' --json
refused "'more'" "$good" more
for value in 0 -1 x '' 268435457; do
    refused --blocks "$good" --blocks "$value"
done
refused 'cannot be read: No such file' missing
refused 'is a directory' work
: >work/empty
refused 'is empty' work/empty
printf '# nothing\n' >work/comment
refused "comment:1:1: policy: is empty, start with 'initiators:'" work/comment
printf '{}\n' >work/none
refused 'none:1:1: policy: grants nothing' work/none
printf 'a list\n' >work/text
refused "text:1:1: policy: is not a mapping, start with 'initiators:'" work/text
head -c 1100000 /dev/zero | tr '\0' a >work/large
refused 'large: is larger than' work/large

# Lines 5 to 11 are the first initiator, 19 to 24 the third, 30 to 34 the default.
spoiled 5:5 'initiators[0].ID' '5s/id:/ID:/'
spoiled 4:1 initiator '4s/s:/:/'
spoiled 5:5 'initiators[0].quota' '6d'
spoiled 5:5 'initiators[0].handles' '7d'
spoiled 5:5 'initiators[0].id' '5s/02$//'
spoiled 5:5 'initiators[0].id' '5s/$/00/'
spoiled 5:5 'initiators[0].id' '5s/02$/0x/'
spoiled 12:5 'initiators[1].id' '12s/: .*/: 1F0A5C3E9B7D42688A41D0E3C5B7F902/' # twice
for value in '' -1 x 268435457 010 '[1]'; do
    spoiled 6:5 'initiators[0].quota' "6s/256/$value/"
done
for value in 0 -1 2147483648; do
    spoiled 7:5 'initiators[0].handles' "7s/4096/$value/"
done
spoiled 14:5 'initiators[1].handles' '14s/4096/2147483647/' # together too many
spoiled 8:29 'initiators[0].features[1]' '8s/DIRECT_ALLOC/ADDR_LE/'
spoiled 8:5 'initiators[0].features' '8s/: .*/: DIRECT_LOAD/'
spoiled 8:5 'initiators[0].features' '6s/256/0/' # DIRECT_ALLOC of nothing
spoiled 9:5 'initiators[0].trust_domain' '9s/1/65536/'
spoiled 10:5 'initiators[0].class' '10s/engines/owner/'
spoiled 10:5 'initiators[0].class' '10s/engines/two words/'
spoiled 10:5 'initiators[0].class' '10s/engines/a-name-far-too-long/'
spoiled 11:28 'initiators[0].readable_by[1]' '11s/gateways/gateway/'
spoiled 11:5 'initiators[0].readable_by' '11s/\[.*\]/[]/'
spoiled 8:5 'initiators[0].features' '24s/engines/gateways/' # may not read the third range
spoiled 8:5 'initiators[0].features' '24s/engines/owner/'
spoiled 31:3 default.sessions '31s/8/0/'
spoiled 31:3 default.sessions '31s/8/65537/'
spoiled 30:1 default.sessions '31d'
spoiled 31:3 default.id '31s/^/  id: 00\n/'
says "$err" "write it in an entry of 'initiators'"
spoiled 5:5 'initiators[0].sessions' '5s/^/    sessions: 3\n/; 5s/- id:/  id:/; 5s/    sessions/  - sessions/'
says "$err" "write it in 'default'"
spoiled 4:1 quota '4s/^/quota: 3\n/'
says "$err" "write it in an entry of 'initiators' or in 'default'"
spoiled 5:5 'initiators[0].default' '5s/- id/- default/'
says "$err" 'write it at the top'
spoiled 32:3 default.quota '1s/^//' --blocks 767 # all sessions of the default count
spoiled 13:5 'initiators[1].quota' '1s/^//' --blocks 511
says "$err" 'the pool has 511, lower them or add blocks'
for blocks in '' '--blocks 268435456'; do
    # shellcheck disable=SC2086 # an option and its value, or none
    spoiled 13:5 'initiators[1].quota' '6s/256/268435456/' $blocks # more than the largest pool
done
says "$err" 'a pool has at most 268435456, lower them'
check 'no advice that cannot be followed' lacks "$err" 'add blocks'
printf 'default: {sessions: 2, quota: 134217728, handles: 1}\n' >work/largest.yaml
shows '.quotas == 268435456' work/largest.yaml
spoiled 35:1 default '$adefault: {}'
spoiled 35:1 policy '$a---\ndefault: {}'

printf 'default: {sessions: 3, quotas: 1\n' >work/unclosed # and a key that is wrong
refused "unclosed:2:1: policy: is not YAML: did not find expected ',' or '}'" work/unclosed
sed '11s/]//' "$good" >work/bracket # readable_by: [engines, gateways
refused 'policy: is not YAML' work/bracket

{ printf 'initiators:\n' && for ((n = 0; n < 31; n++)); do
    printf '  - {id: %032x, quota: 0, handles: 1, class: c%d}\n' "$n" "$n"
done; } >work/classes.yaml
refused 'classes.yaml:32:' work/classes.yaml
says "$err" 'initiators[30].class: is one class too many, have at most 30'
finish
