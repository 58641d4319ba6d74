#if os(macOS) || os(Linux)
  import Foundation
  import Testing

  /// The example program that holds an adapter to the contract.
  struct CheckAdapterTests {
    private static let program =
      Tool.executable.deletingLastPathComponent().appendingPathComponent("check-adapter")

    @Test("an adapter over a file of JSON Lines conforms")
    func conforming() throws {
      let folder = try TemporaryFolder()
      let outcome = try Tool.run([], in: folder, executable: Self.program)
      #expect(outcome.status == 0, "\(outcome.output)")
      #expect(outcome.output.contains("equal-timestamps"))
      #expect(!outcome.output.contains("FAILED"))
      #expect(outcome.errors.isEmpty)
    }

    @Test("pages as the guides have them are found out, and made a small case")
    func cutPages() throws {
      let folder = try TemporaryFolder()
      let outcome = try Tool.run(["--cut-pages"], in: folder, executable: Self.program)
      #expect(outcome.status == 1)
      #expect(outcome.output.contains("FAILED  equal-timestamps"))
      #expect(outcome.output.contains("read all pages, limit 1"))
      #expect(try Tool.run(["--other"], in: folder, executable: Self.program).status == 2)
    }
  }
#endif
