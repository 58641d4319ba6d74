import AirDbLogStore
import Foundation
import Testing

/// The example of the clock; see Examples.swift.
struct ClockExamples {
  @Test func clock() throws {
    let lastStamp: String? = "1700000000000-0000-a81bc81b"
    // example: HybridLogicalClock
    var clock = try HybridLogicalClock(node: "a81bc81b", after: lastStamp)
    let stamp = try clock.tick(at: Date())
    // end
    #expect(stamp.hasSuffix("-a81bc81b"))
    #expect(HlcComparator.compare(stamp, "1700000000000-0000-a81bc81b") > 0)
  }
}
