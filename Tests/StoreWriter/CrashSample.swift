import AirDbLogStore
import Foundation
import TestSupport

/// What crashes left of scripted runs on the simulated file system, written to disk.
enum CrashSample {
  /// How many images of each run are written.
  private static let count = 10

  static func writeAll(to directory: String) throws {
    let scripts: [(String, EngineScript)] = [
      ("synced", .life(.powerLoss)), ("unsynced", .life(.processCrash)), ("full", .fullTail),
      ("lost", .losses(.garbage(seed: 3))),
    ]
    var random = SeededGenerator(seed: 11)
    for (name, script) in scripts {
      let sweep = try CrashSweep(script, .least)
      // Before the first manifest there is no store to compare.
      var images = (sweep.losses.images + sweep.deaths.images).filter {
        $0.files.content(of: "\(ScriptRun.path)/MANIFEST") != nil
      }
      for number in 0..<count {
        let image = images.remove(at: Int(random.next() % UInt64(images.count)))
        try write(image, script, to: "\(directory)/\(name)-\(number)")
      }
    }
  }

  private static func write(
    _ image: CrashImage, _ script: EngineScript, to path: String
  ) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    for name in try image.files.list(ScriptRun.path) {
      guard let content = image.files.content(of: "\(ScriptRun.path)/\(name)") else { continue }
      try Data(content.bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
    let opened = try EngineExamination(script).open(image.files)
    let records = try opened.store.engine.adapterPage(after: nil, limit: .max)
    try RecordLine.lines(records).write(to: URL(fileURLWithPath: "\(path).expected.jsonl"))
    try opened.store.close()
  }
}
