// Writes stores for other programs to read: samples for Tests/cross-check.sh, and the fixtures in
// Spec/fixtures. The same arguments always give the same records; fixtures the same bytes, but for
// what another version of liblz4 makes of a block.
import AirDbLogStore
import Foundation

let usage = """
  usage: StoreWriter samples DIRECTORY
         StoreWriter images DIRECTORY
         StoreWriter fixtures DIRECTORY
  The directory must not exist. Beside each store NAME, samples writes NAME.expected.jsonl, the
  newest versions of its records; so does images, which writes what crashes left of stores, with the
  records that the engine recovers; fixtures writes fixtures.json, what is to be expected of each.
  """

do {
  guard CommandLine.arguments.count == 3 else { throw UsageError() }
  let directory = CommandLine.arguments[2]
  try FileManager.default.createDirectory(
    atPath: directory, withIntermediateDirectories: false)
  switch CommandLine.arguments[1] {
  case "samples":
    for sample in Sample.all { try sample.write(to: directory) }
    // Ends without a word to the stores that are still open.
    _exit(0)
  case "images": try CrashSample.writeAll(to: directory)
  case "fixtures": try Fixture.writeAll(to: directory)
  default: throw UsageError()
  }
} catch is UsageError {
  FileHandle.standardError.write(Data("\(usage)\n".utf8))
  exit(2)
} catch {
  FileHandle.standardError.write(Data("StoreWriter: \(error)\n".utf8))
  exit(1)
}

struct UsageError: Error {}
