import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// Collections of values: their coding, and what does not decode.
@Suite struct RecordCollectionTests {
  private struct Note: Codable, Hashable, Sendable {
    var title: String
    var count = 0
    var rating: Double?
    var date: Date?
    var image: Data?
    var link: URL?
  }

  @Test func `Values come back, by id, by prefix and by page, without deletions`() async throws {
    let notes = try ChangeStore.inMemory(configuration: .tiny).collection("notes", of: Note.self)
    #expect(try notes.value(forId: "a1") == nil)
    for id in ["a1", "a2", "a3", "a4", "b1"] { try await notes.put(Note(title: id), forId: id) }
    try await notes.delete("a2")
    try await notes.delete("absent")
    #expect(try notes.value(forId: "a1") == Note(title: "a1"))
    #expect(try notes.value(forId: "a2") == nil)
    #expect(try notes.entries().map(\.id) == ["a1", "a3", "a4", "b1"])
    #expect(try notes.entries(limit: 2).map(\.value.title) == ["a1", "a3"])
    #expect(try notes.entries(idPrefix: "a", after: "a1", limit: 2).map(\.id) == ["a3", "a4"])
    #expect(try notes.entries(limit: 0).isEmpty)
    #expect(try await notes.update("a1") { $0?.count += 1 }?.count == 1)
    #expect(try await notes.update("a1") { $0 = nil } == nil)
    #expect(try await notes.update("new") { $0 = Note(title: "n") } == Note(title: "n"))
    #expect(try notes.entries().map(\.id) == ["a3", "a4", "b1", "new"])
  }

  /// What is stored today must be read by every later version, and written the same.
  @Test func `JSON is as it has always been`() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("notes", of: Note.self)
    let note = Note(
      title: "é/\"\n", count: -1, rating: 0.5, date: Date(timeIntervalSinceReferenceDate: 700.25),
      image: Data([0, 255]), link: URL(string: "https://example.org/a"))
    let record = try await notes.put(note, forId: "1")
    #expect(
      String(decoding: record.payload, as: UTF8.self)
        == #"{"count":-1,"date":700.25,"image":"AP8=","link":"https://example.org/a","rating":0.5,"title":"é/\"\n"}"#
    )
    #expect(try notes.value(forId: "1") == note)
    let numbers = store.collection("numbers", of: Int.self)
    #expect(try await numbers.put(7, forId: "1").payload == Data("7".utf8))
    #expect(try numbers.value(forId: "1") == 7)
  }

  @Test func `A coding of the app is used instead`() async throws {
    let store = try ChangeStore.inMemory()
    let coding = PayloadCoding<Int?>(
      encode: { Data(String($0 ?? -1).utf8) }, decode: { Int(String(decoding: $0, as: UTF8.self)) })
    let numbers = store.collection("c", coding: coding)
    try await numbers.put(3, forId: "1")
    try await store.apply([change("2", time(1), payload: "no number")])
    #expect(try numbers.entries().map(\.value) == [3, nil])
  }

  @Test func `What does not decode is a typed error that names the record`() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("c", of: Note.self)
    try await notes.put(Note(title: "good"), forId: "a")
    var live = notes.liveEntries().makeAsyncIterator()
    #expect(try await live.next()?.map(\.value.title) == ["good"])
    try await store.apply([change("bad", time(1), payload: "{}")])
    let calls: [() async throws -> Void] = [
      { _ = try notes.value(forId: "bad") }, { _ = try notes.entries() },
      {
        try await notes.update("bad") { _ in Issue.record("called with a value that is none") }
      },
    ]
    for call in calls {
      let error = await storeError { try await call() }
      #expect(error?.code == .decodingFailed && error?.message.contains("\"bad\"") == true)
    }
    #expect(await storeError { _ = try await live.next() }?.code == .decodingFailed)
    #expect(await storeError { _ = try await live.next() }?.code == .decodingFailed)
    #expect(try notes.value(forId: "a") == Note(title: "good"))
    // Put over it, it is a value again, for those who watch, too.
    try await notes.put(Note(title: "mended"), forId: "bad")
    #expect(try await live.next()?.map(\.value.title) == ["good", "mended"])
    // What was superseded before anybody looked need not decode.
    try await store.apply([change("bad", "9999999999998-0", payload: "{}")])
    try await store.apply([change("bad", "9999999999998-1", payload: #"{"title":"t","count":1}"#)])
    #expect(try await live.next()?.map(\.value.title) == ["good", "t"])
  }

  @Test func `What cannot be encoded is a typed error, and nothing is stored`() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("c", of: Note.self)
    let bad = Note(title: "bad", rating: .nan)
    #expect(await storeError { try await notes.put(bad, forId: "a") }?.code == .encodingFailed)
    #expect(await storeError { try await notes.update("a") { $0 = bad } }?.code == .encodingFailed)
    #expect(try store.position == nil)
  }

  @Test func `An update that leaves the value as it is writes nothing`() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("c", of: Note.self)
    // Another spelling of the same value, with a key that this version does not know.
    let payload = #"{ "title" : "t", "count" : 1, "later" : true }"#
    try await store.apply([change("a", time(1), payload: payload)])
    let end = try store.position
    #expect(try await notes.update("a") { $0?.count += 0 } == Note(title: "t", count: 1))
    #expect(try store.position == end)
    try await notes.update("a") { $0?.count += 1 }
    #expect(try notes.value(forId: "a") == Note(title: "t", count: 2))
  }

  @Test func `Concurrent updates of a value count right`() async throws {
    let notes = try ChangeStore.inMemory().collection("c", of: Note.self)
    try await withThrowingTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<20 {
            try await notes.update("a") { note in
              note = note ?? Note(title: "t")
              note?.count += 1
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try notes.value(forId: "a")?.count == 160)
  }
}
