#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Contents of payloads, keys and signatures that come back as other bytes from a store that takes
/// bytes for text.
///
/// Each is a case of its own. A decoder of text drops a mark of the byte order at the start, puts
/// U+FFFD in the place of what is not UTF-8, or refuses it; a C string ends at NUL; an editor's line ends
/// in CR LF; and two spellings of "é" become one.
enum SampleBytes {
  static let all: [Data] =
    unlikeText
    + texts.map { Data($0.utf8) }
    + [Data(0...255), Data((0...255).reversed()), Data(repeating: 0, count: 1_000)]

  /// Sequences of bytes that are not, or not quite, UTF-8.
  private static let unlikeText: [Data] =
    [
      [],
      // Marks of the byte order: UTF-8's alone, before text, twice, cut off; UTF-16's and UTF-32's.
      [0xEF, 0xBB, 0xBF], [0xEF, 0xBB, 0xBF, 0x41], [0xEF, 0xBB, 0xBF, 0xEF, 0xBB, 0xBF, 0x41],
      [0xEF, 0xBB], [0xFE, 0xFF, 0x00, 0x41], [0xFF, 0xFE, 0x41, 0x00],
      [0x00, 0x00, 0xFE, 0xFF], [0xFF, 0xFE, 0x00, 0x00],
      // Bytes that never occur in UTF-8, and continuations without a start.
      [0xFF, 0xFE, 0xC0], [0x80], [0x41, 0xBF, 0x42],
      // Sequences that are cut off, or longer than need be: among them the NUL of Java.
      [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x91], [0xC0, 0x80], [0xE0, 0x80, 0xAF],
      // Surrogates as UTF-8 has no place for them (CESU-8): a lone one of each kind, and a pair.
      [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80],
      // Beyond the last code point.
      [0xF4, 0x90, 0x80, 0x80],
      // Not the zero that an absent field might be stored as.
      [0],
    ].map { Data($0 as [UInt8]) }

  /// Texts that are changed on the way through some formats.
  private static let texts = [
    "text", "a\u{0}b\u{0}", "\u{0}a", "\r\n", "a\r\nb\r", "\n", "a\n", "\na", "\u{1A}", "a\u{1A}b",
    " ", " a ", "a\u{FEFF}", "\u{FFFD}", "\u{FFFE}\u{FFFF}", "\u{2028}\u{2029}\u{85}", "\u{7F}",
    "\u{E9}", "e\u{301}", "\u{1F600}", "null", "nil", "\"\"", "{}", "\\u0041", "\\x41", "AA==",
    "0x41", "a'b\"c", "%41", "&amp;", "1.0",
  ]
}
