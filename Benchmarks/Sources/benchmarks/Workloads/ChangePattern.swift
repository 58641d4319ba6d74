import AirDbLogStore
import Foundation

/// How the changes of a store are spread over its records.
enum ChangePattern: String, CaseIterable {
  /// Each record is as likely as any other one to be changed next.
  case uniform
  /// Four of five changes are to a fifth of the records.
  case skewed
  /// New records only.
  case inserts
  /// Half of the changes are new records, the other half deletions of any.
  case deletions
  /// The recorded history of a real project, in its batches.
  case stream

  var title: String {
    switch self {
    case .uniform: "uniform updates"
    case .skewed: "skewed updates: 80% to 20%"
    case .inserts: "inserts only"
    case .deletions: "half inserts, half deletions"
    case .stream: "the recorded stream"
    }
  }

  /// Whether there is something before it begins to be measured.
  var isPrepared: Bool { self != .inserts && self != .stream }

  /// Whether what there must be stays the same. A deletion stays as a tombstone.
  var isSteady: Bool { self == .uniform || self == .skewed }
}

/// Makes the changes of a pattern: the same ones from the same seed.
struct ChangeMaker {
  private let pattern: ChangePattern
  private let source = RecordSource(seed: 11)
  private var random = SeededGenerator(12)
  /// The keys that are there. A deleted one gives its place to the last.
  private var keys: [Int] = []
  private var nextKey = 0
  private var position = 0

  init(_ pattern: ChangePattern) { self.pattern = pattern }

  mutating func insert() -> ChangeRecord {
    keys.append(nextKey)
    nextKey += 1
    return record(nextKey - 1, version: 0)
  }

  mutating func change() -> ChangeRecord {
    switch pattern {
    case .uniform, .stream: return record(keys[random.number(below: keys.count)])
    case .skewed:
      let hot = max(keys.count / 5, 1)
      if random.number(below: 5) > 0 { return record(keys[random.number(below: hot)]) }
      return record(keys[min(hot + random.number(below: keys.count - hot), keys.count - 1)])
    case .inserts: return insert()
    case .deletions:
      if position % 2 == 0 { return insert() }
      keys.swapAt(random.number(below: keys.count), keys.count - 1)
      let change = record(keys.removeLast())
      return ChangeRecord(
        id: change.id, collection: change.collection, type: .delete, payload: Data(),
        hlcTimestamp: change.hlcTimestamp)
    }
  }

  private mutating func record(_ key: Int, version: Int? = nil) -> ChangeRecord {
    position += 1
    return source.record(key: key, version: version ?? position, position: position)
  }
}
