#!/usr/bin/env bash
# Builds the documentation of the libraries from its sources and articles. Every public declaration
# must be documented, every link in the documentation must lead somewhere.
#
# usage: Tests/docs-check.sh [--output DIRECTORY] [swift build options]
#
# With --output the documentation is kept in a directory that must not exist yet, as a web site:
#
#     Tests/docs-check.sh --output docs && python3 -m http.server --directory docs 8000
#
# is at http://localhost:8000/documentation/ then.
set -euo pipefail
package=$(cd "$(dirname "$0")/.." && pwd)
output=
if [ "${1:-}" = --output ]; then
  output=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
  [ ! -e "$output" ] || { echo "docs-check: $output exists" >&2; exit 1; }
  shift 2
fi
cd "$package"

swift build --target AirDbLogStore "$@"
swift build --target AirDbAdapterTesting "$@"
products=$(swift build --show-bin-path "$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

info() {
  swift -print-target-info | python3 -c "import json, sys; print(json.load(sys.stdin)$1)"
}
for module in HlcText AirDbContract AirDbLogStore AirDbAdapterTesting; do
  mkdir "$work/$module"
  swift-symbolgraph-extract -module-name "$module" -target "$(info '["target"]["triple"]')" \
    -I "$products/Modules" -minimum-access-level public -output-dir "$work/$module" \
    -Xcc "-fmodule-map-file=$products/CAirDbPlatform.build/module.modulemap" \
    -Xcc "-fmodule-map-file=$package/Sources/CLZ4/module.modulemap"
done

python3 - "$work"/Air*/*.symbols.json <<'PYTHON'
import json, sys

missing, count = [], 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        graph = json.load(file)
    # A requirement of a protocol is documented there.
    inherited = {line["source"] for line in graph["relationships"] if "sourceOrigin" in line}
    for symbol in graph["symbols"]:
        identifier = symbol["identifier"]["precise"]
        if identifier in inherited or "::SYNTHESIZED::" in identifier:
            continue
        count += 1
        if "docComment" not in symbol:
            missing.append(f"{graph['module']['name']}.{'.'.join(symbol['pathComponents'])}")
if missing or count < 100:
    sys.exit(f"docs-check: of {count} public declarations these have no comment: {missing}")
print(f"docs-check: {count} public declarations, all with comments")
PYTHON

for module in AirDbContract AirDbLogStore AirDbAdapterTesting; do
  arguments=()
  [ ! -d "Sources/$module/$module.docc" ] || arguments=("Sources/$module/$module.docc")
  docc convert "${arguments[@]}" --additional-symbol-graph-dir "$work/$module" \
    --fallback-display-name "$module" --fallback-bundle-identifier "org.example.$module" \
    --output-dir "$work/$module.doccarchive" --warnings-as-errors
done
[ -z "$output" ] ||
  docc merge "$work"/*.doccarchive --synthesized-landing-page-name AirDbLogStore \
    --output-path "$output"
echo "docs-check: no warnings"
