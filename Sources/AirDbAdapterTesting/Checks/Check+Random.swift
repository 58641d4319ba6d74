#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension AdapterConformance.Check {
  /// Random calls give the answers of the model.
  public static let randomScripts = Self(
    "random-scripts",
    title: "Random calls are answered as the model answers them",
    explanation: """
      Batches with stale, repeated and equal changes, deletions, keys and timestamps of every form, \
      reads from everywhere, and reopening where that is possible. The seed of a script that fails is \
      reported; the script is made smaller.
      """
  ) { context in
    .run(
      (0..<max(0, context.options.randomScripts)).map { index in
        let seed = context.options.seed &+ UInt64(index)
        var generator = ScriptGenerator(seed: seed, context)
        return Script(generator.steps(context.options.randomSteps), seed: seed)
      })
  }
}

/// Makes the calls of a script from a seed.
private struct ScriptGenerator {
  private let context: PlanContext
  private var random: SeededGenerator
  /// What was applied so far, to be applied and asked for again.
  private var past: [ChangeRecord] = []
  private let keys: [(collection: String, id: String)]
  private let types: [MutationType]
  private let contents: [Data]
  /// Whether timestamps have all spellings.
  private let spellsFreely: Bool
  /// How many different times there are.
  private let times: Int

  init(seed: UInt64, _ context: PlanContext) {
    self.context = context
    random = SeededGenerator(seed: seed)
    contents = context.contents
    spellsFreely = random.below(2) == 0
    times = [4, 40, 2_000][random.below(3)]
    types =
      [.insert, .update, .update, .delete]
      + context.options.unknownTypes.prefix(3).compactMap { MutationType(rawValue: $0) }
    let forms = [
      ("notes", "a"), ("notes", "b"), ("a", "b:c"), ("a:b", "c"), ("notes", "\u{E9}"),
      ("notes", "e\u{301}"), ("", ""), ("tasks", "a"), ("notes", "a\u{0}"), ("notes", "A"),
    ]
    // Few keys meet often, many make long pages.
    let count = [3, 10, 40][random.below(3)]
    keys = (0..<count).map { number in
      number < forms.count ? forms[number] : ("notes", "id\(number)")
    }
  }

  mutating func steps(_ count: Int) -> [AdapterConformance.Step] {
    let steps = (0..<max(0, count)).map { _ in step() }
    return steps + [.readAll, .sweep(limit: 1 + random.below(4)), .latest]
  }

  private mutating func step() -> AdapterConformance.Step {
    switch random.below(20) {
    case 0..<11: return .apply((0..<random.below(7)).map { _ in change() })
    case 11..<15: return .read(after: cursor(), limit: limit())
    case 15..<17: return .sweep(limit: limit())
    case 17 where context.canReopen: return .reopen
    default: return .latest
    }
  }

  private mutating func limit() -> Int {
    random.element(of: [1, 1, 2, 3, 5, 10, 1_000])
  }

  private mutating func cursor() -> String? {
    switch random.below(4) {
    case 0: nil
    case 1: timestamp()
    default: past.isEmpty ? nil : random.element(of: past).hlcTimestamp
    }
  }

  private mutating func timestamp() -> String {
    let time = random.below(times) * 50
    let counter = random.below(3)
    let node = random.below(context.options.nodes.count)
    guard spellsFreely else { return context.clock.text(time, counter: counter, node: node) }
    return random.element(of: context.clock.spellings(time, counter: counter, node: node))
  }

  private mutating func change() -> ChangeRecord {
    if !past.isEmpty, random.below(6) == 0 { return random.element(of: past) }
    let key = random.element(of: keys)
    let change = ChangeRecord(
      id: key.id, collection: key.collection, type: random.element(of: types), payload: bytes(),
      hlcTimestamp: timestamp(), authorPublicKey: random.below(3) == 0 ? bytes() : nil,
      signature: random.below(3) == 0 ? bytes() : nil)
    past.append(change)
    return change
  }

  /// Any bytes, few of them, or what is not to be read as text, whole or before others.
  private mutating func bytes() -> Data {
    let few = Data((0..<random.below(9)).map { _ in UInt8(random.below(256)) })
    switch random.below(4) {
    case 0: return random.element(of: contents)
    case 1: return random.element(of: contents).prefix(16) + few
    default: return few
    }
  }
}
