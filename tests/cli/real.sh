#!/usr/bin/env bash
# The commands over devices of this machine, as far as they go without one: bad command lines,
# secrets (R-SESS-11, R-SESS-12, R-SESS-13), and what is said where there is no device. What they do
# with one is tests/vm/guest/operations.sh.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"
at=127.0.0.1:7471
policy=$SOURCE/docs/policy.yaml

refused() { # TEXT ARGUMENT...: a bad command line or file
    refuses 2 "$@"
}

fails() { # TEXT ARGUMENT...: the machine cannot
    refuses 4 "$@"
}

# ---- bad command lines -----------------------------------------------------------------------

refused "'more'" devices one more
refused 'where to listen' target --trusted-network
refused 'say --trusted-network on both' target --listen $at
for value in 127.0.0.1 :7471 127.0.0.1:x 127.0.0.1:65536 ::1:7471; do
    refused 'not of the form HOST:PORT' target --trusted-network --listen "$value"
    refused 'not of the form HOST:PORT' load "$value" +0 --trusted-network
done
serve() { # TEXT OPTION...
    refused "$1" target --listen $at --trusted-network "${@:2}"
}
serve '--provider' --provider rdmap
for value in 0 x -1 257; do serve '--threads' --threads "$value"; done
serve '--blocks' --blocks 0
serve '--block-size' --block-size 12
serve '--max-inline' --block-size 64 --max-inline 65
serve '--sessions' --sessions 0
serve '--quota: 3 sessions of 3 blocks are more than 8 blocks' --sessions 3 --quota 3 --blocks 8
serve '--handles' --sessions 2 --handles 2000000000
serve '--retention' --retention never
serve '--ticket-timeout' --ticket-timeout 1us
serve '--credits' --credits 0
serve '--policy says' --policy "$policy" --quota 1
serve '--policy says' --policy "$policy" --direct-load
serve 'missing: cannot be read' --policy missing
serve 'initiators[1].quota' --policy "$policy" --blocks 500
serve "'more'" more

for operation in load store alloc-store free; do
    refused 'which target' $operation
    refused 'which handle' $operation $at
    for handle in x '' + -1 0x +x 1x 99999999999999999999; do
        refused 'is not a handle' $operation --trusted-network -- $at "$handle"
    done
    refused '--generation' $operation $at 0 --generation 0
    refused '--generation' $operation $at 0 --generation 65536
    refused '--timeout' $operation $at 0 --timeout 0
    refused 'say --trusted-network on both' $operation $at +0 # R-SESS-13
done
refused '--length' load $at 0 --length 5GiB
refused 'needs an --output' load $at 0 --json --trusted-network
refused 'missing: cannot be read' store $at +0 --trusted-network --input missing
refused '.: cannot be read' alloc-store $at +0 --trusted-network --input .
refused 'no option --seal' load $at 0 --seal
refused '--seal has no direct form' alloc-store $at +0 --direct --seal --trusted-network
refused '--allow-unsealed has no direct form' load $at 0 --direct --allow-unsealed --trusted-network
refused 'no option --direct' store $at +0 --direct
refused '--record has no direct form' load $at 0 --direct --record --trusted-network
refused 'no option --output' store $at 0 --output x

refused 'which target' bench
refused "'more'" bench $at more
refused 'say --trusted-network on both' bench $at # R-SESS-13
measure() { # TEXT OPTION...
    refused "$1" bench $at --trusted-network "${@:2}"
}
for mix in '' load load= load=x load=-1 load=1,load=2 load=1, ,load=1 load=0 free=1 load=1000001 \
    load=0,store=0 load=99999999999999999999 'load=1 ,store=1'; do
    measure '--mix' --mix "$mix"
done
measure '--length' --length 2GiB
measure '--length' --length 0
measure 'how many octets? --length' --inline
for value in 0 x 4097; do measure '--depth' --depth $value; done
for value in 0 x 1025; do measure '--connections' --connections $value; done
measure '--handles' --handles 0
measure '--count' --count 0
measure '--duration' --duration 0
measure 'not both' --duration 1s --count 5
measure '--duration' --duration 100000h
measure '--warm-up' --warm-up -1s
measure '--seed' --seed x
measure 'not of the form HOST:PORT' --target-metrics localhost

# ---- identities ------------------------------------------------------------------------------

# Without --trusted-network nothing is made (R-SESS-13).
refused '--trusted-network' load $at +0 --identity one
check 'no identity was made' [ ! -e one ]
kbtp load $at +0 --identity one --trusted-network --timeout 1s
exits 4
equal 'mode of a new identity' 600 "$(stat -c %a one)"
check '32 hexadecimal digits' grep -qxE '[0-9a-f]{32}' one
equal 'octets of an identity' 33 "$(wc -c <one)"
cp -p one before
kbtp load $at +0 --identity one --trusted-network --timeout 1s
check 'it is kept' cmp one before
# R-SESS-11: all bits are random, so among 24 each is 0 and 1 (but in one of 65,536 runs).
for n in {1..24}; do
    kbtp load $at +0 --identity "id$n" --trusted-network --timeout 1s
done
zeros=0 ones=0
for ((digit = 1; digit <= 32; digit++)); do
    or=0 and=15
    for n in {1..24}; do
        d=$((16#$(cut -c $digit "id$n")))
        or=$((or | d)) and=$((and & d))
    done
    ones=$((ones + (or == 15))) zeros=$((zeros + (and == 0)))
done
equal 'digits in which each bit was 1' 32 $ones
equal 'digits in which each bit was 0' 32 $zeros

is_refused() { # TEXT: and its secret is not shown (R-SESS-12)
    refused "$1" load $at +0 --identity one --trusted-network
    check 'the secret is not shown' lacks "$err" "$(cut -c 1-8 before)"
}
for mode in 640 604 666 610; do
    chmod $mode one
    is_refused "is not its reader's alone (mode 0$mode)"
done
chmod 600 one
for text in '' x "$(cat before)0" "$(cut -c 1-31 before)" "$(sed 's/./g/' before)"; do
    printf '%s' "$text" >one
    is_refused 'is not 32 hexadecimal digits'
done
refused 'is no file that can keep' load $at +0 --identity . --trusted-network
mkfifo pipe
refused 'is no file that can keep' load $at +0 --identity pipe --trusted-network
fails 'cannot be made: No such file' load $at +0 --identity none/one --trusted-network

# ---- no device -------------------------------------------------------------------------------

if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    echo 'an RDMA device is here: what is said without one is not tested'
    kbtp devices
    exits 0
    finish
    exit
fi
none='no RDMA device is here'
fails "$none" devices
fails "$none" devices --json
fails 'rxe0: no such RDMA device' devices rxe0
fails "$none" target --listen $at --trusted-network
fails "$none" target --listen '[::1]:0' --trusted-network --json --threads 2 --metrics 127.0.0.1:0
fails "$none" target --listen $at --trusted-network --policy "$policy" --blocks 1024
for operation in load store alloc-store free; do
    fails "$none" $operation $at 0x10 --trusted-network --device rxe0
done
fails "$none" bench $at --trusted-network --mix load=1,alloc-free=0 --warm-up 0 --poll --verify
fails 'nowhere.invalid:7471: ' target --listen nowhere.invalid:7471 --trusted-network
finish
