#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  /// What a compaction takes of the heap (G13, and Spec/Decisions: "A compaction is bounded by records").
  @Suite struct CompactionHeapTests {
    @Test(arguments: isLongRun ? [("extension", 5), ("default", 40)] : [("extension", 5)])
    func `A compaction of as much as one may take stays below its bound`(
      preset: String, megabytes: Int
    ) throws {
      try withTemporaryDirectory { root in
        let helper = try HelperProcess(["compact", root + "/store", preset])
        let lines = helper.readLines()
        #expect(helper.wait() == 0)
        func number(_ line: Int, _ word: Int) throws -> Int {
          try #require(Int(lines[line].split(separator: " ")[word]))
        }
        try #require(lines.count == 3)
        print("A compaction, \(preset): \(lines)")
        #expect(try 4 * number(0, 1) >= number(0, 3))
        #expect(try number(1, 1) * 4 > number(1, 3) * 3, "it is one of the largest")
        let heap = try number(2, 1)
        // Less than a tenth would say that nothing has been measured.
        #expect((megabytes * 100_000...megabytes * 1_000_000).contains(heap), "\(heap) bytes")
      }
    }
  }

  /// What a large store costs to have open (G13).
  @Suite(
    .enabled(
      if: ProcessInfo.processInfo.environment["AIRDB_LONG_TESTS"] != nil, "takes minutes"))
  struct ModelScaleTests {
    /// One line of the measurement.
    private struct Figures {
      var heap: Double
      var cache: Double
      var records: Double

      init(_ line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        func number(behind name: String) throws -> Double {
          try #require(
            words.firstIndex(of: name).flatMap { Double(words[words.index(after: $0)]) })
        }
        heap = try number(behind: "heap")
        cache = try number(behind: "cache")
        records = try number(behind: "records")
      }
    }

    @Test(arguments: ["ascending", "random", "overlapping"])
    func `A sealed record costs at most 2.5 bytes of heap beside the cache`(order: String) throws {
      try withTemporaryDirectory { root in
        let helper = try HelperProcess(["scale", root + "/store", order, "2000000"])
        let lines = helper.readLines()
        #expect(helper.wait() == 0)
        let figures = try lines.map { try Figures($0) }
        try #require(figures.count == 3)
        #expect(figures[2].records > 1_800_000)
        for figure in figures[1...] {
          let bytes = (figure.heap - figure.cache - figures[0].heap) / figure.records
          #expect((2.0...2.5).contains(bytes), "\(bytes) bytes a record")
        }
      }
    }
  }
#endif
