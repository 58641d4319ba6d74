#if os(macOS) || os(Linux)
  import Testing

  @Suite("The help and the usage errors")
  struct HelpTests {
    private static let commands = [
      "help", "info", "get", "dump", "history", "tail", "consumers", "export", "import", "verify",
      "compact", "adopt", "demo",
    ]

    @Test("the overview names every command, every exit code, and no hidden command")
    func overview() throws {
      let folder = try TemporaryFolder()
      let help = try Tool.run(["help"], in: folder)
      #expect(help.status == 0)
      #expect(help.errors.isEmpty)
      for command in Self.commands { #expect(help.output.contains("\n  \(command)")) }
      for code in 0...4 { #expect(help.output.contains("\n  \(code)  ")) }
      #expect(!help.output.contains("write-until-killed"))
      #expect(try Tool.run(["--help"], in: folder).output == help.output)
    }

    @Test("each command explains itself, with its options", arguments: commands)
    func command(name: String) throws {
      let folder = try TemporaryFolder()
      let help = try Tool.run(["help", name], in: folder)
      #expect(help.status == 0)
      #expect(help.output.hasPrefix("airdb-log \(name)"))
      #expect(help.output.contains("\nExample:\n  "))
      #expect(help.output.contains("airdb-log \(name) "))
      #expect(help.output.contains("Exit codes:"))
      let asked = try Tool.run([name, "--help"], in: folder)
      #expect(asked.output == help.output)
      #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }

    @Test("the options are in the help of the commands that take them")
    func options() throws {
      let folder = try TemporaryFolder()
      let expected = [
        "dump": ["--after HLC", "--collection NAME", "--limit N"],
        "history": [
          "--after POSITION", "--from DATE", "--author NAME", "--not-author NAME",
          "--collection NAME", "--limit N", "--json",
        ],
        "tail": [
          "--after POSITION", "--author NAME", "--not-author NAME", "--collection NAME", "--json",
          "--records",
        ],
        "import": ["--create", "--any-timestamps", "--author NAME", "--batch N"],
        "export": ["--collection NAME"],
        "consumers": ["--json", "--retire NAME", "--reset NAME", "--to POSITION"],
        "demo": ["--repository PATH", "--keep DIR", "--limit N"],
        "compact": ["--dry-run"],
      ]
      for (command, options) in expected {
        let help = try Tool.run(["help", command], in: folder).output
        for option in options { #expect(help.contains("[\(option)]")) }
      }
    }

    @Test(
      "what is not called as the help says is a usage error, on the error output only",
      arguments: [
        [], ["nonsense"], ["--version"], ["help", "nonsense"], ["help", "a", "b"],
        ["write-until-killed"],
        ["info"], ["info", "a", "b"], ["info", "--unknown", "a"], ["info", "-x", "a"],
        ["get", "store", "collection"], ["get", "a", "b", "c", "d"],
        ["dump", "store", "--limit"], ["dump", "store", "--limit", "x"],
        ["dump", "store", "--limit", "-1"], ["dump", "store", "--limit=1", "--limit=2"],
        ["verify", "store", "--deletions", "2"], ["verify", "store", "--limit=1"],
        ["adopt"], ["adopt", "a", "b"], ["adopt", "--json", "a"], ["demo", "folder"],
        ["demo", "--limit", "0"],
        ["export"], ["export", "a", "b", "c"], ["import"], ["import", "a", "b", "c"],
        ["import", "--batch", "0", "a"], ["import", "--any-timestamps", "a"],
        ["tail"], ["tail", "--after", "x", "a"], ["tail", "--json", "--records", "a"],
      ])
    func usageErrors(arguments: [String]) throws {
      let folder = try TemporaryFolder()
      let outcome = try Tool.run(arguments, in: folder)
      #expect(outcome.status == 2)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.hasPrefix("airdb-log: "))
      #expect(outcome.errors.contains("airdb-log help"))
    }
  }
#endif
