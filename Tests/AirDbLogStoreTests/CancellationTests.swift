import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// What the documentation says of cancelled tasks, of every call.
@Suite struct CancellationTests {
  private struct Value: Codable, Sendable { var text = "" }

  /// A call by its name. One that runs is a call too many.
  struct Call: CustomTestStringConvertible {
    var name: String
    var body: @Sendable (ChangeStore) async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (ChangeStore) async throws -> Void) {
      (self.name, self.body) = (name, body)
    }

    var testDescription: String { name }
  }

  private static let key = RecordKey(collection: "c", id: "a")

  static let calls: [Call] = [
    Call("apply") { try await $0.apply([change("b", time(9))]) },
    Call("applyChanges") { try await $0.applyChanges([change("b", time(9))]) },
    Call("put") { try await $0.put(Data(), forKey: key) },
    Call("delete") { try await $0.delete(key) },
    Call("update") { try await $0.update(key) { $0 = nil } },
    Call("write") { try await $0.write([.delete(key)]) },
    Call("put") { try await $0.collection("v", of: Value.self).put(Value(), forId: "a") },
    Call("delete") { try await $0.collection("c", of: Value.self).delete("a") },
    Call("update") { try await $0.collection("v", of: Value.self).update("a") { $0 = Value() } },
    Call("deliver") { try await $0.consumer(named: "x").deliver { _ in } },
    Call("deliver") { try await $0.consumer(named: "x").deliver(following: true) { _ in } },
    Call("merge") { try await $0.consumer(named: "x").merge(into: ChangeStore.inMemory()) },
    Call("rebuild") { try await $0.consumer(named: "x").rebuild { _ in } },
    Call("migrate") { _ = try await $0.migrate(from: filled()) },
    Call("migrate") { _ = try await $0.migrate(to: ChangeStore.inMemory()) },
    Call("converge") { _ = try await $0.converge(with: filled()) },
    Call("next") { for try await _ in $0.commitSequence() {} },
    Call("next") { for try await _ in $0.commitSequence(following: true) {} },
  ]

  private static func filled() throws -> ChangeStore {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("b", time(2))])
    return store
  }

  private static func whenCancelled<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await body()
    }
    return try await task.value
  }

  @Test(arguments: calls)
  func `An asynchronous call of a cancelled task throws CancellationError, having done nothing`(
    call: Call
  ) async throws {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("a", time(1))])
    _ = try store.consumer(named: "x")
    let end = try store.position
    await #expect(throws: CancellationError.self) {
      try await Self.whenCancelled { try await call.body(store) }
    }
    #expect(try store.position == end)
    #expect(try store.consumer(named: "x").position() == nil)
  }

  /// Sequences of what is: none of them has a last element that a loop could lack.
  @Test func `A sequence that has no end of its own ends`() async throws {
    let store = try ChangeStore.inMemory()
    try store.applyAndWait([change("a", time(1))])
    let counts = try await Self.whenCancelled {
      var counts = [0, 0, 0]
      for await _ in store.positions { counts[0] += 1 }
      for try await _ in store.liveRecords(in: "c") { counts[1] += 1 }
      for try await _ in store.collection("v", of: Value.self).liveEntries() { counts[2] += 1 }
      return counts
    }
    #expect(counts == [0, 0, 0])
  }

  @Test func `A call that is not asynchronous and looks has a code for it`() async throws {
    let store = try ChangeStore(path: "/store", .tiny, platform: MemoryPlatform())
    for index in 0..<60 { try store.applyAndWait([change("\(index % 7)", time(index))]) }
    let calls: [@Sendable () throws -> Void] = [
      { _ = try store.verify() }, { _ = try store.compact() },
    ]
    for call in calls {
      let error = try await Self.whenCancelled { await storeError { try call() } }
      #expect(error?.code == .cancelled)
    }
  }

  @Test func `Reads, and calls that wait, do not look`() async throws {
    let store = try ChangeStore.inMemory()
    let count = try await Self.whenCancelled {
      try store.applyAndWait([change("a", time(1))])
      try store.putAndWait(Data(), forKey: Self.key)
      try store.updateAndWait(Self.key) { $0 = Data([1]) }
      try store.deleteAndWait(Self.key)
      _ = try await store.getLatestHlc()
      return try await store.getChangesSince(sinceHlcTimestamp: nil, limit: 10).count
    }
    #expect(count == 1)
  }

  /// A call that is added later has to be put into one of the lists above.
  @Test func `No asynchronous call of the library is forgotten`() throws {
    let folder = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Sources/AirDbLogStore/API")
    var found: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
      for part in text.split(separator: "public ").dropFirst() {
        let declaration = part.prefix { $0 != "{" }
        guard let start = declaration.range(of: "func "), declaration.contains(" async ") else {
          continue
        }
        let isModified = declaration[..<start.lowerBound].contains("\n")
        if !isModified {
          found.insert(String(declaration[start.upperBound...].prefix { $0.isLetter }))
        }
      }
    }
    let reads: Set = ["getChangesSince", "getLatestHlc"]
    #expect(found == Set(Self.calls.map(\.name)).union(reads))
  }
}
