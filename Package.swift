// swift-tools-version: 6.2
import PackageDescription

// With this variable set, the branches for Apple platforms are compiled and run on Linux
// against small stand-in modules that have the public signatures (see Tests/AppleStandIns).
let appleStandIns = Context.environment["AIRDB_APPLE_STAND_INS"] != nil

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let lz4: Target.Dependency =
  appleStandIns ? "Compression" : .target(name: "CLZ4", condition: .when(platforms: [.linux]))

let package = Package(
  name: "airdb-log-store",
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [
    .library(name: "AirDbContract", targets: ["AirDbContract"]),
    .library(name: "AirDbLogStore", targets: ["AirDbLogStore"]),
    .executable(name: "airdb-log", targets: ["airdb-log"]),
  ],
  targets: [
    .systemLibrary(
      name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),
    .target(name: "CAirDbPlatform"),
    .target(name: "HlcText", swiftSettings: settings),
    .target(name: "AirDbContract", dependencies: ["HlcText"], swiftSettings: settings),
    .target(
      name: "AirDbLogStore",
      dependencies: ["AirDbContract", "HlcText", "CAirDbPlatform", lz4],
      swiftSettings: settings),
    .executableTarget(name: "airdb-log", dependencies: ["AirDbLogStore"], swiftSettings: settings),
    .target(
      name: "TestSupport", dependencies: ["AirDbLogStore"], path: "Tests/TestSupport",
      swiftSettings: settings),
    .testTarget(name: "HlcTextTests", dependencies: ["HlcText"], swiftSettings: settings),
    .testTarget(
      name: "AirDbContractTests", dependencies: ["AirDbContract"], swiftSettings: settings),
    .testTarget(
      name: "AirDbLogStoreTests", dependencies: ["AirDbLogStore", "TestSupport"],
      swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
