#!/usr/bin/env bash
# Every scenario that is shipped ends as it says, and reaches all that it must; in the small ones
# independent steps commute. The largest are explored up to a bound here, and whole by
# scripts/races, which also has the other memory models and orderings.
set -eu
# Slow builds see some runs to their ends, for the search goes into the depth first. States of protocol
# worlds are large, and rehashed after every step; the smallest ring worlds end within their bound.
failures=0 whole=0 small=0
while IFS= read -r scenario; do
    wanted="ok null"
    slow=
    if [ -n "${SLOW:-}" ]; then
        case $scenario in
        "$SOURCE"/scenarios/ring/*) slow="--max-states 5000" ;;
        *) slow="--max-states 500" ;;
        esac
    fi
    bounds=$slow
    case $scenario in
    *-crash.yaml) wanted="violation stuck" ;;
    */three-loads-one-free.yaml | */load-against-free.yaml | */store-by-read-loss.yaml | \
        */target-restart.yaml | */direct-alloc-loss.yaml)
        bounds=${slow:---max-states 1000000}
        ;;
    esac
    # shellcheck disable=SC2086 # options are words
    json=$("$KBTP" explore "$scenario" $bounds --json) || true
    ended=$(jq -r '"\(.result) \(.property)"' <<<"$json")
    printf '%-42s %s\n' "${scenario#"$SOURCE"/}" "$(jq -r \
        '"\(.result) \(.property // "") \(.states) states \(.seconds * 100 | round / 100) s"' <<<"$json")"
    if [ -n "$bounds" ] && [ "$ended" = "incomplete null" ]; then
        continue
    fi
    whole=$((whole + 1))
    if [ "$ended" != "$wanted" ]; then
        echo "FAILED: $scenario: $json"
        failures=$((failures + 1))
    fi
    # Small worlds: independent steps commute, and the verdict is the same.
    if [ "$(jq .states <<<"$json")" -lt 20000 ]; then
        json=$("$KBTP" explore "$scenario" --check-commute --json) || true
        small=$((small + 1))
        if [ "$(jq -r '"\(.result) \(.property)"' <<<"$json")" != "$wanted" ]; then
            echo "FAILED: $scenario --check-commute: $json"
            failures=$((failures + 1))
        fi
    fi
done < <(find "$SOURCE/scenarios" -name '*.yaml' -not -path '*/timed/*' -not -path '*/nic/*' | sort)
[ "$whole" -gt 8 ] || { echo "only $whole scenarios were explored"; exit 1; }
echo "$small worlds were small enough for --check-commute"
[ "$small" -gt 8 ] || { echo "only $small worlds were checked to commute"; exit 1; }
[ "$failures" -eq 0 ]
