/// An adapter that answers from one adapter and has a second one, its shadow, do the same beside it:
/// to try a new store in an app that still relies on the old one.
///
/// Each batch is applied to the primary adapter, and then to the shadow. Each read is answered by the
/// primary; the shadow is asked for the same, and where its answer is another, or it fails, that is
/// reported. Nothing of what the shadow does reaches the caller.
///
/// ```swift
/// _ = try await old.converge(with: store)
/// let adapter = ShadowAdapter(primary: old, shadow: store) { difference in
///   print("the new store differs: \(difference)")
/// }
/// ```
///
/// Begin with a shadow that has what the primary has. Calls are done one after the other, in the order
/// in which they came, as otherwise a read could fall between the two halves of a write: this is for a
/// careful start, not for good.
///
/// An adapter whose pages end among changes of equal timestamps gives shorter pages than a
/// ``ChangeStore``, which is reported, too.
public actor ShadowAdapter: AirDbAdapter {
  /// Where the shadow does not agree with the primary.
  public enum Difference: Sendable {
    /// A page: the cursor and the limit, and the two answers. Changes of equal timestamps may come in
    /// any order, and are here in that of their keys.
    case changes(
      after: String?, limit: Int, primary: [ChangeRecord], shadow: [ChangeRecord])
    /// The latest timestamp.
    case latest(primary: String?, shadow: String?)
    /// The shadow failed where the primary did not: the name of the call, and the error.
    case failure(call: String, error: any Error)
  }

  private let primary: any AirDbAdapter & Sendable
  private let shadow: any AirDbAdapter & Sendable
  private let report: @Sendable (Difference) -> Void

  private var isBusy = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Puts two adapters together.
  ///
  /// - Parameters:
  ///   - primary: The adapter that answers.
  ///   - shadow: The adapter that is tried.
  ///   - report: Called with each difference; it must return soon.
  public init(
    primary: any AirDbAdapter & Sendable, shadow: any AirDbAdapter & Sendable,
    report: @escaping @Sendable (Difference) -> Void
  ) {
    self.primary = primary
    self.shadow = shadow
    self.report = report
  }

  /// The changes of the primary.
  ///
  /// - Throws: An error of the primary.
  public func getChangesSince(
    sinceHlcTimestamp: String?, limit: Int
  ) async throws -> [ChangeRecord] {
    await begin()
    defer { end() }
    let changes = try await primary.getChangesSince(
      sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
    do {
      let other = try await shadow.getChangesSince(
        sinceHlcTimestamp: sinceHlcTimestamp, limit: limit)
      let (expected, actual) = (Self.comparable(changes), Self.comparable(other))
      let isSame =
        expected.count == actual.count && zip(expected, actual).allSatisfy { $0.isSame(as: $1) }
      if !isSame {
        report(
          .changes(after: sinceHlcTimestamp, limit: limit, primary: expected, shadow: actual))
      }
    } catch {
      report(.failure(call: "getChangesSince", error: error))
    }
    return changes
  }

  /// Applies a batch to the primary, and then to the shadow unless the primary refused it.
  ///
  /// - Throws: An error of the primary.
  public func applyChanges(_ changes: [ChangeRecord]) async throws {
    await begin()
    defer { end() }
    try await primary.applyChanges(changes)
    do {
      // In a task of its own: a cancellation that came too late for the primary must not part the two.
      try await Task { try await shadow.applyChanges(changes) }.value
    } catch {
      report(.failure(call: "applyChanges", error: error))
    }
  }

  /// The latest timestamp of the primary.
  ///
  /// - Throws: An error of the primary.
  public func getLatestHlc() async throws -> String? {
    await begin()
    defer { end() }
    let latest = try await primary.getLatestHlc()
    do {
      let other = try await shadow.getLatestHlc()
      let isSame =
        switch (latest, other) {
        case (nil, nil): true
        case (let latest?, let other?): HlcComparator.compare(latest, other) == 0
        default: false
        }
      if !isSame { report(.latest(primary: latest, shadow: other)) }
    } catch {
      report(.failure(call: "getLatestHlc", error: error))
    }
    return latest
  }

  // MARK: One call at a time

  /// Waits until it is this call's turn.
  private func begin() async {
    guard isBusy else {
      isBusy = true
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Gives the turn to the call that waits longest.
  private func end() {
    if waiting.isEmpty { isBusy = false } else { waiting.removeFirst().resume() }
  }

  /// With changes of neighbouring equal timestamps in the order of their keys.
  private static func comparable(_ changes: [ChangeRecord]) -> [ChangeRecord] {
    var result: [ChangeRecord] = []
    var start = changes.startIndex
    while start < changes.endIndex {
      let run = changes[start...].prefix {
        HlcComparator.compare($0.hlcTimestamp, changes[start].hlcTimestamp) == 0
      }
      result += run.sorted { RecordKey($0).precedes(RecordKey($1)) }
      start = run.endIndex
    }
    return result
  }
}

extension RecordKey {
  /// Whether this key comes first in the order of the bytes of collections, then ids.
  fileprivate func precedes(_ other: RecordKey) -> Bool {
    collection.utf8.elementsEqual(other.collection.utf8)
      ? id.utf8.lexicographicallyPrecedes(other.id.utf8)
      : collection.utf8.lexicographicallyPrecedes(other.collection.utf8)
  }
}
