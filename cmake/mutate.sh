#!/bin/sh
# Usage: mutate.sh PATCH-PROGRAM SOURCE DIRECTORY PATCH-FILE FILE...
# Copies each FILE from SOURCE to DIRECTORY and applies PATCH-FILE to the copies. On failure no copy
# is left, so that the next build tries again.
set -eu
patch_program=$1 source=$2 directory=$3 patch_file=$4
shift 4

work=$directory/work
rm -rf "$work"
for file in "$@"; do
    mkdir -p "$directory/$(dirname "$file")" "$work/$(dirname "$file")"
    rm -f "$directory/$file"
    cp "$source/$file" "$work/$file"
done
if ! "$patch_program" -p1 --fuzz=0 --forward --batch --no-backup-if-mismatch \
    --directory="$work" --input="$patch_file" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "$patch_file does not apply to ref/ as it is now: mend the patch" >&2
    exit 1
fi
for file in "$@"; do
    mv "$work/$file" "$directory/$file"
done
rm -rf "$work"
