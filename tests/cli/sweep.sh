#!/usr/bin/env bash
# `kbtp run --set`, and `kbtp sweep`: the same table wherever and in whatever order, and bad input.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

sed 's/^title:.*/title: "an RNIC, 100 GbE"/' "$SOURCE/scenarios/nic/connectx5.yaml" >nic.yaml
cat >small.yaml <<'E'
kind: timed
nic: ./nic.yaml
pools:
  - {name: store, block_size: 4KiB}
instances:
  - name: x   # what is behind it stays
    pool: store
    handles: 4
    operations: 20
    mix: {load: 3, alloc_free: 1}
E

# ---- --set

# What is set is as if it stood there.
sed 's/^kind.*/&\nnetwork: {leaf_ports: 2, latency: 3us}/; s/4KiB/4KiB, workers: 2/
     s/handles: 4/handles: 8\n    stall: {at: 1us, lasts: 5us}/' small.yaml >other.yaml
equal 'digest with values that are set' "$(digest other.yaml)" "$(digest small.yaml \
    --set network.leaf_ports=2 --set network.latency=3us --set pools[0].workers=2 \
    --set instances[0].handles=8 --set instances[0].stall.at=1us --set instances[0].stall.lasts=5us)"
equal 'digest when the last one counts' "$(digest other.yaml)" "$(digest other.yaml \
    --set pools[0].workers=5 --set pools[0].workers=2)"
equal 'digest with a title of odd characters' "$(digest small.yaml)" \
    "$(digest small.yaml --set "title=\"it's\": [ä\\ # {")"
printf '{kind: timed, nic: ./nic.yaml, pools: [{name: s, block_size: 4KiB}], network: {},
instances: [{"name": x, pool: s}], title: , duration: "1ms"}' >flow.yaml
sed 's/network: {}/network: {leaf_ports: 2}/; s/pool: s}/pool: s, depth: 2}/' flow.yaml >flow2.yaml
equal 'digest of a scenario in brackets' "$(digest flow2.yaml)" \
    "$(digest flow.yaml --set network.leaf_ports=2 --set title=T --set instances[0].depth=2)"

bad_set() { # SETTING WHAT: not the other setting is complained about
    refuses 2 "kbtp run: --set $1: $2" run --wire fifo small.yaml --set pools[0].workers=2 --set "$1"
}
bad_set instances[0].count=x "'x' is not a number"
bad_set instances[0].count= "'' is not a number"
bad_set instances[0].cuont=3 "unknown key, did you mean 'count'?"
bad_set nowhere.at.all=3 'nowhere: unknown key'
bad_set instances[1].count=3 'instances has 1 entry'
bad_set instances.count=3 'instances is a list'
bad_set nic.x=1 'nic has no keys'
bad_set nic[0]=1 'nic is not a list'
bad_set network[0]=1 'network is not there'
bad_set network.leaf_ports[0]=1 'network.leaf_ports is not there'
bad_set network.oversubscription=2 'is for two levels'
bad_set instances[0].stall.lasts=1s 'instances[0].stall.at: is required and missing'
bad_set pools=1 'pools is more than a value'
bad_set instances[0].mix=1 'instances[0].mix is more than a value'
for path in '' . a..b 'a[' 'a[x]' 'a[00]' 'a[1' '[0]' 'a b' 'a[0]b' "$(printf 'a%.0s' {1..300})"; do
    refuses 2 'is no path' run small.yaml --set "$path=1"
done
refuses 2 'has a line break' run small.yaml --set $'title=a\nb'
refuses 2 'is not UTF-8' run small.yaml --set $'title=\xff'
refuses 2 'is not PATH=VALUE' run small.yaml --set title
refuses 2 'needs a value' run small.yaml --set
settings=()
for i in {1..33}; do settings+=(--set "seed=$i"); done
refuses 2 'more than 32 times' run small.yaml "${settings[@]}"
# The rest of the file stands where it stood.
sed 's/handles: 4/handles: 0/' small.yaml >wrong.yaml
refuses 2 'wrong.yaml:8:5: instances[0].handles' run wrong.yaml --set instances[0].count=2 \
    --set pools[0].workers=2 --set network.leaf_ports=2 --set seed=1
refuses 2 'small.yaml:4:6: pools[0].name: 1 of 3 targets' run small.yaml --set pools[0].count=3

# ---- the grid

cat >sweep.yaml <<'E'
scenario: small.yaml
options: [--wire, fifo]
seeds: [1, 7]
set:
  instances[0].count: [1, 2]
  pools[0].workers: [1, 2]
E
kbtp sweep --print sweep.yaml
exits 0
cp "$out" commands
equal 'commands' 8 "$(wc -l <commands)"
equal 'distinct commands' 8 "$(sort -u commands | wc -l)"
says commands "run small.yaml --wire fifo --set 'instances[0].count=1' --set 'pools[0].workers=2' --seed 7"

bad_sweep() { # SED PLACE WHAT: the changed sweep is refused there
    changed "$1" sweep.yaml bad.yaml
    refuses 2 "kbtp sweep: bad.yaml:$2: $3" sweep bad.yaml
    refuses 2 "kbtp sweep: bad.yaml:$2: $3" sweep --print bad.yaml
}
bad_sweep 1d 1:1 'scenario: is required and missing'
bad_sweep s/small/missing/ 1:1 'scenario: missing.yaml: cannot be read'
bad_sweep 's/small.*/[a]/' 1:1 'scenario: is not a single value'
bad_sweep '2s/op/up/' 2:1 'uptions: unknown key'
bad_sweep '2s/--wire/--seed=1/' 2:11 "options[0]: '--seed' is the sweep's own"
bad_sweep '2s/--wire/--js/' 2:11 "options[0]: '--json' is the sweep's own"
bad_sweep '2s/--wire/-h/' 2:11 "options[0]: '-h' cannot stand here"
bad_sweep '3s/\[.*/0/' 3:1 "seeds: '0' is not a number"
bad_sweep '3s/\[.*/[]/' 3:1 'seeds: has no entry'
bad_sweep '3s/7/x/' 3:12 "seeds[1]: 'x' is not a number"
bad_sweep '3s/$/\nseeds: 2/' 4:1 'seeds: is here for the second time'
bad_sweep '5s/count/cuont/' 5:24 "set.'instances[0].cuont'[0]: unknown key"
bad_sweep '5s/instances.0./nowhere/' 5:19 "set.'nowhere.count'[0]: nowhere: unknown key"
bad_sweep '5s/instances.0/nowhere/' 5:20 "set.'nowhere].count'[0]: nowhere].count is no path"
bad_sweep '5s/\[1, 2\]/[1, 0]/' 5:27 "set.'instances[0].count'[1]: '0' is not a number"
bad_sweep '5s/\[1, 2\]/[]/' 5:3 "set.'instances[0].count': has no entry"
bad_sweep '5s/\[1, 2\]/1/' 5:3 "set.'instances[0].count': is not a list"
bad_sweep '5s/\[1, 2\]/[1, [2]]/' 5:27 "set.'instances[0].count'[1]: is not a single value"
bad_sweep '5s/\[1, 2\]/[1, "a\\tb"]/' 5:27 "set.'instances[0].count'[1]: has a line break or control"
bad_sweep '6s/pools.*:/instances[0].count:/' 6:3 "set.'instances[0].count': is here for the second"
# shellcheck disable=SC2016 # the last line
bad_sweep '4,$d; 3s/$/\nset: [1]/' 4:1 'set: is not a mapping'
bad_sweep '6s/$/\n  seed: [1]/' 7:3 "set.seed: there are 'seeds'"
bad_sweep '6s/$/\ncolumns: [digest, wall_s]/' 7:19 "columns[1]: 'wall_s' depends"
bad_sweep '6s/$/\n---\na: 1/' 7:1 'sweep: a second document'
bad_sweep '6s/2\]/2/' 7:1 'sweep: is not YAML'
many=$(seq -s, 1000)
bad_sweep "5s/1, 2/$many/; 6s/1, 2/$many/" 6:3 "set.'pools[0].workers': makes 2000000 runs"
bad_sweep "5s/1, 2/$many,1/" "5:$((${#many} + 25))" "set.'instances[0].count'[1000]: is one entry too"
refuses 2 'cannot be read' sweep missing.yaml
refuses 2 'which file' sweep
refuses 2 "there is no option -k" sweep -k sweep.yaml
refuses 2 "jobs: '0' is not a number" sweep -j 0 sweep.yaml
refuses 2 '-j needs a value' sweep sweep.yaml -j
refuses 2 "'xml' is none of csv, jsonl" sweep --format xml sweep.yaml
refuses 4 'nowhere/x: cannot be written' sweep sweep.yaml --out nowhere/x
refuses 2 'is what the sweep is read from' sweep sweep.yaml --out small.yaml
# a scenario that is wrong whatever is set is told as kbtp run does
sed 's/small/wrong/' sweep.yaml >bad.yaml
refuses 2 'wrong.yaml:8:5: instances[0].handles' sweep bad.yaml
# but a value that is wrong only next to another one is good
sed 's/instances.*/pools[0].credits: [1, 64]/; s/pools.*workers.*/instances[0].depth: [2, 1]/' \
    sweep.yaml >some.yaml
kbtp sweep --print some.yaml
exits 0
equal 'commands, some of which fail' 8 "$(wc -l <"$out")"

run env PATH=/nowhere "$KBTP" sweep sweep.yaml
exits 4
complains 'GNU parallel is not installed'

if ! parallel --version 2>&1 | grep -q '^GNU parallel'; then
    finish
    echo 'the rest is skipped: GNU parallel is not installed'
    exit 77
fi

# ---- runs: the same table for any number of jobs, and any place

kbtp sweep -j 1 sweep.yaml
exits 0
quiet "$err"
cp "$out" table.csv
equal 'lines of the table' 9 "$(wc -l <table.csv)"
check 'no wall clock' lacks table.csv wall
for jobs in -j2 '-j 3' '--jobs 2' ''; do
    # shellcheck disable=SC2086 # words
    kbtp sweep sweep.yaml $jobs --out again.csv
    exits 0
    quiet "$out"
    check "the same with $jobs" cmp -s table.csv again.csv
done
# What is printed is what is run.
column=$(head -1 table.csv | tr , '\n' | grep -nx digest | cut -d: -f1)
sed 1d table.csv | cut -d, -f"$column" >digests
while read -r line; do bash -c "$line"; done <commands | jq -r .digest >by-hand
check 'digests of the commands by hand' cmp -s digests by-hand
check 'seeds and values matter' [ "$(sort -u digests | wc -l)" -eq 8 ]

# Another folder and, as it were, other machines.
folder="far away/it's \$HOME {} {1} \"here\""
mkdir -p "$folder"
cp small.yaml "$folder/the scenario.yaml"
cp nic.yaml "$folder"
sed 's/small/the scenario/' sweep.yaml >"$folder/-the sweep.yaml"
kbtp sweep "$folder/-the sweep.yaml"
exits 0
quiet "$err"
check 'the same with odd paths' cmp -s table.csv "$out"
kbtp sweep --print "$folder/-the sweep.yaml"
equal 'the last digest' "$(tail -1 digests)" "$(bash -c "$(tail -1 "$out")" | jq -r .digest)"
cat >ssh <<'E'
#!/bin/sh
# ssh [OPTION]... HOST [--] COMMAND...: that host is this one
echo "$*" >>"${0%/*}/ssh.log"
while [ "${1#-}" != "$1" ]; do shift; done
shift
[ "$1" != -- ] || shift
cd / && exec sh -c "$*"
E
chmod +x ssh
run env PARALLEL_SSH="$PWD/ssh" "$KBTP" sweep sweep.yaml --sshlogin 2/far,1/away
exits 0
check 'the same over ssh' cmp -s table.csv "$out"
check 'both hosts were used' grep -q far ssh.log
check 'both hosts were used' grep -q away ssh.log

# JSON Lines, and columns
echo 'columns: [digest, operations.load.count, links.port0-up.octets, nic]' >>sweep.yaml
kbtp sweep --format jsonl sweep.yaml
exits 0
quiet "$err"
check 'JSON Lines' jq -se 'length == 8 and .[3].set == {"instances[0].count": 1, "pools[0].workers": 2}
    and .[3].seed == 7 and all(.[]; .status == 0 and .["links.port0-up.octets"] > 0)' "$out"
equal 'digests in JSON Lines' "$(cat digests)" "$(jq -r .digest "$out")"
kbtp sweep --json sweep.yaml
check '--json is the same' jq -se 'length == 8' "$out"
kbtp sweep sweep.yaml
says "$out" 'status,digest,operations.load.count,links.port0-up.octets,nic'
says "$out" '"an RNIC, 100 GbE"' # has a comma
sed 's/nic\]/nic, operations.laod.count]/' sweep.yaml >unseen.yaml
kbtp sweep unseen.yaml
exits 2
complains "unseen.yaml:7:70: columns[4]: no run has a 'operations.laod.count'"
equal 'lines with an empty column' 9 "$(wc -l <"$out")"

# Runs that fail: told, marked, and the others are done.
kbtp sweep some.yaml -j2
exits 2
equal 'rows that failed' 2 "$(grep -c '^1,2,[17],2,' "$out")"
equal 'rows' 8 "$(grep -c '^[0-9]*,[12],[17],[02],' "$out")"
says "$err" "kbtp sweep: status 2: "
says "$err" "kbtp run: --set instances[0].depth=2: "
kbtp sweep some.yaml -j1 --json
check 'rows without figures' \
    jq -se '[.[] | select(.status == 2)] | length == 2 and all(.[]; .digest == null)' "$out"
sed 's/operations: 20/operations: 1000000/; s/handles: 4/handles: 4\n    rate: 1e9/' small.yaml >rate.yaml
sed 's/small/rate/; 4,$d; s/seeds.*/seeds: 1/' sweep.yaml >rates.yaml
kbtp sweep rates.yaml
exits 1
says "$err" 'its rate is more than can be done'
# The table cannot be written.
run sh -c 'exec "$@" >/dev/full' sh "$KBTP" sweep sweep.yaml
exits 4
complains 'standard output'

# Interrupted: what was done is written, and no run goes on.
sed 's/operations: 20/operations: 40000000/' small.yaml >long.yaml
sed 's/small/long/; 5s/.*/  instances[0].operations: [10, 40000000]/; 6,$d' sweep.yaml >longs.yaml
"$KBTP" sweep longs.yaml -j 2 --out part.csv >"$out" 2>"$err" &
sleep 3
kill -TERM $! || true
status=0
wait $! || status=$?
shown='kbtp sweep, interrupted'
exits 3
complains 'interrupted: 2 of 4 runs are done'
equal 'lines of what was done' 3 "$(wc -l <part.csv)"
goes_on() {
    local process
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/cwd")" = "$PWD" ] &&
            tr '\0' ' ' <"$process/cmdline" | grep -q 'run long.yaml'; then
            return 0
        fi
    done 2>/dev/null
    return 1
}
! goes_on || fail 'a run goes on'
finish
