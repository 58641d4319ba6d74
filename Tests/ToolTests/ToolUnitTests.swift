#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @testable import airdb_log

  @Suite("Parts of the tool")
  struct ToolUnitTests {
    @Test("stamps increase strictly, whatever the commits' times are")
    func replayClock() {
      var clock = ReplayClock()
      let times: [UInt64] = [0, 0, 5, 3, .max, 7, 1_700_000_000, UInt64.max / 1_000, 0]
      var stamps = times.map { clock.stamp(seconds: $0, author: Array("a".utf8)) }
      // More than a counter of four digits counts.
      for _ in 0..<70_000 { stamps.append(clock.stamp(seconds: 0, author: [])) }
      #expect(stamps[0].hasPrefix("0000000000000-0000-"))
      #expect(stamps[3].hasPrefix("0000000005000-0001-"))
      #expect(zip(stamps, stamps.dropFirst()).allSatisfy { HlcComparator.compare($0, $1) < 0 })
      #expect(stamps[0].suffix(16) != stamps.last?.suffix(16))
    }

    @Test("paths become keys, and different bytes different keys")
    func keys() {
      #expect(RecordKey(gitPath: Array("a/b/c".utf8)) == RecordKey(collection: "a", id: "a/b/c"))
      #expect(RecordKey(gitPath: Array("é".utf8)) == RecordKey(collection: ".", id: "é"))
      #expect(
        RecordKey(gitPath: [0x61, 0xFF, 0x2F, 0xC3, 0xA9, 0x0A, 0xC3])
          == RecordKey(collection: "a\0ff", id: "a\0ff/é\n\0c3"))
      // Every path of up to three of these bytes: parts of characters, and what stands for them.
      let bytes: [UInt8] = [0x61, 0xC3, 0xA9, 0xE2, 0x82, 0xFF]
      var paths: [[UInt8]] = [[]]
      for _ in 0..<3 { paths += paths.flatMap { path in bytes.map { path + [$0] } } }
      let keys = Set(Set(paths).map { RecordKey(gitPath: $0) })
      #expect(keys.count == Set(paths).count)
    }

    @Test("control characters are escaped for people, and nothing else is")
    func escaping() {
      #expect(
        escapingControls("a\u{1B}\n\u{7F}\u{9F}\u{202A}z") == #"a\u{1B}\u{A}\u{7F}\u{9F}\u{202A}z"#)
      let harmless = "é日本🎉\u{A0}\u{200D}\u{2010}\u{2065}\u{206A}\u{20AC}\u{061B}\u{061D}\u{FEFF}"
      #expect(escapingControls(harmless) == harmless)
      for code: UInt32 in [0x061C, 0x200E, 0x200F, 0x2028, 0x202E, 0x2066, 0x2069] {
        let text = String(Unicode.Scalar(code)!)
        #expect(escapingControls(text) == "\\u{\(String(code, radix: 16, uppercase: true))}")
      }
    }

    @Test("figures are written as people read them")
    func figures() {
      #expect(Figures.count(0) == "0")
      #expect(Figures.count(-1_234_567) == "-1,234,567")
      #expect(Figures.count(UInt64.max) == "18,446,744,073,709,551,615")
      #expect(Figures.count(1, "page", "pages") == "1 page")
      #expect(Figures.bytes(999) == "999 bytes")
      #expect(Figures.bytes(1_500) == "1.5 kB")
      #expect(Figures.bytes(123_456_789) == "123.5 MB")
      #expect(Figures.duration(.milliseconds(1_500)) == "1.50 s")
      #expect(Figures.duration(.microseconds(250)) == "0.2 ms")
      #expect(Figures.rate(10, in: .zero) != "")
      #expect(Figures.date(Date(timeIntervalSince1970: 1_000_000_000)) == "2001-09-09T01:46:40Z")
    }

    @Test("errors of the library have the exit codes of the help")
    func exitCodes() {
      let expected: [(LogStoreError.Code, ExitCode)] = [
        (.corrupt, .damage), (.invalidTimestamp, .usage), (.storeNotFound, .notFound),
        (.inputOutput, .notFound), (.storeInUse, .refused), (.unsupportedFormat, .refused),
        (.configurationMismatch, .refused), (LogStoreError.Code(rawValue: "new"), .notFound),
      ]
      for (code, exitCode) in expected { #expect(ExitCode(code) == exitCode) }
    }
  }
#endif
