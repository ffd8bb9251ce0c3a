#!/usr/bin/env bash
# `kbtp run`: what must hold in every scenario of simulated time, equal runs, and bad input.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/cli/lib.bash
. "$SOURCE/tests/cli/lib.bash"

# shellcheck disable=SC2034 # by lib.bash
limit=600

# ---- what holds in every scenario: Little's law, no link beyond its rate, no RNIC beyond its own
for scenario in "$SOURCE"/scenarios/timed/*.yaml; do
    [ -z "${SLOW:-}" ] || [[ $scenario != */terabyte.yaml ]] || continue # fills much memory
    ends 0 run --wire fifo --json "$scenario"
    check "throughput times latency is what is in flight" \
        jq -e '(.in_flight - .throughput_latency | fabs) <= 0.01 * .in_flight' out
    check "no link brings more than its rate" jq -e 'all(.links[]; .used <= 1.0000001)' out
    check "no RNIC is busy for longer than there is time" \
        jq -e 'all(.hosts[]; .send <= 1.0000001 and .receive <= 1.0000001 and .dma_read <= 1.0000001
                         and .dma_write <= 1.0000001)' out
    check "each request has a status" \
        jq -e '([.operations[].count] | add) == .statuses.OK.count' out
    check "it does something" jq -e '([.operations[].count] | add) >= 10000' out
    equal "the digest of every build (tests/cli/digests.tsv)" \
        "$(awk -v it="$(basename "$scenario" .yaml)" '$1 == it { print $2 }' "$SOURCE/tests/cli/digests.tsv")" \
        "$(jq -r .digest out)"
done
# each of them shows what its name says
used() { # SCENARIO FILTER
    ends 0 run --wire fifo --json "$SOURCE/scenarios/timed/$1.yaml"
    check "$2" jq -e "$2" out
}
used saturate-link '[.links[].used] | max > 0.98'
used saturate-cpu '.target_cpus > 0.98 and ([.links[].used] | max) < 0.9'
used saturate-rnic '([.hosts[].send] | max) > 0.98 and .target_cpus < 0.01'
used incast '.links | map(select(.name == "port16-down")) | .[0].used > 0.98'
used prefill-decode '.links | map(select(.name | startswith("leaf"))) | map(.used) | max > 0.98'
used stalled '.operations.load.max_us > 5000 and .operations.load.p999_us < 200'

# ---- equal runs: again, elsewhere, with other addresses; and other seeds differ
cp -r "$SOURCE/scenarios" copied
first=$(digest copied/timed/central-store.yaml --seed 7)
mkdir -p elsewhere/on/this/disk
mv copied elsewhere/on/this/disk/scenarios
[ "$(cd elsewhere/on && digest this/disk/scenarios/timed/central-store.yaml --seed 7)" = "$first" ] ||
    fail "the digest depends on the folder"
if setarch -R true 2>/dev/null; then
    for _ in 1 2 3; do
        [ "$(digest "$SOURCE/scenarios/timed/central-store.yaml" --seed 7)" = "$first" ] ||
            fail "the digest depends on addresses"
    done
    [ "$(setarch -R "$KBTP" run --wire fifo --json "$SOURCE/scenarios/timed/central-store.yaml" --seed 7 |
        jq -r .digest)" = "$first" ] || fail "the digest depends on address randomisation"
fi
[ "$(digest "$SOURCE/scenarios/timed/central-store.yaml" --seed 8)" != "$first" ] ||
    fail "the seed does not matter"

# ---- CSV
ends 0 run --wire fifo --csv figures "$SOURCE/scenarios/timed/central-store.yaml"
head -1 figures/latency.csv | grep -qx 'operation,latency_us,share' || fail "latency.csv"
for operation in load alloc_store free; do
    [ "$(awk -F, -v it="$operation" '$1 == it { last = $3 } END { print last }' figures/latency.csv)" = \
        1.000000 ] || fail "the latencies of $operation do not end at 1"
done
[ "$(wc -l <figures/utilisation.csv)" -gt 100 ] || fail "there are few samples"
# a message counts when it begins, though it may have to wait for its turn on the link
check "no more than everything is used" \
    awk -F, 'NR > 1 && ($4 > 1.0001 || $5 > 1.03) { exit 1 }' figures/utilisation.csv

# ---- pictures: they change nothing, and can be read
plain=$(digest "$SOURCE/scenarios/timed/stalled.yaml")
equal "the digest with a picture" "$plain" \
    "$(digest "$SOURCE/scenarios/timed/stalled.yaml" --perfetto picture.json)"
check "spans of CPUs, RNICs, the wire and requests" jq -e '
    [.traceEvents[] | select(.ph == "X") | .cat] | unique == ["cpu", "kbtp", "rnic", "wire"]' picture.json
check "they end after they begin" jq -e 'all(.traceEvents[] | select(.ph == "X"); .dur >= 0)' picture.json
if command -v gnuplot >/dev/null; then
    gnuplot -e "folder='figures'" "$SOURCE/plots/run.gp"
    check "pictures are drawn" [ -s figures/latency.svg ] && [ -s figures/utilisation.png ]
fi

# ---- bad input
cat >good.yaml <<'E'
kind: timed
nic: ./nic.yaml
pools:
  - {name: store, block_size: 4KiB}
instances:
  - {name: x, pool: store, handles: 4, operations: 10}
E
cp "$SOURCE/scenarios/nic/connectx5.yaml" nic.yaml
ends 0 run --wire fifo good.yaml

bad() { # SED WHERE WHAT: the changed scenario is refused there
    changed "$1" good.yaml bad.yaml
    ends 2 run --wire fifo bad.yaml
    check "$1: expected '$2: $3', not $(head -1 err)" grep -qF "bad.yaml:$2: $3" err
}
bad 's/kind: timed/kind: tmied/' 1:1 kind
bad '/^nic/d' 1:1 nic
bad 's/4KiB/4097/' 4:19 'pools[0].block_size: 4097 is not a multiple of 8'
bad 's/pool: store, h/pool: stroe, h/' 6:15 'instances[0].pool'
bad 's/store/x1/g; s/name: x,/name: x, count: 2,/' 4:6 "pools[0].name: 'x1' gives a host the name of one of 'x'"
bad 's/handles: 4/handles: 4, direct: true, mix: {store: 1}/' 6:40 'instances[0].direct: is for blocks that are sealed'
bad 's/operations: 10/operations: 0/' 6:40 'instances[0].operations'
bad 's/operations: 10/rate: -1/' 6:40 "instances[0].rate: '-1' is not a number"
bad 's/, operations: 10//' 6:6 'instances[0].name: would go on for ever'
bad 's/handles: 4/handles: 4, depth: 100/' 6:40 'instances[0].depth: 100 is more than'
bad 's/handles: 4/handles: 4, mix: {load: 0}/' 6:40 'instances[0].mix: has no weight'
bad 's/handles: 4/handles: 4, stall: {at: 1s, lasts: 0s}/' 6:56 'instances[0].stall.lasts'
bad 's/^nic.*/&\nduration: 0s/' 3:1 'duration: '
bad 's/^nic.*/&\nduration: 5/' 3:1 'duration: '
bad 's/^nic.*/&\nnetwork: {oversubscription: 2}/' 3:11 'network.oversubscription: is for two levels'
bad 's/^nic.*/&\nnetwork: {leaf_ports: 2, oversubscription: 0.5}/' 3:26 network.oversubscription
bad 's/4KiB/4KiB, blocks: 3/' 4:37 'pools[0].blocks: 3 are less than'
bad 's/4KiB/4KiB, count: 2/' 4:6 'pools[0].name: 1 of 2 targets'
bad 's/name: x/name: store/' 6:6 'instances[0].name'

# A figure a line is easier to change.
while read -r figure; do
    echo "$figure: {value: 10, is: assumed}"
done < <(sed -n 's/^\([a-z0-9_]*\):.*/\1/p' "$SOURCE/scenarios/nic/connectx5.yaml" | grep -v title) >flat.yaml
echo 'title: flat' >>flat.yaml
sed -i 's/^mtu_octets.*/mtu_octets: {value: 4096, is: assumed}/' flat.yaml
bad_nic() { # SED WHERE WHAT
    changed "$1" flat.yaml nic.yaml
    ends 2 run --wire fifo good.yaml
    check "$1: expected '$2: $3', not $(head -1 err)" grep -qE "nic.yaml:$2: $3" err
}
line='[0-9]+:[0-9]+'
bad_nic '/^atomic_ns/d' 1:1 'atomic_ns: is required and missing'
bad_nic 's/^link_gbits_s:.*/link_gbits_s: {value: -100, is: assumed}/' "$line" link_gbits_s.value
bad_nic 's/^link_gbits_s:.*/link_gbits_s: {value: 0, is: assumed}/' "$line" link_gbits_s.value
bad_nic 's/^link_gbits_s:.*/link_gbits_s: {value: nan, is: assumed}/' "$line" link_gbits_s.value
bad_nic 's/^poll_ns:.*/poll_ns: {value: 10}/' "$line" 'poll_ns: has no source'
bad_nic 's/^poll_ns:.*/poll_ns: 10/' "$line" 'poll_ns: is not a mapping'
rm nic.yaml
ends 2 run --wire fifo good.yaml
check "the missing cost model is named" grep -q nic.yaml err
sed 's/^nic:.*/nic: nothing/' good.yaml >bad.yaml
ends 2 run --wire fifo bad.yaml
check "a name that is no model's is told" grep -q 'bad.yaml: nic: there is no cost model nothing' err
ends 2 run --wire fifo missing.yaml
ends 2 run --wire fifo "$SOURCE/scenarios/ring/1+1-k2.yaml"
ends 2 run --wire rope good.yaml
ends 2 run
ends 2 explore good.yaml
check "explore says where kind timed belongs" grep -q 'kbtp run' err
cp flat.yaml nic.yaml
ends 0 run --wire fifo good.yaml
# what is stored inline is read by the library, also where the pool has no octets
sed 's/block_size: 4KiB/block_size: 4KiB, memory: phantom, max_inline: 256/
    s/handles: 4/handles: 4, inline: true, length: 256, mix: {alloc_free: 1}/' good.yaml >inline.yaml
ends 0 run --wire fifo inline.yaml
ends 0 run --wire fifo --seed 9223372036854775807 --json good.yaml
check "the greatest seed is printed as it is" jq -e '.seed > 9e18' out
ends 2 run --wire fifo --seed 9223372036854775808 good.yaml
# a link on which nothing arrives in a lifetime
sed 's/^link_gbits_s:.*/link_gbits_s: {value: 0.001, is: assumed}/' nic.yaml >slow.yaml
sed 's/nic: .*/nic: .\/slow.yaml/; s/4KiB/64MiB, memory: phantom/; s/operations: 10/operations: 10000/' good.yaml >late.yaml
ends 3 run --wire fifo late.yaml
check "the run is said to be too long" grep -q 'days of simulated time have passed' err
# what only a message at a time has is not left out in silence
for option in '--wire fifo' '--set seed=1' '--csv figures' '--perfetto picture.json' '--platform good.xml'; do
    # shellcheck disable=SC2086 # words
    ends 2 run --check "$SOURCE/scenarios/ring/1+1-k2.yaml" $option
    check "$option is refused" grep -q -e "${option% *} is for scenarios of kind timed" err
done
# more comes than can be done: said, not waited for
cp "$SOURCE/scenarios/nic/connectx5.yaml" nic.yaml
sed 's/operations: 10/rate: 1e9, operations: 1000000/' good.yaml >rate.yaml
ends 1 run --wire fifo rate.yaml
check "what is wrong with the rate is said" grep -q 'its rate is more than can be done' err

# pools whose names begin alike are two: each instance finds its own
sed 's/name: store/name: prefill-cache-a/; s/pool: store/pool: prefill-cache-b/
    s/^instances/  - {name: prefill-cache-b, block_size: 8KiB}\n&/' good.yaml >alike.yaml
echo '  - {name: y, pool: prefill-cache-a, handles: 4, operations: 10}' >>alike.yaml
ends 0 run --wire fifo --json alike.yaml
check "each brings blocks of its pool's size" jq -e '.octets == 10 * (4096 + 8192)' out

# ---- a SimGrid platform
platform() { # BANDWIDTH NAME
    cat <<P
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    <host id="store" speed="1Gf"/>
    <host id="$2" speed="1Gf"/>
    <link id="cable" bandwidth="$1" latency="300ns"/>
    <route src="store" dst="$2"><link_ctn id="cable"/></route>
  </zone>
</platform>
P
}
cp flat.yaml nic.yaml
platform 12.5GBps x >good.xml
ends 0 run --wire fifo --json --platform good.xml good.yaml
fifo=$(jq -r .digest out)
check "the platform's link is used" jq -e '.links[0].name == "cable"' out
ends 0 run --wire simgrid --json --platform good.xml good.yaml
equal "both wires on a platform" "$fifo" "$(jq -r .digest out)"
platform 12.5GBps y >bad.xml
ends 2 run --platform bad.xml good.yaml
check "the missing host is named" \
    grep -q 'bad.xml: there is no host x, for which instances\[0\].name in line 6 of' err
platform -1GBps x >bad.xml
ends 2 run --platform bad.xml good.yaml
check "the link is named" grep -q 'bad.xml.*cable' err
sed 's/<zone/<zon/' good.xml >bad.xml
ends 2 run --platform bad.xml good.yaml
check "the line is named" grep -q 'bad.xml' err
ends 2 run --platform nowhere.xml good.yaml
mkfifo pipe.xml
ends 2 run --platform pipe.xml good.yaml
ends 2 run --platform . good.yaml

finish
