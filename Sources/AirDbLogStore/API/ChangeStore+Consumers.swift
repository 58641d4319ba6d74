// The consumers of a store.
extension ChangeStore {
  /// The consumer with a name. It is registered, durably, if there is none; if there is one that asks
  /// for another retention, that is changed.
  ///
  /// While a consumer is being registered nothing is cleaned away that it may ask for: what is there
  /// behind its position when this returns is there for it.
  ///
  /// - Parameters:
  ///   - name: 1 to 256 bytes of UTF-8, compared byte by byte.
  ///   - retention: What is kept for it.
  ///   - start: Where it begins, if it is new.
  /// - Throws: ``LogStoreError`` with `limitExceeded` for a name that is empty or too long, and for
  ///   the 1,025th consumer; `readOnly` if something would have to be changed in a store that is open
  ///   read-only; `corrupt` if the file that keeps the consumers is damaged, in which case
  ///   ``retireAllConsumers()`` is the way back.
  public func consumer(
    named name: String, retaining retention: Consumer.Retention = .latestVersions,
    from start: Consumer.Start = .beginning
  ) throws(LogStoreError) -> Consumer {
    let bytes = Array(name.utf8)
    guard !bytes.isEmpty, bytes.count <= Limits.consumerName else {
      throw LogStoreError(
        .limitExceeded, "The name of a consumer has \(bytes.count) bytes, not 1 to 256.")
    }
    let engine = try engine
    let wanted = ConsumerTable.Retention(retention)
    if let known = try engine.consumers.consumers.first(where: { $0.name == bytes }),
      known.retention == wanted
    {
      return Consumer(name: name, store: self, number: known.number)
    }
    let writer = try writer
    if let refusal = writer.refusal { throw refusal }
    let entry = try writer.engine.consumers.register(
      bytes, wanted, date: writer.engine.platform.wallClockMilliseconds()
    ) { () throws(LogStoreError) in
      let place: ConsumerTable.Place
      switch start {
      case .beginning: place = ConsumerTable.Place()
      case .end: place = writer.engine.placeOfEnd
      case .position(let position): place = try writer.engine.place(of: position)
      }
      try writer.makeDurable(upTo: place.sequence)
      return place
    }
    return Consumer(name: name, store: self, number: entry.number)
  }

  /// All consumers, in the order of the bytes of their names.
  ///
  /// - Throws: ``LogStoreError`` with `corrupt` if the file that keeps the consumers is damaged.
  /// - Complexity: See ``Consumer/lag()``, for each.
  public func consumers() throws(LogStoreError) -> [Consumer.Status] {
    try retentionReport().consumers
  }

  /// Who keeps what from being cleaned away, and until when.
  ///
  /// - Throws: ``LogStoreError`` with `corrupt` if the file that keeps the consumers is damaged.
  /// - Complexity: See ``Consumer/lag()``, for each consumer.
  public func retentionReport() throws(LogStoreError) -> RetentionReport {
    try reading { (engine) throws(LogStoreError) in
      let consumers = try engine.consumers.consumers
      let state = engine.snapshot
      let now = engine.platform.wallClockMilliseconds()
      var statuses: [Consumer.Status] = []
      for entry in consumers {
        statuses.append(
          Consumer.Status(
            entry, state, engine.storeId, lag: try engine.lag(behind: entry.place.sequence, state),
            now: now))
      }
      return RetentionReport(statuses, state, horizon: engine.manifest.value.retentionHorizon)
    }
  }

  /// Removes all consumers, also when the file that keeps them is damaged. What was kept for them can be
  /// cleaned away; handles of them throw `consumerNotFound` from then on.
  ///
  /// - Throws: ``LogStoreError`` with `outcomeUnknown` if they may or may not be gone, until
  ///   ``reopen()``; `readOnly`, `noSpace` and the like.
  public func retireAllConsumers() throws(LogStoreError) {
    let writer = try writer
    if let refusal = writer.refusal { throw refusal }
    try writer.engine.consumers.retireAll()
  }
}
