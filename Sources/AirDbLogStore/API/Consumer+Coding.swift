// Between what callers see of a consumer and what the file holds.

extension ConsumerTable.Place {
  /// Nil at the beginning.
  func position(in storeId: String) -> Position? {
    guard sequence > 0 else { return nil }
    return Position(storeId: storeId, sequence: sequence, checksum: checksum, horizon: horizon)
  }

  init(_ position: Position) {
    self.init(
      sequence: position.sequence, checksum: position.checksum, horizon: position.horizon)
  }
}

extension Engine {
  /// What the file says of a position, if that fits the store.
  func place(of position: Position) throws(LogStoreError) -> ConsumerTable.Place {
    try validate(position)
    return ConsumerTable.Place(position)
  }

  /// Behind everything that is visible now.
  var placeOfEnd: ConsumerTable.Place {
    let end = published.withLock { $0.end }
    return end.sequence > 0 ? ConsumerTable.Place(position(at: end)) : ConsumerTable.Place()
  }
}

extension ConsumerTable.Retention {
  package init(_ retention: Consumer.Retention) {
    switch retention {
    case .latestVersions: self = .latestVersions
    case .history(let age, let bytes):
      self = .history(maximumAge: age.map(Self.milliseconds), maximumBytes: bytes)
    }
  }

  /// Rounded up, and within bounds.
  private static func milliseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let whole = seconds.multipliedReportingOverflow(by: 1_000)
    guard !whole.overflow else { return .max }
    let part = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    let sum = whole.partialValue.addingReportingOverflow(part)
    return sum.overflow ? .max : sum.partialValue
  }
}

extension Consumer.Retention {
  package init(_ retention: ConsumerTable.Retention) {
    switch retention {
    case .latestVersions: self = .latestVersions
    case .history(let age, let bytes):
      self = .history(maximumAge: age.map { .milliseconds($0) }, maximumBytes: bytes)
    }
  }
}
