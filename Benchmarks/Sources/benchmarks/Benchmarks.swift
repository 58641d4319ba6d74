import Foundation

/// Without arguments of a worker it is the runner, which starts itself again for each measurement.
@main
enum Benchmarks {
  static let workerFlag = "--worker"

  static func main() async {
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      if arguments.first == workerFlag, arguments.count == 2 {
        let task = try JSONDecoder().decode(Case.self, from: Data(arguments[1].utf8))
        let result = try await Worker(task).run()
        FileHandle.standardOutput.write(try JSONEncoder().encode(result))
        return
      }
      let options = try Options(arguments)
      if options.showsHelp { return print(Options.help) }
      if let sizes = options.growth {
        try Growth(options, sizes).run()
      } else if options.isAboutAmplification {
        try Amplification(options).run()
      } else {
        try Comparison(options).run()
      }
    } catch {
      FileHandle.standardError.write(Data("benchmarks: \(error)\n".utf8))
      exit(1)
    }
  }
}
