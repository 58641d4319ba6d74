/// The limits of the format (Format 10) and the constants of its writer.
package enum Limits {
  package static let id = 65_536
  package static let collection = 4_096
  package static let hlc = 1_024
  package static let key = 65_536
  package static let payload = 256 << 20
  package static let batch = 1 << 30
  /// Of a frame, and of it for each record, beside the transaction table.
  package static let frame: UInt64 = 2 << 30
  package static let framePerRecord: UInt64 = 128
  /// Of a block's metadata for each record: everything but its payload.
  package static let metadataPerRecord = 201_856
  package static let label = 1_024
  package static let deletionValues = 64
  package static let manifest = 64 << 20
  package static let consumers = 1_024
  package static let consumerName = 256
  /// Of a segment, and of its index.
  package static let segment: UInt64 = 1 << 40
  package static let segmentRecords = UInt64(UInt32.max)
  /// File ids and generations are below this.
  package static let number: UInt64 = 1 << 62

  package static let formatVersion: UInt32 = 1
  package static let recordsPerBlock = 256
  package static let pageSize = 4_096
}
