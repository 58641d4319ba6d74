package import AirDbLogStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The runs that the crash and fault suites repeat.
extension EngineScript {
  /// A record of the scripts. `time` orders versions.
  package static func record(
    _ id: String, _ time: Int, _ payload: Int = 8, collection: String = "notes",
    type: MutationType = .update, node: String = "a"
  ) -> ChangeRecord {
    var generator = SeededGenerator(seed: UInt64(time) &* 31 &+ UInt64(payload))
    return ChangeRecord(
      id: id, collection: collection, type: type, payload: Data(generator.bytes(payload)),
      hlcTimestamp: "\(1_700_000_000_000 + time)-0000-\(node)",
      authorPublicKey: time % 3 == 0 ? Data([7, 7]) : nil,
      signature: time % 4 == 0 ? Data() : nil)
  }

  /// Commits of all kinds and sizes, through creation, rollover, sealing, a clean close and a second
  /// session that goes on in the same segment.
  package static func life(_ durability: Durability) -> EngineScript {
    EngineScript(
      "life, \(durability)",
      [
        .open(durability),
        // Nothing, one record without content, several with a key twice and a tie.
        .apply([]),
        .apply([record("a", 1, 0)]),
        .apply([
          record("b", 2), record("c", 3, collection: ""), record("b", 4), record("", 3, node: "b"),
        ]),
        // Wholly stale: takes no sequence. Then the second key is deleted.
        .apply([record("b", 2)]),
        .apply([record("c", 5, 0, collection: "", type: .delete)]),
        .pump,
        // Larger than a segment.
        .apply([record("large", 6, 5_000)]),
        .pump,
        .apply([record("a", 7, 100), record("d", 8, 700)]),
        .apply([record("b", 9, 0, type: .delete)]),
        .flush,
        .apply([record("e", 10, 900)]),
        .apply([record("f", 11, 900)]),
        // The roll in here has to wait for the seal of the one before.
        .apply([record("large", 12, 10)]),
        .close,
        .open(durability),
        .apply([record("a", 13), record("g", 13, node: "b")]),
        .apply([record("h", 14, 1_000)]),
        .pump,
        .apply([record("i", 15, 1_000)]),
        .apply([record("a", 16, 0, type: .delete)]),
        .pump,
        .apply([record("j", 17)]),
      ])
  }

  /// Commits that were not synced are lost, all but one in the middle; new ones of the same sizes come
  /// in their places, and are lost in part again.
  package static func losses(_ lost: LostContent) -> EngineScript {
    EngineScript(
      "losses, \(lost)",
      [
        .open(.processCrash),
        .apply([record("a", 1)]),
        .flush,
        .apply([record("b", 2)]),
        .apply([record("c", 3)]),
        .apply([record("d", 4)]),
        // The frame of "b" is lost, those behind it are not.
        .losePower(.allButFirst, lost),
        .open(.processCrash),
        .apply([record("e", 5)]),
        .apply([record("f", 6)]),
        .losePower(.allButFirst, lost),
        .open(.powerLoss),
        .apply([record("g", 7)]),
        .apply([record("h", 8)]),
      ])
  }

  /// Each kind of work once, in few calls: each of them is made to fail.
  package static func short(_ durability: Durability) -> EngineScript {
    EngineScript(
      "short, \(durability)",
      [
        .open(durability),
        .apply([record("a", 1)]),
        .apply([record("b", 2), record("c", 2, 1_800, node: "b")]),
        // Rolls over; sealed once and again, with something superseded.
        .apply([record("a", 3, 0, type: .delete)]),
        .pump,
        .flush,
        .apply([record("d", 4, 2_000)]),
        .apply([record("b", 5)]),
        .pump,
        .close,
        .open(durability),
        .apply([record("c", 6)]),
        .pump,
        .apply([record("e", 7)]),
        .leave,
        .open(durability),
        .apply([record("f", 8)]),
        .close,
      ])
  }

  /// A store that is suspended again and again, with work put off and without any.
  package static var background: EngineScript {
    EngineScript(
      "background",
      [
        .open(.processCrash),
        .apply([record("a", 1)]),
        .suspend,
        .resume,
        .apply([record("b", 2, 900), record("c", 2, 1_200, node: "b")]),
        .apply([record("a", 3, 0, type: .delete)]),
        .suspend,
        .suspend,
        .resume,
        .resume,
        .apply([record("d", 4)]),
        .pump,
        .suspend,
        .resume,
        .suspend,
      ])
  }

  /// A store is closed with a full segment that is short enough to be replayed; the next session begins
  /// by sealing it, before it has read anything.
  package static var fullTail: EngineScript {
    var script = EngineScript(
      "full tail",
      [
        .open(.powerLoss),
        .apply([record("a", 1), record("b", 1)]),
        .apply([record("c", 2), record("a", 3)]),
        .pump,
        .apply([record("d", 4)]),
        .apply([record("b", 5, 0, type: .delete)]),
        .close,
        .open(.powerLoss),
        .apply([record("e", 6)]),
        .pump,
        .close,
        .open(.powerLoss),
        .apply([record("c", 7)]),
        .apply([record("d", 8)]),
        .close,
        .open(.processCrash),
        .apply([record("e", 9)]),
      ])
    script.configuration.segmentRecords = 2
    script.configuration.replayBytes = 1 << 20
    script.isEager = true
    return script
  }

  package static var all: [EngineScript] {
    [
      .life(.powerLoss), .life(.processCrash), .background, .fullTail, .losses(.old),
      .losses(.zeros),
      .losses(.garbage(seed: 3)),
    ]
  }
}

/// The stores that are damaged bit by bit: as small as stores with everything in them can be.
extension EngineScript {
  private static func tiny(_ name: String, _ steps: [Step]) -> EngineScript {
    var script = EngineScript(name, steps)
    script.configuration.segmentRecords = 2
    return script
  }

  private static var sealedSteps: [Step] {
    [
      .open(.powerLoss),
      .apply([record("a", 1), record("b", 1, node: "b")]),
      .apply([record("a", 3, 0, type: .delete), record("c", 2)]),
      .pump,
    ]
  }

  /// Sealed segments, superseded records and a tail, closed.
  package static var tinyClosed: EngineScript {
    tiny("closed", sealedSteps + [.apply([record("d", 4, 40)]), .pump, .close])
  }

  /// The same, but the last session did not close it: with a full segment that is not sealed yet, and
  /// one that is written to.
  package static var tinyUnclosed: EngineScript {
    tiny(
      "unclosed",
      sealedSteps + [
        .close, .open(.powerLoss),
        .apply([record("d", 4, 40), record("e", 5)]),
        .apply([record("b", 6)]),
        .leave,
      ])
  }

  /// One segment that was never sealed or closed.
  package static var tinyFresh: EngineScript {
    var script = EngineScript(
      "fresh",
      [
        .open(.powerLoss), .apply([record("a", 1)]), .apply([record("b", 2)]),
        .apply([record("a", 3)]), .leave,
      ])
    script.configuration.segmentRecords = 100
    return script
  }
}
