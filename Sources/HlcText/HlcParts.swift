/// How the timestamps of a store are written. The raw values are part of the file format.
///
/// The grammar, the order, and the reason for each edge are in `Spec/HLC.md`.
package enum HlcFormat: UInt8, Sendable {
  /// `physical sep counter [sep node]`, ordered by the values of the parts.
  case hybrid = 1

  /// Any text that is not empty, ordered by its UTF-8 bytes.
  case utf8Order = 2
}

/// How the physical part of a hybrid timestamp is written. The raw values are part of the file
/// format, and their order is the order of the kinds.
package enum HlcPhysicalKind: UInt8, Sendable {
  /// 10 to 19 decimal digits.
  case decimal = 1

  /// An instant in ISO 8601, in UTC.
  case iso8601 = 2
}

/// The order key of a timestamp, and where its parts are in the text.
///
/// Timestamps of one format are ordered by `kind`, `physical`, `counter`, and then by the bytes of
/// the text from `nodeStart` on; see ``compareHlc(_:_:_:_:)``. The parts do not keep the text.
package struct HlcParts: Sendable, Equatable {
  /// How the physical part is written; nil in the format ``HlcFormat/utf8Order``.
  package var kind: HlcPhysicalKind?

  /// The decimal number; or nanoseconds since 1970-01-01T00:00:00Z; or, in the format
  /// ``HlcFormat/utf8Order``, the first eight bytes as a big-endian number.
  package var physical: UInt64

  /// The value of the counter in base 36; or, in the format ``HlcFormat/utf8Order``, the second
  /// eight bytes as a big-endian number.
  package var counter: UInt64

  /// The offset in the text of the node, which reaches to the end of the text. The length of the
  /// text when there is no node.
  package var nodeStart: Int

  /// The length of the physical part in bytes; the byte behind it is the first separator. Zero in
  /// the format ``HlcFormat/utf8Order``.
  package var physicalLength: Int

  /// The length of the counter in bytes, with its leading zeros. When there is a node, the byte
  /// behind the counter is the second separator. Zero in the format ``HlcFormat/utf8Order``.
  package var counterLength: Int

  package init(
    kind: HlcPhysicalKind?, physical: UInt64, counter: UInt64, nodeStart: Int,
    physicalLength: Int, counterLength: Int
  ) {
    self.kind = kind
    self.physical = physical
    self.counter = counter
    self.nodeStart = nodeStart
    self.physicalLength = physicalLength
    self.counterLength = counterLength
  }
}
