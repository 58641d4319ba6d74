/// Where changes of one segment read their payloads from. Keeps the segment's files.
package final class ChangeSource: Sendable {
  let engine: Engine
  let fileId: UInt64
  private let hold: FileHold

  init(_ engine: Engine, _ fileId: UInt64, _ hold: FileHold) {
    self.engine = engine
    self.fileId = fileId
    self.hold = hold
  }
}

extension Engine {
  /// One record of a commit, without its payload.
  package struct LoggedChange: Sendable {
    package var collection: String
    package var id: String
    package var type: MutationType
    package var hlc: String
    package var contentChecksum: UInt32
    package var place: Place
    package var source: ChangeSource

    /// The whole record, read now.
    package func record() throws(LogStoreError) -> ChangeRecord {
      let engine = source.engine
      if let ended = engine.ended.withLock({ $0 }) { throw ended }
      let (record, checksum) = try engine.withRecordReader { (reader) throws(LogStoreError) in
        (
          try reader.record(at: place, of: engine),
          try reader.row(at: place, of: engine).1.contentChecksum
        )
      }
      // The same bytes, not only the same place: beside a reader, another session may have cut the
      // log and gone on from there.
      guard checksum == contentChecksum,
        record.id.utf8.elementsEqual(id.utf8),
        record.collection.utf8.elementsEqual(collection.utf8),
        record.hlcTimestamp.utf8.elementsEqual(hlc.utf8)
      else {
        let path = engine.directory.segment(place.file)
        guard engine.options.isReadOnly else {
          throw .corrupt("a record has been replaced", file: path, offset: place.block)
        }
        throw LogStoreError(
          .staleReader, "The end of the log has been replaced since the change was fetched.",
          file: path, offset: place.block)
      }
      return record
    }
  }
}
