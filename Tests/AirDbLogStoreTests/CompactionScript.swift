import AirDbLogStore
import TestSupport

/// A scripted run with compactions, and with commits in the middle of them.
struct CompactionScript: Sendable {
  enum Step: Sendable {
    case step(EngineScript.Step)
    case compact
    /// Compacts, and at the first call of the compaction that a moment describes, on its own thread,
    /// commits a batch.
    case compactAmid([(moment: Moment, batch: [ChangeRecord])])
    /// Time goes by, so that what is there is older than any retention.
    case age
  }

  /// A call of a compaction.
  struct Moment: Sendable {
    var kind: SimulatedCall.Kind
    var suffix: String

    /// The log is being made durable as far as the compaction relies on it.
    static let inSync = Moment(kind: .synchronize, suffix: ".segment")
    /// The snapshot of what is superseded has been taken, nothing has been copied.
    static let beforeCopy = Moment(kind: .create, suffix: ".segment")
    /// All has been copied.
    static let afterCopy = Moment(kind: .create, suffix: ".index.new")
    /// What goes into the new manifest has been settled.
    static let inCheckpoint = Moment(kind: .synchronizeDirectory, suffix: "")
    /// The new manifest has been written, the old one is still in force.
    static let beforeExchange = Moment(kind: .rename, suffix: "MANIFEST")

    func matches(_ call: SimulatedCall) -> Bool {
      call.kind == kind && (call.path.hasSuffix(suffix) || call.target?.hasSuffix(suffix) == true)
    }
  }

  var name: String
  var steps: [Step]
  /// Whether tombstones are purged as soon as time has gone by.
  var isPurging = false

  init(_ name: String, _ durability: Durability, _ steps: [Step]) {
    self.name = "\(name), \(durability)"
    self.steps = [.step(.open(durability))] + steps
  }

  /// The same without steps, for what the engine's scripts are used for.
  var engineScript: EngineScript {
    var script = EngineScript(name, [])
    if isPurging {
      script.configuration.tombstoneRetention = .zero
      script.configuration.resurrections = .refuse
      // A purge that nobody asked for would not be in the trace.
      script.configuration.cleaning = .off
    }
    return script
  }
}

extension CompactionScript.Step {
  static let pump = Self.step(.pump)

  static func apply(_ batch: ChangeRecord...) -> Self { .step(.apply(batch)) }

  static func update(_ ids: String, _ time: Int, _ payload: Int = 40) -> Self {
    .step(.apply(CompactionScript.records(ids, time, payload)))
  }

  static func delete(_ ids: String, _ time: Int) -> Self {
    .step(.apply(CompactionScript.records(ids, time, 0, .delete)))
  }
}

extension CompactionScript {
  /// A key that no script has.
  static let absent = (collection: "notes", id: "never stored")

  /// A record for each letter.
  static func records(
    _ ids: String, _ time: Int, _ payload: Int = 40, _ type: MutationType = .update
  ) -> [ChangeRecord] {
    ids.enumerated().map { EngineScript.record("\($1)", time + $0, payload, type: type) }
  }

  /// Compactions of all kinds: of garbage, of deletions, of what was compacted before, in a second
  /// session and after a session that just ended; a seal after a compaction.
  static func life(_ durability: Durability) -> CompactionScript {
    CompactionScript(
      "compactions", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .update("ghij", 30), .delete("bg", 40), .pump,
        .update("a", 50), .pump, .compact, .pump,
        // Marks of the tail on the output; then the tail is sealed behind it.
        .update("cd", 60), .delete("eh", 70), .update("klm", 80, 500), .pump, .update("a", 90),
        .compact, .update("f", 100), .pump, .step(.close),
        .step(.open(durability)), .compact, .update("al", 110), .pump,
        .step(.leave), .step(.open(durability)), .update("bek", 120), .compact,
        .delete("a", 130), .pump,
      ])
  }

  /// All of what is compacted has been superseded, so that nothing is left of it; at last not one
  /// sealed segment.
  static func emptying(_ durability: Durability) -> CompactionScript {
    CompactionScript(
      "compactions to nothing", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .pump, .update("def", 30), .pump,
        .compact, .pump,
        .update("a", 40), .pump, .update("bcd", 50), .delete("ef", 60), .delete("a", 70), .compact,
        .update("gh", 80), .pump, .step(.close),
        .step(.open(durability)), .update("abcdefgh", 90), .compact, .pump, .compact,
        .update("a", 110),
      ])
  }

  /// Commits during compactions supersede what has been copied, or is about to be.
  static func amid(_ durability: Durability) -> CompactionScript {
    CompactionScript(
      "commits amid compactions", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .update("ghi", 30), .pump, .update("j", 40),
        .compactAmid([
          (.beforeCopy, records("a", 50)), (.afterCopy, records("gd", 60, 0, .delete)),
        ]),
        // Not so much that a commit amid the next one would have to wait for a seal, and that for it.
        .update("kl", 70), .update("m", 80), .pump,
        .compactAmid([
          (.inSync, records("c", 85)), (.inCheckpoint, records("b", 90)),
          (.beforeExchange, records("h", 100, 0, .delete)),
        ]),
        .update("a", 110), .pump, .step(.close), .step(.open(durability)), .update("m", 120),
        .compactAmid([(.beforeExchange, records("am", 130, 0, .delete))]),
      ])
  }

  static var all: [CompactionScript] {
    [Durability.powerLoss, .processCrash].flatMap { [life($0), emptying($0), amid($0)] }
  }
}
