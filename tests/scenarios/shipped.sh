#!/usr/bin/env bash
# Every scenario that is shipped ends as it says, and reaches all that it must.
set -eu
bounds=
[ -z "${SLOW:-}" ] || bounds="--max-states 5000"
failures=0 whole=0
while IFS= read -r scenario; do
    wanted="ok null"
    case $scenario in *-crash.yaml) wanted="violation stuck" ;; esac
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
done < <(find "$SOURCE/scenarios" -name '*.yaml' | sort)
[ "$whole" -gt 8 ] || { echo "only $whole scenarios were explored"; exit 1; }
[ "$failures" -eq 0 ]
