#!/bin/sh
# Builds the package with the trait UpstreamAirDbKit, and without it.
#
# AirDB's package is stood in for by a git repository made here. Its module AirDbKit has what AirDB's
# guides show of it and no more, so that the engine is known to need no more: the stand-in is not
# Hashable where AirDbContract is, and its MutationType knows three values. A mirror setting, in a
# copy of the package, leads the package manager to it. The package itself is not touched, and
# nothing is downloaded.
#
# usage: Tests/trait-check.sh [swift build options, such as -j 1]
set -eu

package=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

url=$(sed -n 's/.*\.package(url: "\([^"]*\)".*/\1/p' "$package/Package.swift")
[ -n "$url" ] || { echo "trait-check: no package url in Package.swift" >&2; exit 1; }

upstream=$work/airdb
mkdir -p "$upstream/Sources/AirDbKit"
cat >"$upstream/Sources/AirDbKit/AirDbKit.swift" <<'END'
import Foundation

public protocol AirDbAdapter {
  func getChangesSince(sinceHlcTimestamp: String?, limit: Int) async throws -> [ChangeRecord]
  func applyChanges(_ changes: [ChangeRecord]) async throws
  func getLatestHlc() async throws -> String?
}

public enum MutationType: Int, Sendable {
  case insert, update, delete
}

public struct ChangeRecord: Sendable {
  public let id: String
  public let collection: String
  public let type: MutationType
  public let payload: Data
  public let hlcTimestamp: String
  public let authorPublicKey: Data?
  public let signature: Data?

  public init(
    id: String, collection: String, type: MutationType, payload: Data, hlcTimestamp: String,
    authorPublicKey: Data?, signature: Data?
  ) {
    self.id = id
    self.collection = collection
    self.type = type
    self.payload = payload
    self.hlcTimestamp = hlcTimestamp
    self.authorPublicKey = authorPublicKey
    self.signature = signature
  }
}

public enum HlcComparator {
  public static func compare(_ lhs: String, _ rhs: String) -> Int {
    lhs < rhs ? -1 : lhs == rhs ? 0 : 1
  }
}
END
cat >"$upstream/Package.swift" <<'END'
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "airdb",
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [.library(name: "AirDbKit", targets: ["AirDbKit"])],
  targets: [.target(name: "AirDbKit")],
  swiftLanguageModes: [.v6]
)
END
git -C "$upstream" init --quiet
git -C "$upstream" add .
git -C "$upstream" -c user.name=stand-in -c user.email=stand-in@example.invalid \
  commit --quiet --message "Stand in for AirDB"
git -C "$upstream" tag 1.0.0

# A copy of the package, as it is in the work tree.
copy=$work/package
mkdir "$copy"
cp -R "$package/Package.swift" "$package/Sources" "$package/Tests" "$copy"
cd "$copy"

echo "== trait off: nothing is resolved"
swift build --cache-path "$work/cache" --scratch-path "$work/off" "$@" --target AirDbLogStore
if [ -n "$(ls "$work/off/checkouts" 2>/dev/null)" ] || [ -e Package.resolved ]; then
  echo "trait-check: a package was resolved with the trait off" >&2
  exit 1
fi

echo "== trait on: the engine sees AirDbKit"
swift package config set-mirror --original "$url" --mirror "file://$upstream"
swift build --cache-path "$work/cache" --scratch-path "$work/on" "$@" \
  --traits UpstreamAirDbKit --target AirDbLogStore
swift build --cache-path "$work/cache" --scratch-path "$work/on" "$@" \
  --traits UpstreamAirDbKit --target AirDbAdapterTesting
[ -d "$work/on/checkouts/airdb" ] || {
  echo "trait-check: AirDB was not resolved with the trait on" >&2
  exit 1
}

# A client that gets the contract through the engine gets AirDB's types, not those of this package.
mkdir "$copy/Sources/TraitClient"
cat >"$copy/Sources/TraitClient/main.swift" <<'END'
import AirDbLogStore

let type: AirDbKit.MutationType = MutationType.delete
func isAdapter(_: (some AirDbKit.AirDbAdapter).Type) {}
isAdapter(ChangeStore.self)
print("the engine is an adapter of AirDbKit; delete is \(type.rawValue)")
END
cat >>"$copy/Package.swift" <<'END'

package.targets.append(
  .executableTarget(name: "TraitClient", dependencies: ["AirDbLogStore"]))
END
swift run --cache-path "$work/cache" --scratch-path "$work/on" "$@" \
  --traits UpstreamAirDbKit TraitClient
echo "trait-check: passed"
