// swift-tools-version: 6.2
import PackageDescription

// With this variable set, the branches for Apple platforms are compiled and run on Linux
// against small stand-in modules that have the public signatures: "compression" for the tests,
// "darwin" for all branches but without tests (see Tests/apple-check.sh).
let appleStandIns = Context.environment["AIRDB_APPLE_STAND_INS"]

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let system: [Target.Dependency] =
  switch appleStandIns {
  case nil: [.target(name: "CLZ4", condition: .when(platforms: [.linux]))]
  case "darwin": ["Compression", "Darwin"]
  default: ["Compression"]
  }

// The adapter contract as the engine sees it: that of this package, or with the trait, AirDB's own.
let contract: [Target.Dependency] = [
  "AirDbContract",
  .product(name: "AirDbKit", package: "airdb", condition: .when(traits: ["UpstreamAirDbKit"])),
]

// The privacy manifest is for Apple platforms. Elsewhere a resource would have the package manager
// generate code that imports all of Foundation.
#if os(Linux)
  let resources: [Resource] = []
  let excluded = ["PrivacyInfo.xcprivacy"]
#else
  let resources: [Resource] = [.process("PrivacyInfo.xcprivacy")]
  let excluded: [String] = []
#endif

let package = Package(
  name: "airdb-log-store",
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [
    .library(name: "AirDbContract", targets: ["AirDbContract"]),
    .library(name: "AirDbLogStore", targets: ["AirDbLogStore"]),
    .library(name: "AirDbAdapterTesting", targets: ["AirDbAdapterTesting"]),
    .executable(name: "airdb-log", targets: ["airdb-log"]),
  ],
  traits: [
    .trait(
      name: "UpstreamAirDbKit",
      description: "Compiles the engine against AirDB's own AirDbKit instead of AirDbContract.")
  ],
  dependencies: [
    // Resolved only with the trait UpstreamAirDbKit; without it no package is fetched.
    .package(url: "https://github.com/untacorp/airdb", "0.0.1"..<"100.0.0")
  ],
  targets: [
    .systemLibrary(
      name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),
    .target(name: "CAirDbPlatform"),
    .target(name: "HlcText", swiftSettings: settings),
    .target(name: "AirDbContract", dependencies: ["HlcText"], swiftSettings: settings),
    .target(
      name: "AirDbLogStore",
      dependencies: contract + ["HlcText", "CAirDbPlatform"] + system, exclude: excluded,
      resources: resources, swiftSettings: settings),
    // The contract as checks for any adapter. Knows nothing of the engine.
    .target(name: "AirDbAdapterTesting", dependencies: contract, swiftSettings: settings),
    // Without access to what is `package`: the tool is a client of the library like any other.
    .executableTarget(
      name: "airdb-log", dependencies: ["AirDbLogStore"], packageAccess: false,
      swiftSettings: settings),
    .target(
      name: "TestSupport", dependencies: ["AirDbLogStore", "HlcText"], path: "Tests/TestSupport",
      swiftSettings: settings),
    // An example for authors of adapters: the kit in a program.
    .executableTarget(
      name: "check-adapter", dependencies: ["AirDbAdapterTesting", "AirDbContract"],
      path: "Tests/Examples/CheckAdapter", packageAccess: false, swiftSettings: settings),
    // What tests run in processes of their own: writers that are killed, and measurements.
    .target(name: "CHeapProbe", path: "Tests/CHeapProbe"),
    .executableTarget(
      name: "CrashWriter", dependencies: ["AirDbLogStore", "TestSupport", "CHeapProbe"],
      path: "Tests/CrashWriter", swiftSettings: settings),
    // Writes stores for the independent decoder to read, and the fixtures of the specification.
    .executableTarget(
      name: "StoreWriter", dependencies: ["AirDbLogStore", "HlcText", "TestSupport"],
      path: "Tests/StoreWriter", swiftSettings: settings),
    .testTarget(name: "HlcTextTests", dependencies: ["HlcText"], swiftSettings: settings),
    .testTarget(
      name: "AirDbContractTests", dependencies: ["AirDbContract"], swiftSettings: settings),
    .testTarget(
      name: "AirDbLogStoreTests",
      dependencies: ["AirDbLogStore", "HlcText", "CAirDbPlatform", "TestSupport", "CrashWriter"],
      swiftSettings: settings),
    .testTarget(
      name: "ToolTests", dependencies: ["airdb-log", "check-adapter", "AirDbLogStore"],
      packageAccess: false, swiftSettings: settings),
    .testTarget(
      name: "DocumentationTests",
      dependencies: ["AirDbLogStore", "AirDbAdapterTesting", "TestSupport", "check-adapter"],
      swiftSettings: settings),
    .testTarget(
      name: "CodecTests", dependencies: ["AirDbLogStore", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "AirDbAdapterTestingTests",
      dependencies: ["AirDbAdapterTesting", "AirDbLogStore", "TestSupport"],
      swiftSettings: settings),
    .testTarget(name: "TidyTests", swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)

#if os(Linux)
  // The adapters of AirDB's guides, over stand-ins that bear the names of the modules that they
  // import. On Apple platforms two of these names are the system's.
  for name in ["GRDB", "CoreData", "SwiftData"] {
    package.targets.append(
      .target(name: name, path: "Tests/GuideAdapters/StandIns/\(name)", swiftSettings: settings))
  }
  package.targets += [
    .target(
      name: "GuideAdapters", dependencies: ["AirDbContract", "GRDB", "CoreData", "SwiftData"],
      path: "Tests/GuideAdapters/Adapters"),
    .testTarget(
      name: "GuideAdaptersTests",
      dependencies: ["GuideAdapters", "AirDbAdapterTesting", "AirDbLogStore", "TestSupport"],
      swiftSettings: settings),
  ]
#endif

// Benchmarks of the engine's parts, which only this package can reach. Everything else about
// benchmarks is a package of its own, in the folder Benchmarks.
if Context.environment["AIRDB_MICRO_BENCHMARKS"] != nil {
  package.targets.append(
    .executableTarget(
      name: "micro-benchmarks", dependencies: ["AirDbLogStore", "HlcText", "TestSupport"],
      path: "Benchmarks/Micro", swiftSettings: settings))
}

// With this variable set there are the engine and its tests alone, for a sanitizer, which needs a
// build of its own.
let engineAlone = Context.environment["AIRDB_ENGINE_ALONE"] != nil

if appleStandIns != nil || engineAlone {
  // Nothing is built that is not looked at.
  let engine = ["HlcText", "AirDbContract", "CAirDbPlatform", "AirDbLogStore"]
  let tests =
    engineAlone
    ? ["CLZ4", "CHeapProbe", "CrashWriter", "HlcTextTests", "AirDbLogStoreTests"] : []
  let kept = engine + ["TestSupport", "CodecTests"] + tests
  package.targets.removeAll { !kept.contains($0.name) }
  package.products = []
}
if appleStandIns != nil {
  package.targets += [
    .target(
      name: "Compression", path: "Tests/AppleStandIns/Compression",
      linkerSettings: [.linkedLibrary("lz4")]),
    .testTarget(
      name: "CompressionTests", dependencies: ["Compression"],
      path: "Tests/AppleStandIns/CompressionTests"),
  ]
}
if appleStandIns == "darwin" {
  package.targets += [
    .target(name: "CDarwin", path: "Tests/AppleStandIns/CDarwin"),
    .target(name: "Darwin", dependencies: ["CDarwin"], path: "Tests/AppleStandIns/Darwin"),
    .executableTarget(
      name: "apple-exercise", dependencies: ["AirDbLogStore", "Darwin"],
      path: "Tests/AppleStandIns/Exercise", swiftSettings: settings),
  ]
}
