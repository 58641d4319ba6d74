/// Row numbers in HLC order: sorted chunks of bounded size, so that an insertion moves little and
/// one at the end, which is the usual case, moves nothing. Not thread-safe.
///
/// `isBefore(a, b)` must be a strict total order of the rows.
package struct SortedRows: Sendable {
  private static let chunkSize = 512
  private var chunks: [[UInt32]] = []
  package private(set) var count = 0

  package init() {}

  package mutating func insert(_ row: UInt32, isBefore: (UInt32, UInt32) -> Bool) {
    count += 1
    guard let lastRow = chunks.last?.last else {
      chunks.append(Self.chunk(with: row))
      return
    }
    if isBefore(lastRow, row) {
      if chunks[chunks.count - 1].count == Self.chunkSize {
        chunks.append(Self.chunk(with: row))
      } else {
        chunks[chunks.count - 1].append(row)
      }
      return
    }
    // The first chunk whose last row is not before the new one takes it.
    var low = 0
    var high = chunks.count - 1
    while low < high {
      let middle = (low + high) / 2
      if isBefore(chunks[middle][chunks[middle].count - 1], row) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    let place = Self.lowerBound(chunks[low]) { isBefore($0, row) }
    if chunks[low].count == Self.chunkSize {
      let half = Self.chunkSize / 2
      var upper = Self.chunk(with: nil)
      upper.append(contentsOf: chunks[low][half...])
      chunks[low].removeLast(Self.chunkSize - half)
      chunks.insert(upper, at: low + 1)
      if place > half {
        chunks[low + 1].insert(row, at: place - half)
        return
      }
    }
    chunks[low].insert(row, at: place)
  }

  private static func chunk(with row: UInt32?) -> [UInt32] {
    var chunk: [UInt32] = []
    chunk.reserveCapacity(chunkSize)
    if let row { chunk.append(row) }
    return chunk
  }

  private static func lowerBound(_ rows: [UInt32], _ isBefore: (UInt32) -> Bool) -> Int {
    var low = 0
    var high = rows.count
    while low < high {
      let middle = (low + high) / 2
      if isBefore(rows[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Calls `body` with the rows from the first for which `isBelow` is false, in order, until it
  /// answers false. `isBelow` must be true for a prefix of the rows.
  package func forEach(
    from isBelow: (UInt32) -> Bool, _ body: (UInt32) -> Bool
  ) {
    var low = 0
    var high = chunks.count
    while low < high {
      let middle = (low + high) / 2
      if isBelow(chunks[middle][chunks[middle].count - 1]) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    guard low < chunks.count else { return }
    var place = Self.lowerBound(chunks[low], isBelow)
    for chunk in chunks[low...] {
      while place < chunk.count {
        if !body(chunk[place]) { return }
        place += 1
      }
      place = 0
    }
  }
}
