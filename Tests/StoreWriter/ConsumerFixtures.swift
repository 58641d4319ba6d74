import AirDbLogStore
import TestSupport

extension Fixture {
  /// Stores with consumers, sound and damaged.
  static func followed() throws -> [Fixture] {
    let store = try FixtureStore(seed: 15)
    var before: [ConsumerLine] = []
    var now: [ConsumerLine] = []
    try store.apply([note(1, "Hello")])
    try store.follow { open in
      let search = try open.consumer(named: "search")
      _ = try open.consumer(named: "\u{E9}", retaining: .history(), from: .end)
      _ = try open.consumer(
        named: "export", retaining: .history(maximumAge: .seconds(3_600), maximumBytes: 1 << 20))
      let gone = try open.consumer(named: "gone")
      try search.acknowledge(open.position!)
      try gone.retire()
    }
    try store.apply([note(2, "more", at: 1)])
    try store.follow { open in
      before = try ConsumerLine.all(of: open)
      // Into the first slot, which is then the newer one.
      try open.consumer(named: "search").acknowledge(open.position!)
      now = try ConsumerLine.all(of: open)
    }
    try store.close()
    let image = try store.image()
    let (first, second) = (UInt64(4_096 + 100), UInt64(2 * 4_096 + 100))
    let torn = image.flipping("CONSUMERS", at: first)
    func fixture(
      _ name: String, _ what: String, _ image: SimulatedFileSystem, _ consumers: [ConsumerLine]?
    ) -> Fixture {
      Fixture(
        name: name, what: what, records: store.records, consumers: consumers, image: image)
    }
    var damaged = fixture(
      "consumers-damaged", "a bit of both slots of the consumer file",
      torn.flipping("CONSUMERS", at: second), nil)
    damaged.outcome = .consumers
    damaged.code = "corrupt"
    damaged.file = "CONSUMERS"
    return [
      fixture("consumers", "named consumers, one of which has been retired", image, now),
      fixture(
        "consumers-torn", "what a crash leaves in the middle of a consumer's progress", torn, before
      ),
      fixture(
        "consumers-orphan", "what a crash leaves in the middle of registering a consumer",
        try image.adding("CONSUMERS.new", [1, 2, 3]), now),
      damaged,
    ]
  }
}
