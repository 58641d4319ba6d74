internal import HlcText

/// What a store consists of (Format 3). Replaced as a whole.
package struct Manifest: Sendable, Equatable {
  package var generation: UInt64 = 1
  package var storeId: StoreId
  package var hashSecret: KeyHashSecret
  package var requiredFeatures: UInt64 = 0
  package var optionalFeatures: UInt64 = 0
  package var epoch: UInt32 = 0
  package var hlcFormat: UInt8
  package var hlcPhysicalKind: UInt8 = 0
  package var fileIdLimit: UInt64 = 1
  package var end = LogEnd()
  /// Behind the last commit that was sealed: what the first unsealed segment follows.
  package var sealedEnd = LogEnd()
  package var lastCommitDate: Int64 = 0
  package var livenessSequence: UInt64 = 0
  package var livenessGeneration: UInt64 = 0
  package var livenessLength: UInt64 = 0
  package var livenessChecksum: UInt32 = 0
  package var retentionHorizon: UInt64 = 0
  package var createdDate: Int64 = 0
  /// Random once the store has been adopted as one of its own; 0 before.
  package var adoption: UInt64 = 0
  package var deletionValues: [Int64]
  package var greatestHlc: [UInt8] = []
  /// The greatest timestamp of a tombstone that was purged; empty: none ever was.
  package var horizonHlc: [UInt8] = []
  package var segments: [Segment] = []

  /// A sealed segment.
  package struct Segment: Sendable, Equatable {
    package var fileId: UInt64
    package var length: UInt64
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var lastChecksum: UInt32
    package var indexChecksum: UInt32
    package var recordCount: UInt64
    package var entryCount: UInt64
    package var deadCount: UInt64
    package var indexLength: UInt64
    package var lastCommitDate: Int64

    package init(
      fileId: UInt64, length: UInt64, firstSequence: UInt64, lastSequence: UInt64,
      lastChecksum: UInt32, indexChecksum: UInt32, recordCount: UInt64, entryCount: UInt64,
      deadCount: UInt64, indexLength: UInt64, lastCommitDate: Int64
    ) {
      self.fileId = fileId
      self.length = length
      self.firstSequence = firstSequence
      self.lastSequence = lastSequence
      self.lastChecksum = lastChecksum
      self.indexChecksum = indexChecksum
      self.recordCount = recordCount
      self.entryCount = entryCount
      self.deadCount = deadCount
      self.indexLength = indexLength
      self.lastCommitDate = lastCommitDate
    }
  }

  package init(
    storeId: StoreId, hashSecret: KeyHashSecret, hlcFormat: UInt8, deletionValues: [Int64]
  ) {
    self.storeId = storeId
    self.hashSecret = hashSecret
    self.hlcFormat = hlcFormat
    self.deletionValues = deletionValues
  }

  /// The store as positions name it. Its files keep the id that it was created with.
  package var identity: StoreId {
    StoreId(first: storeId.first, second: storeId.second ^ adoption)
  }

  static let fixedSize = 224
  static let segmentSize = 80

  /// The features that this version knows.
  static let knownFeatures: UInt64 = packedFrames
  /// Some segments are made of packed frames.
  package static let packedFrames: UInt64 = 1
}

/// Which store: 16 random bytes.
package struct StoreId: Sendable, Hashable {
  package let first: UInt64
  package let second: UInt64
  package init(first: UInt64, second: UInt64) {
    self.first = first
    self.second = second
  }
}

/// A place in the log behind a frame.
package struct LogEnd: Sendable, Equatable {
  /// The segment; 0 when the log is empty.
  package var segment: UInt64 = 0
  /// Offset behind the frame.
  package var length: UInt64 = 0
  /// Of the frame.
  package var sequence: UInt64 = 0
  /// The header checksum of the frame.
  package var checksum: UInt32 = 0

  package init(segment: UInt64 = 0, length: UInt64 = 0, sequence: UInt64 = 0, checksum: UInt32 = 0)
  {
    self.segment = segment
    self.length = length
    self.sequence = sequence
    self.checksum = checksum
  }
}

/// Why a manifest cannot be used.
package enum ManifestError: Error {
  case damaged(FormatError)
  case unsupported(String)
}

extension Manifest {
  package func encode() -> [UInt8] {
    var out = ByteBuffer(capacity: 512 + segments.count * Self.segmentSize)
    out.append("AIRDBMAN")
    out.append(UInt32(0))
    out.append(Limits.formatVersion)
    out.append(UInt64(0))
    out.append(generation)
    out.append(storeId.first)
    out.append(storeId.second)
    out.append(hashSecret.first)
    out.append(hashSecret.second)
    out.append(requiredFeatures)
    out.append(optionalFeatures)
    out.append(epoch)
    out.append(hlcFormat)
    out.append(hlcPhysicalKind)
    out.append(UInt16(horizonHlc.count))
    out.append(fileIdLimit)
    out.append(end.segment)
    out.append(end.length)
    out.append(end.sequence)
    out.append(end.checksum)
    out.append(UInt32(segments.count))
    out.append(lastCommitDate)
    out.append(livenessSequence)
    out.append(livenessGeneration)
    out.append(livenessLength)
    out.append(livenessChecksum)
    out.append(UInt32(deletionValues.count))
    out.append(retentionHorizon)
    out.append(createdDate)
    out.append(UInt32(greatestHlc.count))
    out.append(sealedEnd.checksum)
    out.append(sealedEnd.segment)
    out.append(sealedEnd.length)
    out.append(sealedEnd.sequence)
    out.append(adoption)
    for value in deletionValues { out.append(value) }
    out.append(greatestHlc)
    out.append(horizonHlc)
    out.pad(to: 8)
    for segment in segments { segment.encode(into: &out) }
    out.store(UInt64(out.count), at: 16)
    out.store(
      Checksum.bound(
        .manifest, file: 0, offset: 0, UnsafeRawBufferPointer(rebasing: out.bytes[12...])),
      at: 8)
    return Array(out.bytes)
  }

  package static func decode(_ bytes: UnsafeRawBufferPointer) throws(ManifestError) -> Manifest {
    do {
      var reader = ByteReader(bytes)
      guard try reader.read(count: 8).elementsEqual("AIRDBMAN".utf8) else {
        throw FormatError("not a manifest", at: 0)
      }
      let checksum: UInt32 = try reader.read()
      let version: UInt32 = try reader.read()
      if version > Limits.formatVersion {
        throw ManifestError.unsupported("format version \(version)")
      }
      guard version == Limits.formatVersion else { throw FormatError("format version 0", at: 12) }
      let length: UInt64 = try reader.read()
      guard length == UInt64(bytes.count), bytes.count <= Limits.manifest else {
        throw FormatError("the length does not match the file", at: 16)
      }
      let covered = UnsafeRawBufferPointer(rebasing: bytes[12...])
      guard checksum == Checksum.bound(.manifest, file: 0, offset: 0, covered) else {
        throw FormatError("the checksum does not match", at: 8)
      }
      return try decodeFields(&reader)
    } catch let error as FormatError {
      throw .damaged(error)
    } catch let error as ManifestError {
      throw error
    } catch {
      throw .damaged(FormatError("\(error)"))
    }
  }

  /// Everything behind the length. The checksum holds, but that does not make the values sound.
  private static func decodeFields(_ reader: inout ByteReader) throws -> Manifest {
    let generation: UInt64 = try reader.read()
    let storeId = StoreId(first: try reader.read(), second: try reader.read())
    let secret = KeyHashSecret(first: try reader.read(), second: try reader.read())
    let required: UInt64 = try reader.read()
    let unknown = required & ~knownFeatures
    if unknown != 0 {
      throw ManifestError.unsupported("required feature bits 0x\(String(unknown, radix: 16))")
    }
    var manifest = Manifest(
      storeId: storeId, hashSecret: secret, hlcFormat: 0, deletionValues: [])
    manifest.generation = generation
    manifest.requiredFeatures = required
    manifest.optionalFeatures = try reader.read()
    manifest.epoch = try reader.read()
    manifest.hlcFormat = try reader.read()
    manifest.hlcPhysicalKind = try reader.read()
    guard let format = HlcFormat(rawValue: manifest.hlcFormat),
      manifest.hlcPhysicalKind <= (format == .hybrid ? 2 : 0)
    else { throw FormatError("unknown HLC format", at: reader.offset - 2) }
    let horizonLength: UInt16 = try reader.read()
    manifest.fileIdLimit = try reader.read()
    manifest.end.segment = try reader.read()
    manifest.end.length = try reader.read()
    manifest.end.sequence = try reader.read()
    manifest.end.checksum = try reader.read()
    let segmentCount: UInt32 = try reader.read()
    manifest.lastCommitDate = try reader.read()
    manifest.livenessSequence = try reader.read()
    manifest.livenessGeneration = try reader.read()
    manifest.livenessLength = try reader.read()
    manifest.livenessChecksum = try reader.read()
    let deletionCount: UInt32 = try reader.read()
    manifest.retentionHorizon = try reader.read()
    manifest.createdDate = try reader.read()
    let hlcLength: UInt32 = try reader.read()
    manifest.sealedEnd.checksum = try reader.read()
    manifest.sealedEnd.segment = try reader.read()
    manifest.sealedEnd.length = try reader.read()
    manifest.sealedEnd.sequence = try reader.read()
    manifest.adoption = try reader.read()
    guard deletionCount <= Limits.deletionValues else {
      throw FormatError("too many deletion values", at: 164)
    }
    for _ in 0..<deletionCount {
      let value: Int64 = try reader.read()
      if let last = manifest.deletionValues.last, last >= value {
        throw FormatError("deletion values out of order", at: reader.offset - 8)
      }
      manifest.deletionValues.append(value)
    }
    guard hlcLength <= Limits.hlc else { throw FormatError("greatest HLC too long", at: 184) }
    manifest.greatestHlc = Array(try reader.read(count: Int(hlcLength)))
    guard Int(horizonLength) <= Limits.hlc, (horizonLength == 0) == (manifest.retentionHorizon == 0)
    else { throw FormatError("an impossible horizon", at: 86) }
    manifest.horizonHlc = Array(try reader.read(count: Int(horizonLength)))
    try reader.readZeros((8 - reader.offset % 8) % 8)
    guard reader.remaining == Int(segmentCount) * segmentSize else {
      throw FormatError("the segment count does not match the length", at: 124)
    }
    manifest.segments.reserveCapacity(Int(segmentCount))
    for _ in 0..<segmentCount {
      manifest.segments.append(try Segment.decode(&reader))
    }
    try manifest.check()
    return manifest
  }

  /// The relations between fields that no writer breaks, and bounds that leave room to compute.
  private func check() throws(FormatError) {
    var last: UInt64 = 0
    var ids = Set<UInt64>()
    for segment in segments {
      guard segment.fileId > 0, segment.fileId < fileIdLimit, ids.insert(segment.fileId).inserted,
        segment.firstSequence > last, segment.lastSequence >= segment.firstSequence,
        segment.length > 64, segment.length % 8 == 0, segment.entryCount > 0,
        segment.entryCount <= segment.recordCount, segment.deadCount <= segment.entryCount,
        segment.recordCount <= Limits.segmentRecords, segment.length <= Limits.segment,
        segment.indexLength <= Limits.segment
      else { throw FormatError("an impossible segment entry", at: Self.fixedSize) }
      last = segment.lastSequence
    }
    let endEpoch = end.sequence >> 32
    guard sealedEnd.sequence >= last, end.sequence >= sealedEnd.sequence,
      endEpoch <= UInt64(epoch), livenessSequence <= end.sequence,
      livenessSequence >= sealedEnd.sequence, end.segment < fileIdLimit,
      sealedEnd.segment < fileIdLimit, end.length <= Limits.segment,
      sealedEnd.length <= Limits.segment, end.sequence < .max,
      (end.segment == 0) == (end.sequence == 0),
      (sealedEnd.segment == 0) == (sealedEnd.sequence == 0),
      sealedEnd.segment > 0 || sealedEnd == LogEnd(),
      sealedEnd.sequence < end.sequence || sealedEnd == end
    else { throw FormatError("an impossible end of the log", at: 96) }
    let sealed = segments.first { $0.fileId == sealedEnd.segment }
    guard sealed?.end ?? sealedEnd == sealedEnd else {
      throw FormatError("a last sealed segment that does not end at the sealed end", at: 188)
    }
    guard retentionHorizon <= sealedEnd.sequence else {
      throw FormatError("a horizon beyond what was sealed", at: 168)
    }
    guard livenessGeneration <= generation, generation > 0, generation < Limits.number,
      fileIdLimit > 0, fileIdLimit < Limits.number
    else {
      throw FormatError("an impossible generation", at: 24)
    }
  }
}

extension Manifest.Segment {
  /// Where the segment ends.
  package var end: LogEnd {
    LogEnd(segment: fileId, length: length, sequence: lastSequence, checksum: lastChecksum)
  }

  fileprivate func encode(into out: inout ByteBuffer) {
    out.append(fileId)
    out.append(length)
    out.append(firstSequence)
    out.append(lastSequence)
    out.append(lastChecksum)
    out.append(indexChecksum)
    out.append(recordCount)
    out.append(entryCount)
    out.append(deadCount)
    out.append(indexLength)
    out.append(lastCommitDate)
  }

  fileprivate static func decode(
    _ reader: inout ByteReader
  ) throws(FormatError) -> Manifest.Segment {
    Manifest.Segment(
      fileId: try reader.read(), length: try reader.read(), firstSequence: try reader.read(),
      lastSequence: try reader.read(), lastChecksum: try reader.read(),
      indexChecksum: try reader.read(), recordCount: try reader.read(),
      entryCount: try reader.read(), deadCount: try reader.read(),
      indexLength: try reader.read(), lastCommitDate: try reader.read())
  }
}
