import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Indexes and liveness are derived: lost or damaged, they are made again from the log.
@Suite struct StoreRepairTests {
  /// A closed store with several sealed segments, and what it holds.
  private func withClosedStore(
    _ body: (_ path: String, _ model: ReferenceModel) async throws -> Void
  ) async throws {
    try await withTemporaryDirectory { root in
      let path = root + "/store"
      var model = ReferenceModel()
      let store = try ChangeStore(at: path, configuration: .tiny)
      var generator = RecordGenerator(seed: 21)
      for _ in 0..<30 {
        let batch = generator.batch(4)
        try await store.apply(batch)
        try model.apply(batch)
      }
      try store.close()
      try await body(path, model)
    }
  }

  private func names(_ path: String, _ suffix: String) throws -> [String] {
    try DirectoryContents(path).files.keys.filter { $0.hasSuffix(suffix) }.sorted()
  }

  private func configuration(
    _ repairs: Locked<[String]>, isReadOnly: Bool = false
  ) -> Configuration {
    var configuration = Configuration.tiny
    configuration.isReadOnly = isReadOnly
    configuration.eventHandler = { event in
      if case .repaired(let file, _) = event { repairs.withLock { $0.append(file) } }
    }
    return configuration
  }

  /// How a file is damaged.
  enum Damage: CaseIterable, Sendable {
    case removed, empty, cut, cutInHeader, flippedFirst, flippedMiddle, flippedLast, zeroed, longer

    func apply(to path: String) throws {
      if self == .removed { return try SystemPlatform().remove(path) }
      var bytes = try DirectoryContents.bytes(path)
      switch self {
      case .removed: break
      case .empty: bytes = []
      case .cut: bytes.removeLast(bytes.count / 2)
      case .cutInHeader: bytes.removeLast(bytes.count - 10)
      case .flippedFirst: bytes[0] ^= 1
      case .flippedMiddle: bytes[bytes.count / 2] ^= 0x10
      case .flippedLast: bytes[bytes.count - 1] ^= 0x80
      case .zeroed: bytes = [UInt8](repeating: 0, count: bytes.count)
      case .longer: bytes += [1, 2, 3]
      }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
  }

  @Test(arguments: ["shorter", "empty", "zeros", "garbage"])
  func `The length of a sealed segment counts, and what is behind it is only looked at by a check`(
    change: String
  ) async throws {
    try await withClosedStore { path, model in
      for name in try names(path, ".segment").dropLast() {
        let file = path + "/" + name
        let sound = try DirectoryContents.bytes(file)
        var bytes = sound
        switch change {
        case "shorter": bytes.removeLast()
        case "empty": bytes = []
        case "zeros": bytes += [UInt8](repeating: 0, count: 5_000)
        default: bytes += [UInt8](repeating: 0, count: 77) + [9]
        }
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        let before = try DirectoryContents(path)
        for isReadOnly in [true, false] {
          let repairs = Locked<[String]>([])
          var configuration = configuration(repairs, isReadOnly: isReadOnly)
          configuration.cleaning = .off
          if bytes.count < sound.count {
            let error = await storeError {
              _ = try ChangeStore(at: path, configuration: configuration)
            }
            #expect(error?.code == .corrupt && error?.file == file)
            #expect(error?.offset == UInt64(bytes.count))
          } else {
            let store = try ChangeStore(at: path, configuration: configuration)
            #expect(try store.changes(limit: .max).records == model.feed.records)
            let problems = try store.verify().problems
            #expect(problems.map(\.file) == (change == "garbage" ? [file] : []))
            #expect(problems.allSatisfy { !$0.isDerived && $0.offset == UInt64(sound.count) })
            try store.close()
          }
          #expect(try DirectoryContents(path) == before)
        }
        try Data(sound).write(to: URL(fileURLWithPath: file))
      }
    }
  }

  @Test(arguments: Damage.allCases)
  func `A damaged liveness file is made again`(damage: Damage) async throws {
    try await withClosedStore { path, model in
      let file = path + "/" + (try #require(try names(path, ".liveness").first))
      try damage.apply(to: file)
      for isReadOnly in [true, false] {
        let repairs = Locked<[String]>([])
        let store = try ChangeStore(
          at: path, configuration: configuration(repairs, isReadOnly: isReadOnly))
        try await expectEqual(store, model)
        #expect(repairs.withLock { $0 } == [file])
        try store.close()
      }
      // A session that writes leaves a sound one.
      let store = try ChangeStore(at: path, configuration: .tiny)
      var later = model
      let record = change("later", time(1 << 30))
      try await store.apply([record])
      try later.apply([record])
      try store.close()
      let repairs = Locked<[String]>([])
      let again = try ChangeStore(at: path, configuration: configuration(repairs))
      try await expectEqual(again, later)
      #expect(repairs.withLock { $0 }.isEmpty)
    }
  }

  @Test(arguments: Damage.allCases)
  func `A damaged index is made again`(damage: Damage) async throws {
    try await withClosedStore { path, model in
      let indexes = try names(path, ".index").map { path + "/" + $0 }
      #expect(indexes.count > 3)
      let sound = try DirectoryContents(path)
      for file in indexes { try damage.apply(to: file) }
      let damaged = try DirectoryContents(path)
      for isReadOnly in [true, false] {
        let repairs = Locked<[String]>([])
        let store = try ChangeStore(
          at: path, configuration: configuration(repairs, isReadOnly: isReadOnly))
        try await expectEqual(store, model, isRepaired: !isReadOnly && damage != .flippedLast)
        // The last page holds nodes, which are not always asked for.
        #expect(damage == .flippedLast || Set(repairs.withLock { $0 }) == Set(indexes))
        if isReadOnly { #expect(try DirectoryContents(path) == damaged) }
        try store.close()
      }
      if damage != .flippedLast {
        // The same index as before: it depends on the log alone.
        let repaired = try DirectoryContents(path)
        #expect(repaired.files.mapValues(\.bytes) == sound.files.mapValues(\.bytes))
      }
      let repairs = Locked<[String]>([])
      let again = try ChangeStore(at: path, configuration: configuration(repairs))
      try await expectEqual(again, model, isRepaired: damage != .flippedLast)
      #expect(repairs.withLock { $0 }.isEmpty)
    }
  }

  @Test func `Indexes of other segments and of another state are not believed`() async throws {
    try await withClosedStore { path, model in
      let indexes = try names(path, ".index").map { path + "/" + $0 }
      let first = try DirectoryContents.bytes(indexes[0])
      let second = try DirectoryContents.bytes(indexes[1])
      // Swapped, and one that is sound in itself but says something else.
      try Data(second).write(to: URL(fileURLWithPath: indexes[0]))
      try Data(first).write(to: URL(fileURLWithPath: indexes[1]))
      var third = try DirectoryContents.bytes(indexes[2])
      let id = UInt64(third[32])
      third[48] ^= 1
      third[80] ^= 1
      let checksum = third[4..<4_096].withUnsafeBytes {
        Checksum.bound(.page, file: id, offset: 0, $0)
      }
      third.withUnsafeMutableBytes {
        $0.storeBytes(of: checksum.littleEndian, as: UInt32.self)
      }
      try Data(third).write(to: URL(fileURLWithPath: indexes[2]))
      let repairs = Locked<[String]>([])
      let store = try ChangeStore(at: path, configuration: configuration(repairs))
      try await expectEqual(store, model)
      #expect(Set(repairs.withLock { $0 }) == Set(indexes[..<3]))
    }
  }

  @Test func `Everything that is derived may be lost at once, and writing goes on`() async throws {
    try await withClosedStore { path, model in
      var model = model
      for name in try names(path, ".index") + names(path, ".liveness") {
        try SystemPlatform().remove(path + "/" + name)
      }
      // The first call is a write, which needs both.
      let store = try ChangeStore(at: path, configuration: .tiny)
      var generator = RecordGenerator(seed: 22)
      for _ in 0..<20 {
        let batch = generator.batch(3)
        let result = try await store.apply(batch)
        let expected = try model.apply(batch)
        #expect(result.outcome == expected)
      }
      try await expectEqual(store, model)
    }
  }
}

extension ApplyResult {
  /// The counts in the terms of the model.
  var outcome: ReferenceModel.Outcome {
    ReferenceModel.Outcome(
      accepted: accepted, superseded: superseded, conflictingTies: conflictingTies)
  }
}
