/// The files of one store: all names are made here, all files opened here.
package struct StoreDirectory: Sendable {
  package let path: String
  package let platform: any Platform

  package init(path: String, platform: any Platform) {
    self.path = path
    self.platform = platform
  }

  package var manifest: String { path + "/MANIFEST" }
  package var newManifest: String { path + "/MANIFEST.new" }
  package var lock: String { path + "/LOCK" }
  package var consumers: String { path + "/CONSUMERS" }
  package var newConsumers: String { path + "/CONSUMERS.new" }

  package func segment(_ id: UInt64) -> String { path + "/" + hex(id) + ".segment" }
  package func newSegment(_ id: UInt64) -> String { path + "/" + hex(id) + ".segment.new" }
  package func index(_ id: UInt64) -> String { path + "/" + hex(id) + ".index" }
  package func newIndex(_ id: UInt64) -> String { path + "/" + hex(id) + ".index.new" }
  package func liveness(_ generation: UInt64) -> String {
    path + "/" + hex(generation) + ".liveness"
  }

  /// A file of the store by its name.
  package enum Name: Hashable, Sendable {
    case manifest
    case newManifest
    case lock
    case consumers
    case newConsumers
    case segment(UInt64)
    case newSegment(UInt64)
    case index(UInt64)
    case newIndex(UInt64)
    case liveness(UInt64)
  }

  package func path(of name: Name) -> String {
    switch name {
    case .manifest: manifest
    case .newManifest: newManifest
    case .lock: lock
    case .consumers: consumers
    case .newConsumers: newConsumers
    case .segment(let id): segment(id)
    case .newSegment(let id): newSegment(id)
    case .index(let id): index(id)
    case .newIndex(let id): newIndex(id)
    case .liveness(let generation): liveness(generation)
    }
  }

  /// What a name in the directory stands for; nil for a foreign file.
  package static func parse(_ name: String) -> Name? {
    switch name {
    case "MANIFEST": return .manifest
    case "MANIFEST.new": return .newManifest
    case "LOCK": return .lock
    case "CONSUMERS": return .consumers
    case "CONSUMERS.new": return .newConsumers
    default: break
    }
    let utf8 = Array(name.utf8)
    guard utf8.count > 17, utf8[16] == UInt8(ascii: ".") else { return nil }
    var number: UInt64 = 0
    for byte in utf8[..<16] {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - 0x30)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - 0x61 + 10)
      default: return nil
      }
    }
    guard number > 0 else { return nil }
    switch String(decoding: utf8[17...], as: UTF8.self) {
    case "segment": return .segment(number)
    case "segment.new": return .newSegment(number)
    case "index": return .index(number)
    case "index.new": return .newIndex(number)
    case "liveness": return .liveness(number)
    default: return nil
    }
  }

  private func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// The directory above this one, whose entry for it is synced at creation.
  package var parent: String {
    var end = path.utf8.endIndex
    let utf8 = path.utf8
    while end > utf8.startIndex, utf8[utf8.index(before: end)] == UInt8(ascii: "/") {
      end = utf8.index(before: end)
    }
    guard let slash = utf8[..<end].lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == utf8.startIndex ? "/" : String(path[..<slash])
  }
}

extension StoreDirectory {
  /// The names in the directory that belong to a store.
  package func list() throws(SystemError) -> [Name] {
    try uninterrupted { () throws(SystemError) in try platform.list(path) }
      .compactMap(Self.parse)
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> OpenFile {
    try OpenFile(path, mode, on: platform)
  }

  package func synchronizeDirectory() throws(SystemError) {
    try uninterrupted { () throws(SystemError) in try platform.synchronizeDirectory(path) }
  }

  package func remove(_ file: String) throws(SystemError) {
    try uninterrupted { () throws(SystemError) in try platform.remove(file) }
  }

  package func rename(_ file: String, to target: String) throws(SystemError) {
    try uninterrupted { () throws(SystemError) in try platform.rename(file, to: target) }
  }

  /// A whole file, or nil if it does not exist.
  package func contents(of file: String, limit: UInt64) throws(LogStoreError) -> [UInt8]? {
    do throws(SystemError) {
      let open = try open(file, .read)
      let size = try open.size()
      if size <= limit { return try contents(of: open, count: Int(size)) }
    } catch {
      if error.isNotFound { return nil }
      throw LogStoreError(error, "read a file of the store", file: file)
    }
    throw .corrupt("it is larger than any such file can be", file: file)
  }

  private func contents(of file: OpenFile, count: Int) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SystemError) in
      try file.readExactly(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    bytes.removeLast(count - got)
    return bytes
  }

  /// Writes a new file, synced; its directory entry is not.
  package func writeSynced(_ bytes: UnsafeRawBufferPointer, to file: String) throws(SystemError) {
    do {
      try remove(file)
    } catch {
      if !error.isNotFound { throw error }
    }
    let open = try open(file, .createNew)
    try open.writeAll(bytes, at: 0)
    try open.synchronize()
    try open.close()
  }

  /// Puts a manifest in the place of the one before, durably.
  package func replaceManifest(_ manifest: Manifest) throws(SystemError) {
    try withBytes(of: manifest.encode()) { (bytes) throws(SystemError) in
      try writeSynced(bytes, to: newManifest)
    }
    try rename(newManifest, to: self.manifest)
    try synchronizeDirectory()
  }

  /// The current manifest, or nil if there is none.
  package func readManifest() throws(LogStoreError) -> Manifest? {
    guard let bytes = try contents(of: manifest, limit: UInt64(Limits.manifest)) else { return nil }
    do throws(ManifestError) {
      return try withBytes(of: bytes) { (bytes) throws(ManifestError) in
        try Manifest.decode(bytes)
      }
    } catch {
      switch error {
      case .damaged(let error): throw .corrupt(error, file: manifest)
      case .unsupported(let what):
        throw LogStoreError(.unsupportedFormat, "The store needs \(what).", file: manifest)
      }
    }
  }
}
