#!/usr/bin/env bash
# `kbtp decode`: octets from operands, files and standard input, in words and as JSON; what is
# malformed (status 1), and what is no hex (status 2).
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

store='01 12 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 00 00 00
00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 4b 56 42 4c 4f 43 4b 21'
completion='01 20 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 40 01 00 05 00 00
00 00 00 08 00 00 00 00 00 00 00 00 00 15 00 00'

row() { # RANGE RAW FIELD [VALUE ...]: a line of the output, whatever the space between them
    local expected="$*"
    check "line '$expected'" row_is "$expected"
}

row_is() {
    local line words
    while read -r -a words; do
        line=${words[*]-}
        [ "$line" != "$1" ] || return 0
    done <"$out"
    return 1
}

refused() { # TEXT ARGUMENT...
    refuses 2 "$1" decode "${@:2}"
}

# Standard input from a file.
from() { # FILE ARGUMENT...
    local file=$1
    shift
    printf -v shown '%.100s ' decode "$@" "< $file"
    status=0
    timeout -k 2 60 "$KBTP" decode "$@" <"$file" >"$out" 2>"$err" || status=$?
}

# ---- the draft's examples (R-EX-01, R-EX-02) -------------------------------------------------

# shellcheck disable=SC2086 # words
kbtp decode $store
exits 0
quiet "$err"
row header
row 0 01 Version 1
row 1 12 Opcode 0x12 ALLOC_STORE
row 2-3 00 01 Flags 0x0001 INLINE
row 4-11 00 00 00 00 00 00 00 07 Request ID 0x7
row 12-19 00 00 00 00 00 00 40 01 Block Handle 0x4001
row 20-21 00 00 Generation 0 any
row 22-23 00 00 Status 0 OK
row Data Descriptor
row 24-27 00 00 00 00 STag 0x0
row 28-35 00 00 00 00 00 00 00 00 Tagged Offset 0x0
row 36-39 00 00 00 08 Length 8
row 40-47 4b 56 42 4c 4f 43 4b 21 Inline Data 'KVBLOCK!'
row well-formed message of 48 octets
check 'lines of at most 100 columns' [ "$(wc -L <"$out")" -le 100 ]
cp "$out" store.text

kbtp decode "$completion"
exits 0
row 1 20 Opcode 0x20 COMPLETION
row 20-21 00 05 Generation 5
row 24-27 00 00 00 08 Data Length 8
row 28-31 00 00 00 00 Reserved 0
row 32-39 00 00 00 00 00 15 00 00 Block Offset 0x150000
row well-formed message of 40 octets

# ---- ways to write octets --------------------------------------------------------------------

printf '%s\n' "$store" >spaces.hex
tr -d ' \n' <spaces.hex >plain.hex
tr ' \n' '::' <spaces.hex >colons.hex
tr ' abcdef\n' ',ABCDEF\n' <spaces.hex | sed 's/,/, /g' >commas.hex
sed 's/[0-9a-f][0-9a-f]/0x&,/g; s/^/\t/; s/$/ # a comment: zz/' spaces.hex >array.hex
{ printf '# zz\r\n\r\n' && sed 's/$/\r/' spaces.hex && printf '#'; } >dos.hex
tr 0 0 <spaces.hex | sed 's/ \(.. ..\) / 0X\1 /g' >prefixes.hex
for form in spaces plain colons commas array dos prefixes; do
    kbtp decode $form.hex
    exits 0
    check "$form as a file" cmp -s "$out" store.text
    from $form.hex
    check "$form on standard input" cmp -s "$out" store.text
    from $form.hex -
    check "$form on standard input, with -" cmp -s "$out" store.text
    kbtp decode "$(cat $form.hex)"
    check "$form as an operand" cmp -s "$out" store.text
done
kbtp decode "$PWD/spaces.hex"
check 'a path' cmp -s "$out" store.text
# Hex is hex; a file of that name has a directory before it.
printf '%s' "$completion" >beef
kbtp decode beef
exits 1
row 0 be Version 190
kbtp decode ./beef
exits 0
row 1 20 Opcode 0x20 COMPLETION

# ---- JSON ------------------------------------------------------------------------------------

json() { # STATUS CONDITION ARGUMENT...
    local expected=$1 condition=$2
    shift 2
    kbtp decode --json "$@"
    exits "$expected"
    quiet "$err"
    equal 'lines of JSON' 1 "$(wc -l <"$out")"
    check "$condition" jq -e "def at(\$n): .fields[] | select(.field == \$n);
        ([.fields[].length] | add) == .octets and ($condition)" "$out"
}

json 0 '.as == "message" and .addr_le == false and .octets == 48 and .error == null and
    (.fields | length) == 11 and
    at("Opcode") == {"octet": 1, "length": 1, "structure": "header", "field": "Opcode",
        "raw": "12", "value": 18, "text": "ALLOC_STORE"} and
    at("Flags").text == "INLINE" and
    at("Request ID").value == "0x0000000000000007" and
    at("Block Handle").value == "0x0000000000004001" and
    at("Generation").value == 0 and at("Status").text == "OK" and
    at("Length") == {"octet": 36, "length": 4, "structure": "Data Descriptor", "field": "Length",
        "raw": "00000008", "value": 8, "text": ""} and
    at("Inline Data") == {"octet": 40, "length": 8, "structure": "rest", "field": "Inline Data",
        "raw": "4b56424c4f434b21", "value": "4b56424c4f434b21", "text": "KVBLOCK!"}' "$store"
json 0 'at("Block Offset").value == "0x0000000000150000" and at("Generation").value == 5' \
    "$completion"
json 1 '.error == {"octet": 0, "structure": "header", "field": "Version",
        "what": "the version is not 1 but 2"} and .fields[-1].field == "Unknown Body"' \
    "02 ${store:3}"
json 1 '.error.field == "Opcode" and .error.octet == 1 and (.error.what | contains("0x99"))' \
    "01 99 ${store:6}"
json 1 '.fields[-1] == {"octet": 28, "length": 2, "structure": "Data Descriptor",
        "field": "Tagged Offset", "raw": "0000", "value": null, "text": "cut off"} and
    .error.octet == 30 and .error.field == "Tagged Offset"' "${store:0:89}"
# Inline data is any octets; JSON stays ASCII.
json 0 'at("Inline Data").text == ".\"\\....." and at("Inline Data").raw == "00225c0a1b7fff80"' \
    "${store:0:120}00 22 5c 0a 1b 7f ff 80"

# ---- ADDR_LE (R-LE-01 to R-LE-05) ------------------------------------------------------------

load='01 10 00 04 0102030405060708 0102030405060708 2122 0000
    11121314 2122232425262728 31323334 41424344 5152535455565758 00000000'
json 0 '.addr_le == false and at("Block Handle").value == "0x0102030405060708" and
    at("Length").value == 825373492' "$load"
json 0 '.addr_le and at("Request ID").value == "0x0102030405060708" and
    at("Block Handle").value == "0x0807060504030201" and at("Generation").value == 8482 and
    [at("STag").value] == [336794129, 1145258561] and
    [at("Tagged Offset").value] == ["0x2827262524232221", "0x5857565554535251"] and
    at("Length").value == 875770417' "$load" --addr-le
json 0 'at("Block Handle").value == "0x0000000000004001" and
    at("Block Offset").value == "0x0000000000150000"' "$completion" --addr-le
json 0 'at("Block Handle").value == "0x0807060504030201" and at("Ticket").value == 7 and
    at("Block Offset").value == "0x0000000000150000"' --addr-le \
    '01 14 0000 0102030405060708 0102030405060708 2122 0000 00000007 00000008 0000000000150000'
json 1 '(.error.what | contains("134217768"))' "$store" --addr-le

# ---- structures in memory --------------------------------------------------------------------

entry='8003 0005 00000008 0000000000150000'
json 0 '.as == "entry" and at("Flags").text == "VALID, SEALED, unknown 0x8000" and
    at("Generation").value == 5 and at("Data Length").value == 8 and
    at("Block Offset").value == "0x0000000000150000"' --as entry "$entry"
json 0 'at("Block Offset").value == "0x0000150000000000" and at("Data Length").value == 8' \
    --as entry --addr-le "$entry"
json 0 'at("Sequence").value == 4 and at("Block Offset").text == "consumed"' \
    --as slot '00000004 00000000 ffffffffffffffff'
json 0 'at("Status").text == "STALE_GENERATION" and at("Generation").value == 9 and
    at("Block Offset").value == "0x0000000000150000"' \
    --as record --addr-le '0000000000000007 0002 0009 00000008 0000000000150000'
counter='30 00 00 00 03 00 00 00'
[ "$(printf '\001\000' | od -An -tu2 | tr -d ' ')" -eq 1 ] || counter='00000003 00000030'
json 0 'at("Ticket").value == 3 and at("Slot Offset").value == 48' --as counter "$counter"
kbtp decode --as slot '00000004 00000000 ffffffffffffffff 00'
exits 1
row 16 00 Trailing Octets .
says "$out" 'malformed at octet 16'
kbtp decode --as record 00
exits 1
says "$out" 'malformed at octet 1, Request ID of completion record'

# ---- malformed (R-OPC-05, R-DESC-08, I-30, I-44) ---------------------------------------------

octets=${store//[[:space:]]/}
fields=(Version Opcode Flags Flags)
for width in 'Request ID:8' 'Block Handle:8' Generation:2 Status:2 STag:4 'Tagged Offset:8' \
    Length:4 'Inline Data:8'; do
    for ((i = 0; i < ${width#*:}; i++)); do
        fields+=("${width%:*}")
    done
done
for ((length = 1; length < 48; length++)); do
    kbtp decode "${octets:0:2*length}"
    exits 1
    quiet "$err"
    says "$out" "malformed at octet $length, ${fields[length]}"
    says "$out" "$length are there"
done
says "$out" '(cut off)'

kbtp decode "$octets" 00
exits 1
says "$out" 'malformed at octet 36, Length of Data Descriptor'
says "$out" 'it says 8 octets, 9 follow'
row 48 00 Trailing Octets .
kbtp decode "$completion" 00 01
exits 1
row 40-41 00 01 Trailing Octets ..
says "$out" 'malformed at octet 40, Trailing Octets'
kbtp decode "0110${octets:4:76}"
exits 1
says "$out" 'malformed at octet 2, Flags of header: INLINE is for STORE and ALLOC_STORE only'

# ---- bad input -------------------------------------------------------------------------------

two_lines=$'one\ntwo'
refused "'zz', character 1: 'z' is no hex digit; as a file: No such file" zz
refused "'01 0', character 4: half an octet" '01 0'
refused "'01 1g', character 5: 'g' is no hex digit" '01 1g'
refused "'0x', character 1: no digits behind 0x" 0x
refused "'012', character 1: half an octet" 01 012 zz
refused "'zz'" 01 zz
refused "'-', character 1" 01 -
refused 'one' "$two_lines"
refused 'no octets' ''
refused 'no octets' '# 01 02'
refused 'no octets' -
refused 'no octets'
refused 'missing.hex' missing.hex
refused "--as: 'message,entry' is none of message, entry, slot, record, counter" --as message,entry
refused --as 01 --as
refused --addr-le --addr-le=1
refused --frobnicate 01 --frobnicate

mkdir directory
: >empty
printf '01 02\n03 0g\n' >bad.hex
printf '01 02\n03\n 4 05\n' >half.hex
printf '01\0' >zero.hex
printf '01 \377' >latin.hex
truncate -s 17M large.hex
mkfifo pipe
refused 'directory: is a directory' directory
refused 'empty: is empty' empty
refused "bad.hex:2:5: 'g' is no hex digit" bad.hex
refused 'half.hex:3:2: half an octet' half.hex
refused 'zero.hex:1:3: octet 0x00 is no hex digit' zero.hex
refused 'latin.hex:1:4: octet 0xff is no hex digit' latin.hex
refused 'large.hex: is larger than' large.hex
refused 'pipe: is a pipe' pipe
for file in "bad.hex standard input:2:5: 'g' is no hex digit" 'directory standard input: cannot be' \
    'large.hex standard input: is larger than 16 MiB' 'empty no octets'; do
    from "${file%% *}"
    exits 2
    quiet "$out"
    complains "${file#* }"
done
rm large.hex

# ---- help ------------------------------------------------------------------------------------

kbtp help
says "$out" '  decode '
kbtp help decode
exits 0
says "$out" 'usage: kbtp decode'
for option in as addr-le json; do
    says "$out" "--$option"
done
check 'lines of at most 100 columns' [ "$(wc -L <"$out")" -le 100 ]
cp "$out" usage.text
kbtp decode zz -h
exits 0
check 'the same usage' cmp -s "$out" usage.text
finish
