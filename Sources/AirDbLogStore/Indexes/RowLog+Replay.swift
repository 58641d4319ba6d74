package import HlcText

extension RowLog {
  /// Appends a record that was read from a block. `place` says where it is if that is not where it
  /// was read from.
  package func append(
    _ block: DecodedBlock, _ slot: Int, format: HlcFormat, secret: KeyHashSecret,
    deletions: [Int64], block offset: UInt64, slot newSlot: UInt8? = nil
  ) throws(FormatError) {
    let row = block.rows[slot]
    try block.withHlcKey(slot, format: format) {
      (_, physical, counter, node) throws(FormatError) in
      withUTF8(block.collection(slot)) { collection in
        let hash = block.withId(slot) { secret.hash(collection: collection, id: $0) }
        append(
          NewRow(
            hash: hash, physical: physical, counter: counter, node: node, collection: collection,
            block: offset, slot: newSlot ?? UInt8(slot), contentChecksum: row.contentChecksum,
            isDeletion: deletions.contains(row.type)))
      }
    }
  }
}
