#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation

  /// Stores with what is hard to print.
  enum SampleStore {
    /// Ascending by timestamp; one of each key.
    static let records: [ChangeRecord] = [
      record(1, "notes", "plain", .insert, "Hello"),
      record(2, "notes", "quotes \" \\ / {}", .update, "line\nline\r\ttab \u{0}\u{1F}\u{7F}"),
      record(3, "notes", "\u{1B}[2J\u{1B}]0;title\u{7}", .insert, "\u{9B}31m \u{202E}abc\u{2066}"),
      record(4, "e\u{301}", "decomposed", .insert, "é and e\u{301}"),
      record(4, "\u{E9}", "composed", .insert, "日本語 🎉 \u{2028}\u{FEFF}"),
      record(4, "", "", .delete, ""),
      binary(5, "notes", "bytes", [0xFF, 0x00, 0x80, 0xC3]),
      binary(6, "notes", "surrogate", [0xED, 0xA0, 0x80]),
      signed(7, "notes", "signed", key: [1, 2, 3], signature: []),
      signed(8, "notes", "half signed", key: nil, signature: [0xFF]),
      record(9, "notes", "-dash", MutationType(rawValue: -7)!, "open type"),
      record(10, "other", "gone", .delete, ""),
    ]

    static func record(
      _ time: Int, _ collection: String, _ id: String, _ type: MutationType, _ payload: String
    ) -> ChangeRecord {
      ChangeRecord(
        id: id, collection: collection, type: type, payload: Data(payload.utf8),
        hlcTimestamp: timestamp(time))
    }

    private static func binary(
      _ time: Int, _ collection: String, _ id: String, _ payload: [UInt8]
    ) -> ChangeRecord {
      var record = record(time, collection, id, .insert, "")
      record.payload = Data(payload)
      return record
    }

    private static func signed(
      _ time: Int, _ collection: String, _ id: String, key: [UInt8]?, signature: [UInt8]?
    ) -> ChangeRecord {
      var record = record(time, collection, id, .insert, "signed")
      record.authorPublicKey = key.map { Data($0) }
      record.signature = signature.map { Data($0) }
      return record
    }

    static func timestamp(_ time: Int) -> String { "\(1_700_000_000_000 + time)-0000-node" }

    /// Makes a store with records, and closes it.
    @discardableResult
    static func make(
      in folder: TemporaryFolder, _ records: [ChangeRecord] = records,
      configuration: Configuration = Configuration()
    ) throws -> String {
      let path = folder.path("store ü")
      let store = try ChangeStore(at: path, configuration: configuration)
      try store.applyAndWait(records)
      try store.close()
      return path
    }

    /// Records whose payloads do not compress, so many that closing seals them.
    static func manyRecords() -> [ChangeRecord] {
      var state: UInt64 = 1
      return (0..<2_000).map { index in
        var payload = Data()
        for _ in 0..<25 {
          state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          withUnsafeBytes(of: state) { payload.append(contentsOf: $0) }
        }
        return ChangeRecord(
          id: "record \(index)", collection: "many", type: .insert, payload: payload,
          hlcTimestamp: timestamp(index))
      }
    }
  }
#endif
