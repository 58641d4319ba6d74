/// When a store removes what nobody needs any more, by itself and off the commit path.
///
/// Cleaning rewrites segments without their superseded versions. It costs writes and gains space; the
/// defaults keep a store under constant updates near one and a half times the size of what it shows.
public struct CleaningPolicy: Sendable, Hashable {
  /// Whether the store cleans by itself. If not, only ``ChangeStore/compact(progress:)`` does.
  public var isAutomatic = true

  /// The part of a segment, 0...1, that must be superseded for it to be rewritten while commits come
  /// in. Less saves space, more saves writes: of a store under constant updates of all its records
  /// about so much is superseded, and each is written the reciprocal of it times.
  public var garbageRatio = 0.3

  /// The part of the store, 0...1, that may stay superseded when nothing is committed.
  public var idleGarbageRatio = 0.06

  /// After so long without a commit the store counts as idle.
  public var idleDelay: Duration = .seconds(2)

  /// How much of the log is rewritten in a second, at most; nil for no limit. Counts for cleaning
  /// in the background only, and while it keeps up.
  ///
  /// Where commits supersede faster than that, the limit is lifted when a tenth of what a store must hold
  /// has gathered as garbage, or a quarter of a segment if that is more. Beyond that commits begin to wait
  /// for the cleaner, each at most as long again as it took: at a half, or a segment, they go at half
  /// their speed.
  public var bytesPerSecond: Int? = 32 << 20

  /// By itself, with the defaults that the properties state.
  public static let automatic = CleaningPolicy()

  /// On demand only.
  public static var off: CleaningPolicy {
    var policy = CleaningPolicy()
    policy.isAutomatic = false
    return policy
  }

  /// The defaults, which the properties state.
  public init() {}

  var idleMilliseconds: Int { Int(clamping: idleDelay.milliseconds) }
}

/// What becomes of a change that may bring back what was deleted: its key is absent, and it is not
/// newer than some deletion that has been purged.
public enum ResurrectionRule: Sendable, Hashable {
  /// It is skipped, like a stale one.
  case refuse
  /// It is applied.
  case accept
}

extension Duration {
  /// Rounded down, within the bounds of the type.
  var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, isTooLarge) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return isTooLarge ? (whole < 0 ? .min : .max) : sum
  }
}
