import AirDbLogStore
import Foundation
import TestSupport
import Testing

/// The id of an installation: made once, kept, and never in the place of something else.
@Suite struct InstallationIdTests {
  @Test func `It is made once and kept`() throws {
    try withTemporaryDirectory { root in
      let path = root + "/installation"
      let first = try InstallationId(keptAt: path)
      #expect(first.text.utf8.count == 32)
      #expect(try InstallationId(keptAt: path) == first)
      #expect(try InstallationId(keptAt: URL(fileURLWithPath: path)) == first)
      #expect(try FileManager.default.contentsOfDirectory(atPath: root) == ["installation"])
      // As a restored app finds it.
      try FileManager.default.removeItem(atPath: path)
      #expect(try InstallationId(keptAt: path) != first)
    }
  }

  @Test(arguments: [
    "", "0123", String(repeating: "0", count: 32), String(repeating: "x", count: 32) + "\n",
    String(repeating: "0", count: 33) + "\n", String(repeating: "0", count: 32) + "\n\n",
  ])
  func `What is no id is left alone`(content: String) throws {
    let files = SimulatedFileSystem()
    try files.createDirectory("/app")
    try files.install(FileBytes(Array(content.utf8)), at: "/app/id")
    #expect { try InstallationId(keptAt: "/app/id", on: files) } throws: {
      ($0 as? LogStoreError)?.code == .alreadyExists
    }
    #expect(files.content(of: "/app/id")?.size == UInt64(content.utf8.count))
  }

  @Test func `It is durable before it can be found, and then its place is`() throws {
    let files = SimulatedFileSystem()
    _ = try InstallationId(keptAt: "/id", on: files)
    #expect(
      files.operations.map(\.kind).suffix(4) == [
        .write, .synchronize, .rename, .synchronizeDirectory,
      ])
  }

  @Test func `A failing call leaves none or a whole one`() throws {
    var failures = 0
    for number in 1...30 {
      let files = SimulatedFileSystem()
      files.inject(FaultPlan(.failing(EIO), on: .only(number)))
      let made = Result { try InstallationId(keptAt: "/id", on: files) }
      files.clearFaults()
      let id = try InstallationId(keptAt: "/id", on: files)
      #expect(try InstallationId(keptAt: "/id", on: files) == id)
      switch made {
      case .success(let made): #expect(made == id)
      case .failure(let error):
        #expect((error as? LogStoreError)?.code == .inputOutput)
        failures += 1
      }
    }
    #expect((5..<30).contains(failures))
  }
}
