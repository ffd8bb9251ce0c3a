#!/usr/bin/env bash
# What libkbtp asks of the C library is to copy, fill and measure octets, and to end the program when
# an assertion fails. So it allocates nothing, prints nothing, starts no thread, reads no clock.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # flags are lists of words
set -eu
build=$(dirname "$KBTP")

# Instrumented code calls its runtime, which does all of that.
if [[ $CFLAGS =~ -fsanitize|-fprofile|coverage ]]; then
    echo 'skipped: instrumented code calls its runtime'
    exit 77
fi

# The last ones are what compilers and machines add by themselves.
may='memcpy memmove memset memcmp bcmp strlen __assert_fail'
may+=' __memcpy_chk __memmove_chk __memset_chk __stack_chk_fail _GLOBAL_OFFSET_TABLE_'

# Prints the names that are neither defined in these files nor allowed.
asks_for() { # OBJECT-OR-ARCHIVE...
    nm -P "$@" >symbols
    awk -v may="$may" '
        BEGIN { split(may, names); for (i in names) known[names[i]] }
        NF < 2 { next } # the name of a file
        /^__aarch64_/ { next }
        $2 ~ /[Uwv]/ { asked[$1]; next }
        { known[$1] }
        END { for (name in asked) if (!(name in known)) print name }' symbols
}

# The archives hold the very objects of libkbtp, shared or not.
asks_for "$build/libkbtp_ref.a" "$build/libkbtp_net.a" >found
for name in kbtp_worker_poll kbtp_initiator_poll kbtp_wire_encode mem_read_native; do
    grep -q "^$name T" symbols || { echo "symbols: $name is not in the libraries" >&2; exit 1; }
done
if [ -s found ]; then
    echo "symbols: ref/ and net/ must do without: $(xargs <found)" >&2
    exit 1
fi

# An allocation would be seen.
echo '#include <stdlib.h>
void *kbtp_allocate(void) { return malloc(8); }' >allocates.c
"$CC" $CFLAGS -c allocates.c
[ "$(asks_for allocates.o)" = malloc ] || { echo 'symbols: malloc is not seen' >&2; exit 1; }
