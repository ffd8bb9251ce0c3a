#!/usr/bin/env bash
# Nothing in ref/ depends on the byte order of the host (R-GEN-04, R-RING-10, R-TBL-03, R-LE-04): the
# tests of codec, ring, table, target and initiator, built for a big-endian machine and run by an
# emulator. CUnit is replaced by hosts/CUnit/Basic.h. Without cross compiler or emulator it is skipped.
set -eu
cross=s390x-linux-gnu-gcc emulator=qemu-s390x
for tool in "$cross" "$emulator"; do
    command -v "$tool" >/dev/null || { echo "no $tool here (scripts/packages, group hosts)"; exit 77; }
done
mkdir -p include objects
# headers alone are the same for every machine
ln -sfn /usr/include/xxhash.h /usr/include/infiniband /usr/include/rdma include/
tests="wire wire_refused table pins ring ring_atomics target infiniband records single_use direct_load
    status session malformed initiator"

# The simulator without scenarios, traces and charts, whose libraries are not there for that machine.
for file in "$SOURCE"/net/*.c "$SOURCE"/net/verbs/*.c "$SOURCE"/ref/*.c "$SOURCE"/sim/*.c \
    "$SOURCE"/sim/timed/*.c; do
    case $file in */scenario*.c | */*_read.c | */trace.c | */*chart*.c | */kind.c | */replay.c | */shrink.c) ;;
    *) echo "$file" ;;
    esac
done >library
for name in wire_vectors fixture pair peer ends; do echo "$SOURCE/tests/ref/$name.c"; done >support
for name in loop loop_send loop_windows provider provider_timed provider_verbs verbs_inside; do
    echo "$SOURCE/tests/net/$name.c"
done >>support
printf '%s\n' "$SOURCE"/tests/net/fake/*.c >>support
for name in $tests; do echo "$SOURCE/tests/ref/test_$name.c"; done >programs

launcher=$(command -v ccache || true)
# shellcheck disable=SC2016 # the inner shell expands
cat library support programs | xargs -P2 -I{} sh -c '
    $4 "$1" -std=gnu11 -O1 -Wall -Werror -D_GNU_SOURCE -I "$2/tests/hosts" -I "$2" -I include -c "$3" \
        -o "objects/$(echo "${3#"$2"/}" | tr / _).o"' sh "$cross" "$SOURCE" {} "$launcher"
rm -f library.a
sed "s|^$SOURCE/||; s|/|_|g; s|^|objects/|; s|\$|.o|" library support | xargs s390x-linux-gnu-ar rc library.a

failures=0
for name in $tests; do
    "$cross" -static -o "$name" "objects/tests_ref_test_$name.c.o" library.a -lm
    "$emulator" "./$name" || { echo "FAILED: $name"; failures=$((failures + 1)); }
done
[ "$failures" -eq 0 ]
