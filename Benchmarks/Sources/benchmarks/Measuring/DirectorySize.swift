import CBenchmarkProbe
import Foundation

/// What the files of a directory take of the device.
enum DirectorySize {
  static func bytes(of path: String) -> UInt64 {
    guard let names = FileManager.default.enumerator(atPath: path) else { return 0 }
    var total: UInt64 = 0
    for case let name as String in names { total += probe_file_bytes(path + "/" + name) }
    return total
  }
}
