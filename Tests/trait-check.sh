#!/bin/sh
# Builds the package with the trait UpstreamAirDbKit, as an app asks for it, and without it.
#
# AirDB's package is stood in for by a git repository made here. Its module AirDbKit has what AirDB's
# guides show of it and no more, so that the engine is known to need no more: the stand-in is not
# Hashable where AirDbContract is, its MutationType knows three values, and its record is made with
# all seven arguments. A mirror setting, in an app that is made here, leads the package manager to it.
# The package itself is not touched, and nothing is downloaded.
#
# With the trait on, the engine is held to the contract by the conformance kit, and the tool is run. The
# tests of the package are not built: they compare records, and have types without a name, both of
# which are AirDbContract's own.
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
    if lhs.utf8.elementsEqual(rhs.utf8) { return 0 }
    return lhs.utf8.lexicographicallyPrecedes(rhs.utf8) ? -1 : 1
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

# A copy of the package, as it is in the work tree, under the name that the README gives it.
copy=$work/airdb-log-store
mkdir "$copy"
cp -R "$package/Package.swift" "$package/Sources" "$package/Tests" "$copy"

echo "== trait off: nothing is resolved"
cd "$copy"
swift build --cache-path "$work/cache" --scratch-path "$work/off" "$@" --target AirDbLogStore
if [ -n "$(ls "$work/off/checkouts" 2>/dev/null)" ] || [ -e Package.resolved ]; then
  echo "trait-check: a package was resolved with the trait off" >&2
  exit 1
fi

echo "== trait on: the app gets AirDB's types through the engine, which keeps to the contract"
# The line that the README shows, word for word.
dependency='.package(path: "../airdb-log-store", traits: ["UpstreamAirDbKit"])'
grep -qF "$dependency" "$package/README.md" || {
  echo "trait-check: the README does not show $dependency" >&2
  exit 1
}
app=$work/app
mkdir -p "$app/Sources/App"
cat >"$app/Package.swift" <<END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "app",
  platforms: [.macOS(.v13)],
  dependencies: [$dependency],
  targets: [
    .executableTarget(
      name: "App",
      dependencies: [
        .product(name: "AirDbLogStore", package: "airdb-log-store"),
        .product(name: "AirDbAdapterTesting", package: "airdb-log-store"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
END
cat >"$app/Sources/App/App.swift" <<'END'
import AirDbAdapterTesting
import AirDbLogStore
import Foundation

func isAdapter(_: (some AirDbKit.AirDbAdapter).Type) {}

@main
struct App {
  static func main() async throws {
    isAdapter(ChangeStore.self)
    let type: AirDbKit.MutationType = MutationType.delete
    print("the engine is an adapter of AirDbKit; delete is \(type.rawValue)")

    // The comparator of the stand-in goes by bytes, and so does such a store.
    var options = AdapterConformance.Options()
    options.timestamps = .opaque
    let conformance = AdapterConformance(
      options: options,
      makeAdapter: {
        var configuration = Configuration()
        configuration.timestampFormat = .utf8Order
        return try ChangeStore.inMemory(configuration: configuration)
      })
    let report = await conformance.run()
    print(report)
    let skipped = report.outcomes.filter { if case .skipped = $0.result { true } else { false } }
    // There are no types without a name, and nothing to reopen.
    exit(report.isConforming && skipped.map(\.check) == [.unknownTypes, .reopening] ? 0 : 1)
  }
}
END
cd "$app"
swift package config set-mirror --original "$url" --mirror "file://$upstream"
swift run --cache-path "$work/cache" --scratch-path "$work/on" "$@" App
[ -d "$work/on/checkouts/airdb" ] || {
  echo "trait-check: AirDB was not resolved with the trait on" >&2
  exit 1
}

echo "== the tool, run from the app"
tool() {
  swift run --cache-path "$work/cache" --scratch-path "$work/on" $options airdb-log "$@"
}
options=$*
line='{"collection":"notes","id":"1","type":0,"hlc":"1700000000000-0000-a","payload":"Milk"}'
echo "$line" | tool import --create "$work/notes.store"
[ "$(tool dump "$work/notes.store" | grep -c '"Milk"')" = 1 ] || {
  echo "trait-check: the tool did not find the record" >&2
  exit 1
}
echo "trait-check: passed"
