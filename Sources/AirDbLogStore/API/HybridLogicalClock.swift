internal import HlcText

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A clock that stamps changes: physical time while that moves on, and a counter while it does not.
///
/// For apps that make changes themselves and hand them to ``ChangeStore/apply(_:author:)``. AirDB brings
/// its own stamps; and ``ChangeStore/put(_:forKey:author:)`` and its like have the store stamp, with
/// such a clock. Each stamp is greater than all that the clock gave before, and than all that it was
/// told of by ``merge(_:at:)``, whatever the time does meanwhile: it may stand still, go back a day, or
/// jump years ahead.
///
/// The clock is a value and does not look at the time itself. Keep one for each node, behind a lock or
/// in an actor, and continue it after a restart from the last stamp that it gave:
///
/// ```swift
/// var clock = try HybridLogicalClock(node: "a81bc81b", after: lastStamp)
/// let stamp = try clock.tick(at: Date())
/// ```
///
/// A stamp is a text such as `1700000000000-0000-a81bc81b`: milliseconds since 1970, a counter of four
/// decimal digits, and the node. Such a counter means the same to readers that take it for decimal,
/// hexadecimal or base 36. Until the year 2286 the stamps of a node are ordered as texts, too.
public struct HybridLogicalClock: Sendable, Hashable {
  /// How the physical time of a stamp is written. A store holds stamps of one style only.
  public enum Style: Sendable, Hashable {
    /// `1700000000000-0000-node`
    case decimal
    /// `2023-11-14T22:13:20.000Z-0000-node`
    case iso8601
  }

  /// The last part of each stamp, which no other clock may have: a restored or copied app needs
  /// another one.
  public let node: String

  /// How stamps are written.
  public let style: Style

  /// How far ahead of the time a merged stamp may be, in whole milliseconds.
  public var maximumDrift: Duration { .milliseconds(Int64(clamping: driftMilliseconds)) }
  package let driftMilliseconds: UInt64

  /// The last stamp that the clock gave, or that it was continued from; nil if there is none.
  public private(set) var lastStamp: String?

  /// Where the clock is, in milliseconds since 1970.
  package private(set) var time: UInt64 = 0

  /// The counter that was used last in that millisecond, as a number in base 36; nil if none was.
  private var counter: UInt64?

  /// Creates a clock, or continues one.
  ///
  /// - Parameters:
  ///   - node: The last part of each stamp; 1 to 900 bytes of UTF-8.
  ///   - style: How stamps are written.
  ///   - maximumDrift: How far ahead of the time a merged stamp may be; a minute by default.
  ///   - lastStamp: The last stamp that this clock gave, if it is continued.
  /// - Throws: ``LogStoreError`` with `limitExceeded` for a node of another length;
  ///   `invalidTimestamp` or `mixedTimestamps` for a last stamp that is none, or of another style.
  public init(
    node: String, style: Style = .decimal, maximumDrift: Duration = Self.defaultDrift,
    after lastStamp: String? = nil
  ) throws(LogStoreError) {
    try self.init(
      node: node, style: style, driftMilliseconds: UInt64(max(0, maximumDrift.milliseconds)),
      after: lastStamp)
  }

  package init(
    node: String, style: Style = .decimal, driftMilliseconds: UInt64, after lastStamp: String? = nil
  ) throws(LogStoreError) {
    try Self.check(node: node)
    self.node = node
    self.style = style
    self.driftMilliseconds = driftMilliseconds
    if let lastStamp {
      let (time, counter) = try Self.read(lastStamp, style)
      moveOn(to: time, counter)
      self.lastStamp = lastStamp
    }
  }

  /// The next stamp: greater than all before.
  ///
  /// When the time is not ahead of the clock, the counter goes on; after 10,000 stamps of one
  /// millisecond the clock goes on to the next one ahead of the time.
  ///
  /// - Parameter date: The time, of which whole milliseconds count; 1970 for an earlier one.
  /// - Throws: ``LogStoreError`` with `limitExceeded` when no stamp can be written for so late a time,
  ///   which in ISO 8601 is after the year 2553. The clock stays where it was.
  public mutating func tick(at date: Date) throws(LogStoreError) -> String {
    try tick(at: Self.time(date))
  }

  /// The same for a time in milliseconds since 1970.
  package mutating func tick(at time: UInt64) throws(LogStoreError) -> String {
    var next = (time: max(self.time, time), counter: 0 as UInt64)
    if next.time == self.time, let counter {
      if let following = Self.counter(after: counter) {
        next.counter = following
      } else {
        // Cannot overflow: a stamp has 19 digits at most, and 10^19 is less than 2^64; the time of a
        // tick was written in a stamp.
        next.time += 1
      }
    }
    let stamp = try text(next.time, next.counter)
    self.time = next.time
    counter = next.counter
    lastStamp = stamp
    return stamp
  }

  /// Takes note of a stamp of another clock: the next stamp of this one will be greater.
  ///
  /// A stamp that is refused may be wrong, or hostile, or right while the time of this device is wrong.
  /// The clock stays where it was. The change that bears it can be stored all the same; but until the
  /// time has come up to it, a local change of the same record would be older and lose.
  ///
  /// - Parameters:
  ///   - stamp: A timestamp of the grammar, of this clock's style.
  ///   - date: The time, of which whole milliseconds count; 1970 for an earlier one.
  /// - Throws: ``LogStoreError`` with `clockDrift` for a stamp that is further ahead of the time than
  ///   ``maximumDrift``, unless the clock is there already, as when its own stamps come back after the
  ///   time was set back; `invalidTimestamp` or `mixedTimestamps` for one that cannot be compared.
  public mutating func merge(_ stamp: String, at date: Date) throws(LogStoreError) {
    try merge(stamp, at: Self.time(date))
  }

  /// The same for a time in milliseconds since 1970.
  package mutating func merge(_ stamp: String, at time: UInt64) throws(LogStoreError) {
    let (received, counter) = try Self.read(stamp, style)
    let (bound, isUnbounded) = time.addingReportingOverflow(driftMilliseconds)
    guard received <= self.time || isUnbounded || received <= bound else {
      throw LogStoreError(
        .clockDrift,
        "The timestamp \"\(stamp)\" is \(received - time) ms ahead of the time; "
          + "\(driftMilliseconds) are allowed.")
    }
    moveOn(to: received, counter)
  }
}

// What the store's own clock is driven by: parts of timestamps in the units of the style.
extension HybridLogicalClock {
  /// Whether the next stamp may be less than this timestamp, but for its node.
  package func isBehind(_ physical: UInt64, _ counter: UInt64) -> Bool {
    let (time, counter) = Self.position(physical, counter, style)
    guard time == self.time, let counter else { return time > self.time }
    return self.counter.map { counter > $0 } ?? true
  }

  /// Moves on to a timestamp unless it is too far ahead of the time: false then. One that is passed
  /// already moves nothing, wherever the time is.
  package mutating func follow(_ physical: UInt64, _ counter: UInt64, at time: UInt64) -> Bool {
    let (bound, isUnbounded) = time.addingReportingOverflow(driftMilliseconds)
    return move(to: physical, counter, notBehind: isUnbounded ? .max : max(bound, self.time))
  }

  /// Moves on to a timestamp unless it is behind a millisecond: false then.
  package mutating func move(
    to physical: UInt64, _ counter: UInt64, notBehind last: UInt64
  ) -> Bool {
    let (received, counter) = Self.position(physical, counter, style)
    guard received <= last else { return false }
    moveOn(to: received, counter)
    return true
  }

  /// Moves on behind all stamps that this clock can give up to the end of a millisecond.
  package mutating func skip(_ time: UInt64) {
    moveOn(to: time, Self.inBase36(9_999))
  }

  package static func check(node: String) throws(LogStoreError) {
    guard 1...longestNode ~= node.utf8.count else {
      throw LogStoreError(
        .limitExceeded,
        "The node has \(node.utf8.count) bytes; it must have 1 to \(longestNode).")
    }
  }
}

extension HybridLogicalClock {
  /// A minute.
  public static let defaultDrift = Duration.seconds(60)

  private static func time(_ date: Date) -> UInt64 { UInt64(max(0, date.milliseconds(.down))) }

  private static let longestNode = 900

  /// The digits of a decimal time, more if it needs them: those of today.
  private static let timeDigits = 13
  private static let counterDigits = 4
  private static let nanosecondsPerMillisecond: UInt64 = 1_000_000

  private mutating func moveOn(to time: UInt64, _ counter: UInt64?) {
    guard time >= self.time else { return }
    if time > self.time {
      self.counter = counter
    } else if let counter {
      self.counter = max(self.counter ?? 0, counter)
    }
    self.time = time
  }

  /// The millisecond and the counter of a stamp.
  private static func read(
    _ stamp: String, _ style: Style
  ) throws(LogStoreError) -> (time: UInt64, counter: UInt64?) {
    var text = stamp
    guard let parts = text.withUTF8({ parseHlc($0, format: .hybrid) }) else {
      throw LogStoreError(.invalidTimestamp, "\"\(stamp)\" is not a timestamp.")
    }
    guard parts.kind == style.kind else {
      throw LogStoreError(
        .mixedTimestamps, "The timestamp \"\(stamp)\" is not of the style of the clock.")
    }
    return position(parts.physical, parts.counter, style)
  }

  /// The same of its parts. One between two milliseconds counts as the later of them, before any
  /// counter.
  private static func position(
    _ physical: UInt64, _ counter: UInt64, _ style: Style
  ) -> (time: UInt64, counter: UInt64?) {
    guard style == .iso8601 else { return (physical, counter) }
    let (time, rest) = physical.quotientAndRemainder(dividingBy: nanosecondsPerMillisecond)
    return rest == 0 ? (time, counter) : (time + 1, nil)
  }

  /// The least counter of decimal digits that is greater than another one, which may have any
  /// letters; nil if none is.
  private static func counter(after other: UInt64) -> UInt64? {
    var lower: UInt64 = 0
    var upper: UInt64 = 10_000
    while lower < upper {
      let middle = (lower + upper) / 2
      if inBase36(middle) > other { upper = middle } else { lower = middle + 1 }
    }
    return lower < 10_000 ? inBase36(lower) : nil
  }

  /// What the decimal digits of a number mean in base 36.
  private static func inBase36(_ number: UInt64) -> UInt64 {
    var (rest, place, value) = (number, 1 as UInt64, 0 as UInt64)
    while rest > 0 {
      value += rest % 10 * place
      rest /= 10
      place *= 36
    }
    return value
  }

  private func text(_ time: UInt64, _ counter: UInt64) throws(LogStoreError) -> String {
    let hyphen = UInt8(ascii: "-")
    let digits = style == .iso8601 ? 3 : max(Self.timeDigits, String(time).utf8.count)
    let shape = HlcShape(
      kind: style.kind.rawValue, physicalDigits: UInt8(digits), separator1: hyphen,
      counterDigits: UInt8(Self.counterDigits), counterIsUpper: 0, separator2: hyphen)
    let (physical, isTooLate) = time.multipliedReportingOverflow(
      by: style == .iso8601 ? Self.nanosecondsPerMillisecond : 1)
    var node = node
    var bytes: [UInt8]?
    if !isTooLate, let length = shape.textLength(nodeLength: node.utf8.count) {
      bytes = node.withUTF8 { node in
        var buffer = [UInt8](repeating: 0, count: length)
        let written = buffer.withUnsafeMutableBufferPointer { buffer in
          renderHlc(shape: shape, physical: physical, counter: counter, node: node, into: buffer)
        }
        return written == length ? buffer : nil
      }
    }
    guard let bytes else {
      throw LogStoreError(.limitExceeded, "No timestamp can be written for the time \(time) ms.")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension HybridLogicalClock.Style {
  fileprivate var kind: HlcPhysicalKind {
    switch self {
    case .decimal: .decimal
    case .iso8601: .iso8601
    }
  }
}
