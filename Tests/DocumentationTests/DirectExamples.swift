import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The examples about a store that is used without AirDB. See ``ExampleTests``.
struct DirectExamples {
  private struct Note: Codable {
    var title: String
    var isDone = false
  }

  @Test func installation() throws {
    try withTemporaryDirectory { path in
      let support = URL(fileURLWithPath: path)
      // example: InstallationId
      var configuration = Configuration()
      configuration.clockNode = try InstallationId(keptAt: support.path + "/installation").text
      let store = try ChangeStore(at: support.path + "/store", configuration: configuration)
      // end
      try store.close()
    }
  }

  @Test func collection() async throws {
    let store = try ChangeStore.inMemory()
    // example: RecordCollection
    struct Note: Codable {
      var title: String
      var isDone = false
    }
    let notes = store.collection("notes", of: Note.self)
    try await notes.put(Note(title: "Buy milk"), forId: "1")
    try await notes.update("1") { note in note?.isDone = true }
    let note = try notes.value(forId: "1")
    // end
    #expect(note?.title == "Buy milk" && note?.isDone == true)
  }

  @Test func coding() async throws {
    let store = try ChangeStore.inMemory()
    // example: PayloadCoding
    let text = PayloadCoding<String>(
      encode: { Data($0.utf8) },
      decode: { String(decoding: $0, as: UTF8.self) })
    let titles = store.collection("titles", coding: text)
    // end
    try await titles.put("Milk", forId: "1")
    #expect(try titles.value(forId: "1") == "Milk")
  }

  @Test func batch() async throws {
    let store = try ChangeStore.inMemory()
    let text = Data("Dear".utf8)
    try await store.put(text, forKey: RecordKey(collection: "drafts", id: "7"))
    // example: WriteTogether
    let draft = RecordKey(collection: "drafts", id: "7")
    let letter = RecordKey(collection: "letters", id: "7")
    try await store.write([.put(text, forKey: letter), .delete(draft)])
    // end
    #expect(try store.record(forKey: letter)?.payload == text)
    #expect(try store.record(forKey: draft)?.type == .delete)
  }

  @Test func update() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("notes", of: Note.self)
    // example: Update
    try await notes.update("1") { note in
      note = note ?? Note(title: "")
      note?.title += "!"
    }
    // end
    #expect(try notes.value(forId: "1")?.title == "!")
  }

  @Test func live() async throws {
    let store = try ChangeStore.inMemory()
    let notes = store.collection("notes", of: Note.self)
    try await notes.put(Note(title: "Milk"), forId: "1")
    let shown = Locked<[String]>([])
    @Sendable func show(_ entries: [RecordCollection<Note>.Entry]) {
      shown.withLock { $0 += entries.map(\.value.title) }
      // No more is to come.
      try? store.close()
    }
    // example: LiveCollection
    for try await entries in notes.liveEntries() {
      show(entries)
    }
    // end
    #expect(shown.withLock { $0 } == ["Milk"])
  }

  @Test func readme() async throws {
    let store = try ChangeStore.inMemory()
    // example: README-direct
    struct Note: Codable {
      var title: String
      var isDone = false
    }
    let notes = store.collection("notes", of: Note.self)
    try await notes.put(Note(title: "Buy milk"), forId: "1")
    try await notes.update("1") { note in note?.title += ", and bread" }
    // end
    #expect(try notes.value(forId: "1")?.title == "Buy milk, and bread")
  }
}
