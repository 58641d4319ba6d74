/// What a change does to its record.
///
/// The type is open: a peer may send a value that this version has no name for, and it is kept as
/// it came. So ``init(rawValue:)`` never fails, and a `switch` over values needs a `default`.
public struct MutationType: RawRepresentable, Sendable, Hashable {
  /// The number that stands for the type in a store and between peers.
  public let rawValue: Int

  /// The type of a number; never nil.
  public init?(rawValue: Int) {
    self.init(value: rawValue)
  }

  private init(value: Int) {
    rawValue = value
  }

  /// The record is new; raw value 0.
  public static let insert = MutationType(value: 0)

  /// The record has a new payload; raw value 1.
  public static let update = MutationType(value: 1)

  /// The record is deleted; raw value 2.
  public static let delete = MutationType(value: 2)
}

extension MutationType: CustomStringConvertible {
  /// The name of the type, or its number when it has none.
  public var description: String {
    switch self {
    case .insert: "insert"
    case .update: "update"
    case .delete: "delete"
    default: "MutationType(rawValue: \(rawValue))"
    }
  }
}
