import Foundation

/// Where and when results were measured, without the name of the machine or a path on it.
struct Machine: Codable {
  var date = ""
  var processor = ""
  var cores = 0
  var memoryGiB = 0
  var system = ""
  var fileSystem = ""
  var swift = ""
  var commit = ""
  var loadAtStart = 0.0
  var loadAtEnd = 0.0

  static func look(work: String) -> Machine {
    var machine = Machine()
    machine.date = String(Date.now.formatted(.iso8601).prefix(10))
    machine.processor = field("model name", of: "/proc/cpuinfo") ?? output(["uname", "-m"])
    machine.cores = ProcessInfo.processInfo.activeProcessorCount
    machine.memoryGiB = Int(
      (Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30)).rounded())
    machine.system = output(["uname", "-sr"])
    machine.fileSystem = output(["stat", "-f", "-c", "%T", work])
    machine.swift =
      output(["swift", "--version"]).split(separator: "\n").first.map(String.init) ?? ""
    let isChanged = !output(["git", "status", "--porcelain", "--untracked-files=no"]).isEmpty
    machine.commit =
      output(["git", "rev-parse", "--short=12", "HEAD"]) + (isChanged ? " and changes" : "")
    machine.loadAtStart = load
    return machine
  }

  /// Processes that ran or wanted to, over the last minute.
  static var load: Double {
    let text = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? ""
    return text.split(separator: " ").first.flatMap { Double($0) } ?? 0
  }

  private static func output(_ command: [String]) -> String {
    let data = (try? ChildOutput.of(command)) ?? Data()
    return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static func field(_ name: String, of file: String) -> String? {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(separator: ":", maxSplits: 1).last.map {
      $0.trimmingCharacters(in: .whitespaces)
    }
  }
}
