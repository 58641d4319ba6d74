#!/usr/bin/env bash
# Holds the engine against the independent decoder in Spec/decoder, which shares no code with it:
# stores just written are checked by the decoder, and the records that the decoder, the tool and a
# model find in them are compared one by one; stores written by the decoder's own writer are checked
# and read by the tool; and what crashes left is recovered by all of them to the same records.
#
# usage: Tests/cross-check.sh [swift build options]
set -euo pipefail
package=$(cd "$(dirname "$0")/.." && pwd)
decoder=$package/Spec/decoder
cd "$package"

for product in StoreWriter airdb-log; do swift build --product "$product" "$@"; done
products=$(swift build --show-bin-path "$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compares records found by several readers, one JSON object a line: NAME=FILE...
compare() {
  python3 - "$@" <<'PYTHON'
import base64, json, sys

NAMES = {"authorPublicKey64": "author64"}


def records(path):
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n")[:-1]:
            record = {NAMES.get(name, name): value for name, value in json.loads(line).items()}
            if "payload" in record:
                payload = record.pop("payload").encode()
                record["payload64"] = base64.b64encode(payload).decode()
            fields = ("collection", "id", "type", "hlc", "payload64", "author64", "signature64")
            found.append([record.get(field) for field in fields])
    return found


(first, expected), *others = [argument.split("=", 1) for argument in sys.argv[1:]]
expected = records(expected)
for name, path in others:
    found = records(path)
    for number, (a, b) in enumerate(zip(expected, found)):
        if a != b:
            sys.exit(f"cross-check: record {number}:\n  {first}: {a}\n  {name}: {b}"[:4000])
    if len(found) != len(expected):
        sys.exit(f"cross-check: {first} has {len(expected)} records, {name} {len(found)}")
print(f"{len(expected)} records")
PYTHON
}

# Compares the consumers that the decoder and the tool find: FILE FILE
compare_consumers() {
  python3 - "$@" <<'PYTHON'
import json, sys

FIELDS = ("name", "sequence", "retention", "maximumAge", "maximumBytes", "registered")


def consumers(path):
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file.read().split("\n")[:-1]]
    return [{field: consumer[field] for field in FIELDS} for consumer in found]


decoder, tool = (consumers(path) for path in sys.argv[1:])
if decoder != tool:
    sys.exit(f"cross-check: consumers:\n  decoder: {decoder}\n  tool: {tool}"[:4000])
print(f"{len(tool)} consumers")
PYTHON
}

checked=0
followed=0
check() { # STORE; beside it there may be what is expected in it
  local store=$1 name
  name=$(basename "$store")
  echo "-- $name"
  python3 "$decoder/airdb_decode.py" "$store" --check
  python3 "$decoder/airdb_decode.py" "$store" --state >"$work/decoder.jsonl"
  "$products/airdb-log" verify "$store"
  "$products/airdb-log" dump "$store" >"$work/tool.jsonl"
  local readers=("decoder=$work/decoder.jsonl" "tool=$work/tool.jsonl")
  [ ! -e "$store.expected.jsonl" ] || readers=("model=$store.expected.jsonl" "${readers[@]}")
  compare "${readers[@]}"
  python3 "$decoder/airdb_decode.py" "$store" --consumers >"$work/decoder.jsonl"
  "$products/airdb-log" consumers --json "$store" >"$work/tool.jsonl"
  compare_consumers "$work/decoder.jsonl" "$work/tool.jsonl"
  [ ! -s "$work/tool.jsonl" ] || followed=$((followed + 1))
  checked=$((checked + 1))
}

echo "== Stores by the engine"
"$products/StoreWriter" samples "$work/samples"
for store in "$work"/samples/*/; do
  check "${store%/}"
done

echo "== Stores by the decoder's writer"
for name in minimal sealed unclosed compacted packed followed; do
  python3 "$decoder/make_store.py" "$work/$name" "$name"
  check "$work/$name"
done

echo "== What crashes left of stores by the engine"
"$products/StoreWriter" images "$work/images"
images=0
for store in "$work"/images/*/; do
  store=${store%/}
  # What a power loss took is a finding, so that the status is 1; damage would leave no records.
  python3 "$decoder/airdb_decode.py" "$store" --state >"$work/decoder.jsonl" \
    2>"$work/findings" || [ $? = 1 ]
  "$products/airdb-log" dump "$store" >"$work/tool.jsonl"
  compare "engine=$store.expected.jsonl" "decoder=$work/decoder.jsonl" "tool=$work/tool.jsonl" \
    >/dev/null || { cat "$work/findings" >&2; exit 1; }
  images=$((images + 1))
done
[ "$images" -ge 24 ] || { echo "cross-check: $images images only" >&2; exit 1; }
echo "$images images"

[ "$followed" -ge 4 ] || { echo "cross-check: $followed stores with consumers only" >&2; exit 1; }
[ "$checked" -ge 18 ] || { echo "cross-check: $checked stores only" >&2; exit 1; }
echo "cross-check: $checked stores agree"
