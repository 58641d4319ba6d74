#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension AdapterConformance.Check {
  /// A record is identified by two texts, not by one that is made of them.
  public static let keyPairs = Self(
    "key-pairs",
    title: "A record is identified by the pair of its collection and its id",
    explanation: """
      "a:b" and "c" are another pair than "a" and "b:c". Keys that are put together with a separator \
      collide, and one record overwrites the other. Either text may be empty.
      """
  ) { context in
    let pairs = [":", "/", "\u{0}", "-", "|", ",", "\u{1F}", "."].flatMap { separator in
      [("a\(separator)b", "c"), ("a", "b\(separator)c")]
    }
    let others = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("", ""), ("c", "a:b")]
    return .run([Script(keys: pairs, context), Script(keys: others, context)])
  }

  /// Ids and collections are compared by their bytes.
  public static let keyBytes = Self(
    "key-bytes",
    title: "Ids and collections are different if any byte is",
    explanation: """
      Peers exchange bytes. Two spellings of "é" are two ids, although a Swift `String`, and some \
      databases, call them equal; so are texts that differ in case, in white space at the end, or \
      behind a NUL.
      """
  ) { context in
    let texts = [
      "\u{E9}", "e\u{301}", "\u{212B}", "\u{C5}", "A\u{30A}", "\u{1112}\u{1161}\u{11AB}",
      "\u{D55C}",
      "a", "A", "a ", " a", "a\u{0}", "a\u{0}b", "\u{0}", "a\n", "1", "01", "1.0", "\u{FEFF}a",
      "\u{FEFF}", "a\r\n", "\u{FFFD}", "\u{1F469}\u{200D}\u{1F680}", "a%", "a_", "a'", "a\"", "a\\",
      "null", "NULL",
    ]
    return .run([
      Script(keys: texts.map { ("notes", $0) }, context),
      Script(keys: texts.map { ($0, "id") }, context),
    ])
  }

  /// Every field comes back byte for byte.
  public static let fields = Self(
    "fields",
    title: "Every field comes back byte for byte",
    explanation: """
      An absent key or signature is not an empty one. Payloads hold any bytes, or none, on \
      insertions and deletions alike: what looks like text may begin with a mark of the byte order, \
      hold NUL or half a character, or end in CR LF, and must not be read and written as text. The \
      timestamp is the text that came in, and not another spelling of it.
      """
  ) { context in
    var changes: [ChangeRecord] = []
    func add(_ type: MutationType, payload: Data, key: Data?, signature: Data?) {
      let number = changes.count
      changes.append(
        ChangeRecord(
          id: "id\(number)", collection: "notes", type: type, payload: payload,
          hlcTimestamp: context.clock.text(number + 1), authorPublicKey: key, signature: signature))
    }
    // Absent and empty, in each field by itself and in both.
    for (key, signature) in [(nil, nil), (nil, Data()), (Data(), nil), (Data(), Data())] {
      for type in [MutationType.insert, .update, .delete] {
        add(type, payload: Data([1]), key: key, signature: signature)
      }
    }
    for content in context.contents {
      for type in [MutationType.insert, .update, .delete] {
        add(type, payload: content, key: nil, signature: nil)
      }
      add(.insert, payload: Data([1]), key: content, signature: nil)
      add(.update, payload: Data([2]), key: nil, signature: content)
      add(.delete, payload: Data(), key: content, signature: content)
    }
    // Bytes that are a part of others, as a message that is taken apart yields them.
    let whole = Data(0...99)
    add(.insert, payload: whole[10..<20], key: whole[20..<52], signature: whole[90...])
    let spelled = context.clock.spellings(2_000).map { text in
      Script([.apply([context.record("a", at: text)]), .readAll, .latest])
    }
    let some = stride(from: 0, to: changes.count, by: 6).map { start in
      Script([.apply(Array(changes[start...].prefix(6))), .readAll])
    }
    return .run(some + [Script(changes.map { .apply([$0]) } + [.readAll])] + spelled)
  }

  /// Large fields come back whole.
  public static let largeFields = Self(
    "large-fields",
    title: "Large payloads and long ids come back whole",
    explanation: """
      The sizes are those of the options: a payload of 1 MiB, an id of 1 KiB. Two long ids that differ \
      only in their last byte are two records.
      """
  ) { context in
    func bytes(_ count: Int, seed: UInt64) -> Data {
      var random = SeededGenerator(seed: seed)
      let words = (0..<(count + 7) / 8).map { _ in random.next().littleEndian }
      return words.withUnsafeBytes { Data($0.prefix(count)) }
    }
    let size = max(0, context.options.largestPayload)
    let payloads = Set([size, size / 2, min(size, 65_536), min(size, 65_535)]).sorted()
    let large = payloads.enumerated().map { index, count in
      ChangeRecord(
        id: "id\(index)", collection: "notes", type: .insert,
        payload: bytes(count, seed: UInt64(index)), hlcTimestamp: context.clock.text(index + 1),
        authorPublicKey: nil, signature: nil)
    }
    let start = String(repeating: "i", count: max(0, context.options.longestId - 1))
    let long = ["a", "b"].enumerated().map { context.record(start + $1, $0 + 1) }
    return .run([
      Script([.apply(large), .readAll]), Script(large.map { .apply([$0]) } + [.sweep(limit: 1)]),
      Script([.apply(long), .readAll]), Script([.apply(long), .apply(long.reversed()), .readAll]),
    ])
  }

  /// A type without a name is kept.
  public static let unknownTypes = Self(
    "unknown-types",
    title: "A change of a type that has no name is kept, with its raw value",
    explanation: """
      A newer version of AirDB may send types that this one does not know. A change that is dropped, or \
      whose type is taken for another, is lost to every peer that gets its changes from here. Skipped \
      where `MutationType` is closed.
      """
  ) { context in
    let types = context.options.unknownTypes.compactMap { MutationType(rawValue: $0) }
    guard !types.isEmpty else { return .skip("There are no types without a name.") }
    let changes = types.enumerated().map { context.record("id\($0)", $0 + 1, type: $1) }
    return .run(
      changes.map { Script([.apply([$0]), .readAll, .latest]) } + [
        Script([.apply(changes), .sweep(limit: 1)])
      ])
  }
}

extension Script {
  /// Stores records with keys that are all different, one by one, and then a newer version of every
  /// other one.
  fileprivate init(keys: [(collection: String, id: String)], _ context: PlanContext) {
    let first = keys.enumerated().map { index, key in
      context.record(
        key.id, at: context.clock.text(index + 1), collection: key.collection,
        content: "key \(index)")
    }
    let newer = keys.enumerated().filter { $0.offset % 2 == 0 }.map { index, key in
      context.record(
        key.id, at: context.clock.text(1_000 + index), collection: key.collection,
        type: .update, content: "key \(index) again")
    }
    self.init(first.map { .apply([$0]) } + [.readAll, .apply(newer), .readAll])
  }
}
