/// Copies one snapshot of a store into a new directory.
struct Backup {
  private let engine: Engine
  private let state: Published
  private let target: StoreDirectory
  /// The content of the copy's consumer file, if it has one.
  private let consumers: [UInt8]?

  init(_ engine: Engine, to path: String) throws(LogStoreError) {
    self.engine = engine
    target = StoreDirectory(path: path, platform: engine.platform)
    try engine.loadLiveness()
    // The consumers first: by then all that they have reached is in the log, and the snapshot shows it.
    var snapshot: Published?
    consumers = try engine.consumers.copy {
      let state = engine.snapshot
      snapshot = state
      return state.end
    }
    state = snapshot ?? engine.snapshot
  }

  func run() throws(LogStoreError) {
    do throws(SystemError) {
      try uninterrupted { () throws(SystemError) in
        try engine.platform.createDirectory(target.path)
      }
      if let attributes = engine.options.attributes {
        try engine.platform.setAttributes(target.path, attributes)
      }
    } catch {
      if error.isAlreadyThere {
        throw LogStoreError(
          .alreadyExists, "There is something at the path of the copy.", file: target.path)
      }
      throw LogStoreError(error, creating: target, of: "copy")
    }
    for sealed in state.sealed {
      let info = sealed.segment.info
      try copy(engine.directory.segment(info.fileId), to: target.segment(info.fileId), info.length)
      // An index that is not there is derived data: the copy builds it when it needs it.
      do throws(LogStoreError) {
        try copy(
          engine.directory.index(info.fileId), to: target.index(info.fileId), info.indexLength,
          isDerived: true)
      } catch {
        guard error.code == .inputOutput || error.code == .staleReader else { throw error }
      }
    }
    for (position, log) in state.tail.enumerated() {
      try copy(
        engine.directory.segment(log.fileId), to: target.segment(log.fileId),
        try tailLength(position))
    }
    try writeManifest()
  }

  /// How far a segment of the tail goes: to the end of the log, or to where the next one follows it.
  private func tailLength(_ position: Int) throws(LogStoreError) -> UInt64 {
    guard position + 1 < state.tail.count else {
      let isActive = state.tail[position].fileId == state.end.segment
      return isActive ? state.end.length : UInt64(SegmentHeader.size)
    }
    let next = state.tail[position + 1].fileId
    let path = engine.directory.segment(next)
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.size)
    do throws(SystemError) {
      _ = try engine.directory.open(path, .read).read(into: &bytes)
    } catch {
      throw LogStoreError(error, "read a segment", file: path)
    }
    do throws(FormatError) {
      return try withBytes(of: bytes) { (bytes) throws(FormatError) in
        try SegmentHeader.decode(bytes, fileId: next).predecessorLength
      }
    } catch {
      throw .corrupt(error, file: path)
    }
  }

  private static let chunk = 1 << 20

  /// Copies the first `length` bytes of a file, durably. One that has fewer is damaged: a copy without
  /// them is no copy, unless what is lacking can be built again.
  private func copy(
    _ source: String, to copy: String, _ length: UInt64, isDerived: Bool = false
  ) throws(LogStoreError) {
    var position: UInt64 = 0
    do throws(SystemError) {
      let from = try engine.directory.open(source, .read)
      let to = try target.open(copy, .createNew)
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: Self.chunk, alignment: 4_096)
      defer { buffer.deallocate() }
      while position < length {
        let size = Int(min(UInt64(Self.chunk), length - position))
        let count = try from.readExactly(
          into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]), at: position)
        if count == 0 { break }
        try to.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: position)
        position += UInt64(count)
      }
      try to.synchronize()
      try to.close()
    } catch {
      throw engine.segmentFailure(error, "copy a file of the store", source)
    }
    guard position == length || isDerived else {
      throw .corrupt(
        "it ends at \(position), before \(length) bytes", file: source, offset: position)
    }
  }

  /// The manifest of a store that was closed at the end of the snapshot.
  private func writeManifest() throws(LogStoreError) {
    var manifest = engine.manifest.value
    let dead = state.sealed.map(\.dead)
    manifest.segments = zip(state.sealed, dead).map { sealed, bits in
      var info = sealed.segment.info
      info.deadCount = bits.count
      return info
    }
    // Ids that the store gave out after the snapshot are below this limit or above it; the copy
    // has none of their files.
    manifest.end = state.end
    manifest.sealedEnd = state.sealedEnd
    manifest.lastCommitDate = state.commitDate
    manifest.greatestHlc = Array((state.greatestHlc?.text ?? "").utf8)
    manifest.hlcPhysicalKind = state.physicalKind?.rawValue ?? 0
    manifest.livenessSequence = state.end.sequence
    manifest.livenessGeneration = 0
    manifest.livenessLength = 0
    manifest.livenessChecksum = 0
    do throws(SystemError) {
      if dead.contains(where: { $0.count > 0 }) {
        let (bytes, checksum) = LivenessFile.encode(
          generation: manifest.generation, sequence: state.end.sequence,
          storeId: manifest.storeId,
          segments: zip(manifest.segments, dead).map { ($0.fileId, $1) })
        manifest.livenessGeneration = manifest.generation
        manifest.livenessLength = UInt64(bytes.count)
        manifest.livenessChecksum = checksum
        try withBytes(of: bytes) { (bytes) throws(SystemError) in
          try target.writeSynced(bytes, to: target.liveness(manifest.generation))
        }
      }
      if let consumers {
        try withBytes(of: consumers) { (bytes) throws(SystemError) in
          try target.writeSynced(bytes, to: target.consumers)
        }
      }
      try target.synchronizeDirectory()
      try target.replaceManifest(manifest)
      try uninterrupted { () throws(SystemError) in
        try engine.platform.synchronizeDirectory(target.parent)
      }
    } catch {
      throw LogStoreError(error, "write the copy's manifest", file: target.manifest)
    }
  }
}

extension OpenFile {
  /// Fills an array from the start of the file, as far as that goes.
  fileprivate func read(into bytes: inout [UInt8]) throws(SystemError) -> Int {
    try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
      try readExactly(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
  }
}
