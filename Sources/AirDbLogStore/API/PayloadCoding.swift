#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// How values of a type become payloads and come back.
///
/// The default is ``json``. An app that wants another format brings its own:
///
/// ```swift
/// let text = PayloadCoding<String>(
///   encode: { Data($0.utf8) },
///   decode: { String(decoding: $0, as: UTF8.self) })
/// let titles = store.collection("titles", coding: text)
/// ```
///
/// All peers of a collection must agree on its coding, and so must all versions of the app: a payload
/// that was stored stays as it is.
public struct PayloadCoding<Value>: Sendable {
  let encode: @Sendable (Value) throws -> Data
  let decode: @Sendable (Data) throws -> Value

  /// Creates a coding. Both functions are called from any thread.
  ///
  /// - Parameters:
  ///   - encode: Best gives the same bytes for the same value each time: ``RecordCollection/update(_:author:_:)``
  ///     stores nothing where they have not changed.
  ///   - decode: Throws for a payload that is none of a value, whatever a peer may have sent.
  public init(
    encode: @escaping @Sendable (Value) throws -> Data,
    decode: @escaping @Sendable (Data) throws -> Value
  ) {
    self.encode = encode
    self.decode = decode
  }
}

extension PayloadCoding where Value: Codable & Sendable {
  /// JSON in UTF-8, by Foundation's coders with their defaults, but keys in a fixed order and slashes as
  /// they are: `Date` is a number of seconds since 2001, `Data` is base64, numbers that are not finite are
  /// refused. Later versions of the library do not change it.
  ///
  /// Decoding passes over keys that the type does not have; a value that is stored again is without
  /// them.
  public static var json: PayloadCoding {
    PayloadCoding(
      encode: { value in
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
      },
      decode: { try JSONDecoder().decode(Value.self, from: $0) })
  }
}
