#!/usr/bin/env bash
# docs/libkbtp.md lists every counter and gauge of ref/counters.c, in its order, and no other.
set -eu
sed -n 's/.*[.]name = "\(kbtp_[a-z_]*\)".*/\1/p' "$SOURCE/ref/counters.c" >table
sed -n 's/^| `\(kbtp_[a-z_]*\)` .*/\1/p' "$SOURCE/docs/libkbtp.md" | grep -v '^kbtp_initiator_' >page
test -s table
diff table page
