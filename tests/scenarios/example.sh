#!/usr/bin/env bash
# The draft's example (R-EX-04): exhaustively ok under every memory model, size and order of DMA pieces, and a
# free is deferred in each; what a violation prints can be replayed.
set -eu
scenario=$SOURCE/scenarios/races/deferred-free.yaml
bounds=
[ -z "${SLOW:-}" ] || bounds="--max-states 3000"
for memory in sc tso relaxed; do
    for tear in 8 4; do
        for order in any ascending descending; do
            # shellcheck disable=SC2086 # options are words
            json=$("$KBTP" explore "$scenario" --memory $memory --tear $tear --dma-order $order \
                $bounds --json) || [ -n "$bounds" ]
            echo "$memory $tear $order: $(jq -r '"\(.result) \(.states) states, \(.reached)"' <<<"$json")"
            [ -n "$bounds" ] || jq -e '.result == "ok" and .reached.deferral > 0' <<<"$json" >/dev/null
        done
    done
done
