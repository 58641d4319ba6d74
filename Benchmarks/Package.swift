// swift-tools-version: 6.2
import PackageDescription

struct Peer {
  var name: String
  var module: String
  var pkgConfig: String
  var apt: String
  var brew: String
}

// Those to build with, as `Benchmarks/run` finds their libraries. A variable rather than a look at
// the file system, whose answer the package manager would keep after a library has been installed.
let names = (Context.environment["AIRDB_BENCHMARK_PEERS"] ?? "").split(separator: " ")
let peers = [
  Peer(
    name: "sqlite", module: "CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev", brew: "sqlite"),
  Peer(name: "lmdb", module: "CLMDB", pkgConfig: "lmdb", apt: "liblmdb-dev", brew: "lmdb"),
  Peer(
    name: "rocksdb", module: "CRocksDB", pkgConfig: "rocksdb", apt: "librocksdb-dev",
    brew: "rocksdb"),
].filter { names.contains(Substring($0.name)) }

let package = Package(
  name: "airdb-log-store-benchmarks",
  platforms: [.macOS(.v13)],
  dependencies: [.package(name: "airdb-log-store", path: "..")],
  targets: [
    .target(name: "CBenchmarkProbe"),
    .executableTarget(
      name: "benchmarks",
      dependencies: [
        .product(name: "AirDbLogStore", package: "airdb-log-store"), "CBenchmarkProbe",
      ] + peers.map { .target(name: $0.module) },
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ] + peers.map { .define("PEER_" + $0.name.uppercased()) }),
  ]
    + peers.map { peer in
      .systemLibrary(
        name: peer.module, pkgConfig: peer.pkgConfig,
        providers: [.apt([peer.apt]), .brew([peer.brew])])
    },
  swiftLanguageModes: [.v6]
)
