import AirDbLogStore
import TestSupport

/// Compactions that purge tombstones.
extension CompactionScript {
  private static func purging(
    _ name: String, _ durability: Durability, _ steps: [Step]
  ) -> CompactionScript {
    var script = CompactionScript(name, durability, steps)
    script.isPurging = true
    return script
  }

  /// Purges one after another, of keys that were purged before, too; what is stale is refused.
  static func purges(_ durability: Durability) -> CompactionScript {
    purging(
      "purges", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .update("ghij", 30), .delete("bg", 40), .pump,
        .update("a", 50), .pump, .age, .compact, .pump,
        // One is refused, one is new.
        .update("g", 5), .update("b", 60), .delete("ch", 70), .update("klm", 80), .pump, .age,
        .compact, .pump, .update("c", 45), .delete("b", 90), .step(.close),
        .step(.open(durability)), .age, .compact, .update("bc", 45), .update("n", 95), .pump,
      ])
  }

  /// Nothing is left, the greatest timestamp is that of a tombstone, and a session just ends.
  static func purgesToNothing(_ durability: Durability) -> CompactionScript {
    purging(
      "purges to nothing", durability,
      [
        .update("abcdef", 10), .pump, .delete("abcdef", 20), .pump, .age, .compact,
        .step(.leave), .step(.open(durability)), .update("abc", 15), .update("gh", 30), .pump,
      ])
  }

  /// Commits during purges: what they refuse must stay away, what they store must stay.
  static func amidPurges(_ durability: Durability) -> CompactionScript {
    purging(
      "commits amid purges", durability,
      [
        .update("abcdef", 10), .update("abc", 20), .delete("bcd", 40), .pump, .update("gh", 50),
        .pump, .age,
        .compactAmid([
          (.beforeCopy, records("b", 5)), (.afterCopy, records("c", 60)),
          (.inCheckpoint, records("bd", 6)), (.beforeExchange, records("h", 70, 0, .delete)),
        ]),
        .update("b", 7), .pump,
      ])
  }

  static var allPurging: [CompactionScript] {
    [Durability.powerLoss, .processCrash].flatMap {
      [purges($0), purgesToNothing($0), amidPurges($0)]
    }
  }
}
