/// Somebody who follows the changes of a store, by name: the store keeps how far it has come.
///
/// ```swift
/// let search = try store.consumer(named: "search index")
/// try search.acknowledge(position)
/// ```
///
/// A value is a handle: any number of them may stand for one consumer. The state is in the store, as
/// safe as its data, and survives closing, suspending and reopening. From any thread; methods that
/// change something wait for the storage device.
public struct Consumer: Sendable {
  /// The name, by which it is found again.
  public let name: String
  let store: ChangeStore
  /// Tells it from another one that gets its name when it has been retired.
  let number: UInt64

  /// What the store keeps for a consumer.
  public enum Retention: Sendable, Hashable {
    /// The newest version of everything that has changed since its position. A version that another
    /// one has superseded may be gone when the consumer comes.
    case latestVersions
    /// Every version behind its position: the consumer *pins* them.
    ///
    /// Up to an age, if that is given, and a number of bytes of the log. What is beyond one of them is
    /// not kept any more, so that a consumer that never comes does not fill the disk: for that stretch
    /// it is like one that follows the latest versions, and ``Consumer/Status/isBeyondCap`` says so.
    /// Both count in whole segments: somewhat more may be kept.
    case history(maximumAge: Duration? = nil, maximumBytes: UInt64? = nil)
  }

  /// Where a new consumer begins.
  public enum Start: Sendable, Hashable {
    /// Before everything that is in the store.
    case beginning
    /// Behind everything that is in the store.
    case end
    /// Behind a commit.
    case position(Position)
  }
}

// MARK: - Progress

extension Consumer {
  /// How far it has come; nil: it is at the beginning.
  /// - Throws: ``LogStoreError`` with `consumerNotFound` if it was retired; `corrupt` if the file that
  ///   keeps the consumers is damaged.
  public func position() throws(LogStoreError) -> Position? {
    let engine = try store.engine
    return try engine.consumers.consumer(number, Array(name.utf8)).place
      .position(in: engine.storeId)
  }

  /// Says that everything up to a position has been dealt with.
  ///
  /// First the commit is made durable, then the position: so it never names one that a crash can
  /// take. It only ever moves forward; an earlier position, or the one that it has, changes nothing
  /// and writes nothing.
  ///
  /// - Throws: ``LogStoreError``. With `outcomeUnknown` the position may or may not have been saved,
  ///   and no consumer can be changed until ``ChangeStore/reopen()``. With another code it was not:
  ///   `foreignPosition`, `positionBeyondEnd`, `positionDiverged` or `historyPurged` if it does not fit
  ///   the store.
  /// - Complexity: One write and one sync of a file whose size does not grow.
  public func acknowledge(_ position: Position) throws(LogStoreError) {
    let writer = try store.writer
    let place = try writer.engine.place(of: position)
    let consumer = try writer.engine.consumers.consumer(number, Array(name.utf8))
    guard consumer.place.sequence < place.sequence else { return }
    try writer.makeDurable(upTo: place.sequence)
    try writer.engine.consumers.advance(consumer, to: place)
  }

  /// Moves it to any position, back or forward; nil: to the beginning.
  ///
  /// Moved back, it gets again what is still there of what it had: the newest versions at least, and
  /// the others as far as they have not been cleaned away.
  ///
  /// - Throws: ``LogStoreError`` as ``acknowledge(_:)`` does, and with `consumerNotFound`.
  public func reset(to position: Position?) throws(LogStoreError) {
    let writer = try store.writer
    if let refusal = writer.refusal { throw refusal }
    let consumer = try writer.engine.consumers.consumer(number, Array(name.utf8))
    try writer.engine.consumers.reset(consumer) { () throws(LogStoreError) in
      guard let position else { return ConsumerTable.Place() }
      let place = try writer.engine.place(of: position)
      try writer.makeDurable(upTo: place.sequence)
      return place
    }
  }

  /// Removes the consumer. What was kept for it alone can be cleaned away.
  ///
  /// - Throws: ``LogStoreError`` with `consumerNotFound` if that has been done; `outcomeUnknown` if it may
  ///   or may not be gone, until ``ChangeStore/reopen()``; `readOnly`, `noSpace` and the like.
  public func retire() throws(LogStoreError) {
    let writer = try store.writer
    if let refusal = writer.refusal { throw refusal }
    let registry = writer.engine.consumers
    try registry.retire(try registry.consumer(number, Array(name.utf8)))
  }
}

// MARK: - Looking

extension Consumer {
  /// How far it is behind the end of the log, as that is visible now.
  ///
  /// - Complexity: Of the segment that its position is in, it may read the headers of the frames; of
  ///   each one that several sessions wrote to, the content. Otherwise without I/O.
  public func lag() throws(LogStoreError) -> Lag {
    try store.reading { (engine) throws(LogStoreError) in
      let entry = try engine.consumers.consumer(number, Array(name.utf8))
      return try engine.lag(behind: entry.place.sequence, engine.snapshot)
    }
  }
}
