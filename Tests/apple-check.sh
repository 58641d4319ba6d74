#!/usr/bin/env bash
# Compiles the branches for Apple platforms on Linux, and runs them as far as that goes, over the
# stand-ins in Tests/AppleStandIns. Inactive branches are only parsed by the compiler, so that
# without this a type error in them would wait for the first build on a Mac.
#
# 1. The tests of the codec, over the stand-in for the Compression framework.
# 2. The whole engine over stand-ins for Compression and Darwin, with Foundation in the place of
#    FoundationEssentials, which Apple platforms do not have; a program exercises it. The condition
#    is turned off in a copy of the sources, since no stand-in can hide a module of the toolchain.
# 3. The C target for Apple's compiler targets, 64-bit and 32-bit: syntax and types only.
#
# What this cannot show is in the README.
#
# usage: Tests/apple-check.sh [swift build options, but no --scratch-path]
set -euo pipefail
package=$(cd "$(dirname "$0")/.." && pwd)
scratch=${AIRDB_SCRATCH_PATH:-$package/.build}/apple
cd "$package"

echo "== Compression: the tests of the codec"
AIRDB_APPLE_STAND_INS=compression swift test --scratch-path "$scratch/compression" "$@"

echo "== Darwin, Compression and Foundation: the engine"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R Package.swift Sources Tests "$copy"
grep -rl 'canImport(FoundationEssentials)' "$copy/Sources" |
  xargs sed -i 's/canImport(FoundationEssentials)/false/'
cd "$copy"
AIRDB_APPLE_STAND_INS=darwin swift build --scratch-path "$scratch/darwin" "$@" \
  --product apple-exercise
"$scratch/darwin/debug/apple-exercise"

echo "== The C target"
# The compiler that comes with Swift knows Apple's targets.
clang=$(dirname "$(swift -print-target-info |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["paths"]["runtimeResourcePath"])')")/../bin/clang
for target in arm64-apple-ios16.0 arm64-apple-macos13.0 x86_64-apple-macos13.0 \
  arm64_32-apple-watchos9.0; do
  for source in "$package"/Sources/CAirDbPlatform/*.c; do
    "$clang" -target "$target" -fsyntax-only -Wall -Wextra -Werror -nostdlibinc \
      -isystem "$package/Tests/AppleStandIns/Headers" \
      -I "$package/Sources/CAirDbPlatform/include" "$source"
  done
done
echo "apple-check: passed"
