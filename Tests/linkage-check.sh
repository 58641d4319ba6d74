#!/usr/bin/env bash
# Proves what the library and the tool need at run time: liblz4, the toolchain's own libraries and
# the C library; no SQLite, and nothing else. And that no target has unsafe flags, with which a
# package cannot be a dependency.
#
# usage: Tests/linkage-check.sh [swift build options]
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "linkage-check: $*" >&2
  exit 1
}

swift package dump-package | python3 -c '
import json, sys
unsafe = [
    target["name"]
    for target in json.load(sys.stdin)["targets"]
    for setting in target["settings"]
    if "unsafeFlags" in setting["kind"]
]
sys.exit(f"linkage-check: unsafe flags in {unsafe}" if unsafe else 0)
'
echo "linkage-check: no unsafe flags"

swift build -c release --product airdb-log "$@"
products=$(swift build -c release --show-bin-path "$@")

# What the objects of the library ask of the linker: this holds for every program that links it.
objects=("$products"/AirDbLogStore.build/*.o)
[ -e "${objects[0]}" ] || fail "no objects of AirDbLogStore in $products"
flags=$(mktemp)
trap 'rm -f "$flags"' EXIT
swift-autolink-extract "${objects[@]}" -o "$flags"
grep -qx -e -llz4 "$flags" || fail "the library does not ask for liblz4; is this check still right?"
while read -r flag; do
  case $flag in
    -llz4) ;;
    # FoundationEssentials without Foundation: no ICU in a program that does not want it.
    -lswift*|-ldispatch|-lBlocksRuntime|-lFoundationEssentials|-l_FoundationC*) ;;
    -lm|-lc|-lpthread|-lutil|-ldl|-lrt) ;;
    *) fail "the library asks the linker for $flag" ;;
  esac
done < <(grep -e '^-l' "$flags" | sort -u)
echo "linkage-check: the library asks for" $(grep -e '^-l' "$flags" | sort -u)

# What the tool loads, with all that this loads in turn.
runtime=$(swift -print-target-info |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["paths"]["runtimeLibraryPaths"][0])')
count=0
while read -r name _ path _; do
  count=$((count + 1))
  case $path in "$runtime"/*) continue ;; esac
  case $(basename "$name") in
    liblz4.so.1) ;;
    linux-vdso.so.1|ld-linux-*.so.*) ;;
    libc.so.6|libm.so.6|libpthread.so.0|libdl.so.2|librt.so.1|libutil.so.1|libresolv.so.2) ;;
    libstdc++.so.6|libgcc_s.so.1) ;; # The toolchain's runtime needs them.
    *) fail "airdb-log loads $name ${path:-}" ;;
  esac
done < <(ldd "$products/airdb-log")
[ "$count" -gt 5 ] || fail "ldd lists $count libraries only"
if nm --dynamic --undefined-only "$products/airdb-log" | grep -i sqlite; then
  fail "airdb-log refers to SQLite"
fi
echo "linkage-check: airdb-log loads $count libraries, all of them allowed"
