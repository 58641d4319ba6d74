import AirDbLogStore
import Testing

/// What a new store's directory is told on Apple platforms; the calls themselves are exercised by
/// Tests/apple-check.sh.
struct DirectoryAttributesTests {
  /// Notes what a directory is told, and after which calls.
  final class Recorder: WrappedPlatform {
    struct Told: Equatable {
      var path: String
      var attributes: DirectoryAttributes
      /// The files that are in the directory by then.
      var names: [String]
    }

    let wrapped = MemoryPlatform()
    let told = Locked<[Told]>([])
    let failure: SystemError?

    init(failure: SystemError? = nil) {
      self.failure = failure
    }

    func setAttributes(_ path: String, _ attributes: DirectoryAttributes) throws(SystemError) {
      let names = try wrapped.list(path).filter { $0 != "LOCK" }
      told.withLock { $0.append(Told(path: path, attributes: attributes, names: names)) }
      if let failure { throw failure }
    }

    func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool {
      told.withLock { $0.contains { $0.path == path && $0.attributes.isExcludedFromBackup } }
    }
  }

  private var configuration: Configuration {
    var configuration = Configuration()
    configuration.fileProtection = .complete
    configuration.isExcludedFromBackup = true
    return configuration
  }

  @Test func aNewStoreIsToldBeforeItHasAnyContent() throws {
    let platform = Recorder()
    let store = try ChangeStore(path: "/store", configuration, platform: platform)
    var attributes = DirectoryAttributes()
    attributes.protection = .complete
    attributes.isExcludedFromBackup = true
    #expect(
      platform.told.withLock { $0 }
        == [Recorder.Told(path: "/store", attributes: attributes, names: [])])
    #expect(try store.isExcludedFromBackup)

    try store.close()
    try ChangeStore(path: "/store", configuration, platform: platform).close()
    #expect(platform.told.withLock { $0.count } == 1, "a store that is there is told again")
  }

  @Test func aCopyIsToldAsWell() throws {
    let platform = Recorder()
    let store = try ChangeStore(path: "/store", configuration, platform: platform)
    try store.backUp(to: "/copy")
    #expect(platform.told.withLock { $0.map(\.path) } == ["/store", "/copy"])
    #expect(platform.told.withLock { $0.last?.names } == [])
  }

  @Test func withoutSuchOptionsNothingIsTold() throws {
    let platform = Recorder()
    let store = try ChangeStore(path: "/store", Configuration(), platform: platform)
    #expect(platform.told.withLock { $0 } == [])
    #expect(try !store.isExcludedFromBackup)
  }

  /// A store that would not be protected as asked is not created.
  @Test func aRefusalLeavesNoStore() throws {
    let failure = SystemError(errno: 1, call: "setAttributes")
    let platform = Recorder(failure: failure)
    let error = #expect(throws: LogStoreError.self) {
      _ = try ChangeStore(path: "/store", configuration, platform: platform)
    }
    #expect(error?.errno == 1)
    #expect(try !platform.list("/store").contains("MANIFEST"))
  }
}
