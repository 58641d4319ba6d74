package import AirDbLogStore

extension SimulatedFileSystem: Platform {
  // MARK: Files

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> FileDescriptor {
    let creates: Bool
    switch mode {
    case .read, .readWrite: creates = false
    case .createNew: creates = true
    case .createIfAbsent:
      creates = state.withLock { (try? $0.disk.live.inode(at: path, for: "open")) == nil }
    }
    return try perform(
      SimulatedCall(kind: creates ? .create : .open, path: path), claiming: nil
    ) { (state, _) throws(SystemError) in
      try state.checkDescriptors("open")
      let file = try state.disk.open(path, mode)
      state.paths[file] = path
      return file
    }
  }

  package func close(_ file: FileDescriptor) throws(SystemError) {
    // Not to be ignored: a descriptor that stays open is no state that an engine could be in.
    try perform(SimulatedCall(kind: .close, path: path(of: file)), claiming: nil) {
      (state, _) throws(SystemError) in
      try state.disk.close(file)
      state.paths[file] = nil
    }
  }

  package func read(
    _ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let call = SimulatedCall(
      kind: .read, path: path(of: file), offset: offset, count: buffer.count)
    return try perform(call, claiming: nil) { (state, manner) throws(SystemError) in
      let count = manner.count(buffer.count)
      return try state.disk.read(file, into: .init(rebasing: buffer[..<count]), at: offset)
    }
  }

  package func write(
    _ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    let call = SimulatedCall(
      kind: .write, path: path(of: file), offset: offset, count: bytes.count)
    return try perform(call, claiming: bytes.count) { (state, manner) throws(SystemError) in
      let count = manner.count(bytes.count)
      try state.checkSpace(file, end: offset &+ UInt64(count), "pwrite")
      return try state.disk.write(file, .init(rebasing: bytes[..<count]), at: offset)
    }
  }

  package func synchronize(
    _ file: FileDescriptor, to level: SyncLevel
  ) throws(SystemError) -> SyncLevel {
    try perform(SimulatedCall(kind: .synchronize, path: path(of: file)), claiming: .stable) {
      (state, manner) throws(SystemError) in
      switch manner {
      case .whole, .partial: try state.disk.synchronize(file)
      case .failing(let failure): try state.disk.failSynchronize(file, failure)
      case .delayed: try state.disk.delaySynchronize(file)
      }
      return .stable
    }
  }

  package func truncate(_ file: FileDescriptor, to size: UInt64) throws(SystemError) {
    try perform(SimulatedCall(kind: .truncate, path: path(of: file)), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.truncate(file, to: size)
    }
  }

  package func reserve(
    _ file: FileDescriptor, offset: UInt64, count: UInt64
  ) throws(SystemError) {
    let call = SimulatedCall(
      kind: .reserve, path: path(of: file), offset: offset, count: Int(clamping: count))
    try perform(call, claiming: ()) { (state, manner) throws(SystemError) in
      var part = count
      if case .partial(let limit) = manner { part = min(count, UInt64(limit)) }
      try state.checkSpace(file, end: offset &+ part, "fallocate")
      try state.disk.reserve(file, offset: offset, count: part)
    }
  }

  package func size(of file: FileDescriptor) throws(SystemError) -> UInt64 {
    try perform(SimulatedCall(kind: .size, path: path(of: file)), claiming: nil) {
      (state, _) throws(SystemError) in
      try state.disk.live.size(of: file)
    }
  }

  package func identity(of file: FileDescriptor) throws(SystemError) -> FileIdentity {
    try perform(SimulatedCall(kind: .identity, path: path(of: file)), claiming: nil) {
      (state, _) throws(SystemError) in
      FileIdentity(
        device: device, inode: try state.disk.live.descriptor(file, for: "fstat").inode)
    }
  }

  package func tryLock(_ file: FileDescriptor) throws(SystemError) -> Bool {
    try perform(SimulatedCall(kind: .lock, path: path(of: file)), claiming: true) {
      (state, _) throws(SystemError) in
      try state.disk.tryLock(file)
    }
  }

  package func unlock(_ file: FileDescriptor) throws(SystemError) {
    try perform(SimulatedCall(kind: .unlock, path: path(of: file)), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.unlock(file)
    }
  }

  // MARK: Directories

  package func createDirectory(_ path: String) throws(SystemError) {
    try perform(SimulatedCall(kind: .createDirectory, path: path), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.createDirectory(path)
    }
  }

  /// In an order that the seed decides, so that nothing comes to lean on one.
  package func list(_ path: String) throws(SystemError) -> [String] {
    try perform(SimulatedCall(kind: .list, path: path), claiming: nil) {
      (state, _) throws(SystemError) in
      try state.checkDescriptors("open")
      return try state.disk.live.list(path).shuffled(using: &state.generator)
    }
  }

  package func rename(_ from: String, to target: String) throws(SystemError) {
    try perform(SimulatedCall(kind: .rename, path: from, target: target), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.rename(from, to: target)
    }
  }

  package func remove(_ path: String) throws(SystemError) {
    try perform(SimulatedCall(kind: .remove, path: path), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.remove(path)
    }
  }

  package func removeDirectory(_ path: String) throws(SystemError) {
    try perform(SimulatedCall(kind: .removeDirectory, path: path), claiming: ()) {
      (state, _) throws(SystemError) in
      try state.disk.removeDirectory(path)
    }
  }

  package func synchronizeDirectory(_ path: String) throws(SystemError) {
    try perform(SimulatedCall(kind: .synchronizeDirectory, path: path), claiming: ()) {
      (state, manner) throws(SystemError) in
      try state.checkDescriptors("open")
      if case .failing = manner {
        try state.disk.failSynchronizeDirectory(path)
      } else {
        try state.disk.synchronizeDirectory(path)
      }
    }
  }

  /// Not simulated: the directory has no attributes.
  package func setAttributes(
    _ path: String, _ attributes: DirectoryAttributes
  ) throws(SystemError) {}

  package func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool { false }

  // MARK: Clock, randomness, process

  package func wallClockMilliseconds() -> Int64 { clock.milliseconds }

  package func uptimeNanoseconds() -> UInt64 { clock.uptimeNanoseconds }

  package func sleep(nanoseconds: UInt64) { clock.sleep(nanoseconds: nanoseconds) }

  package func fillRandom(_ buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
    try perform(SimulatedCall(kind: .random, path: ""), claiming: nil) {
      (state, _) throws(SystemError) in
      state.generator.fill(buffer)
    }
  }

  package func processIdentifier() -> Int32 { state.withLock { $0.processIdentifier } }
}

extension SimulatedFileSystem.Manner {
  /// The bytes of a transfer that are carried out.
  fileprivate func count(_ whole: Int) -> Int {
    if case .partial(let limit) = self { return min(whole, limit) }
    return whole
  }
}
