#if os(macOS) || os(Linux)
  import AirDbLogStore
  import Foundation
  import Testing

  @Suite(
    "The demo where it cannot succeed",
    .enabled(if: GitFixture.git != nil, "There is no git in PATH."))
  struct DemoFailureTests {
    /// Runs the demo, which must fail, clean up, and say why.
    private func expectFailure(
      _ arguments: [String], status: Int32, saying text: String, in folder: TemporaryFolder,
      environment: [String: String?] = [:], sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Outcome {
      let temporary = try folder.newFolder("temporary")
      let outcome = try Tool.run(
        ["demo"] + arguments, in: folder,
        environment: environment.merging(["TMPDIR": temporary]) { $1 })
      #expect(outcome.status == status, "\(outcome.errors)", sourceLocation: sourceLocation)
      #expect(outcome.errors.hasPrefix("airdb-log: "), sourceLocation: sourceLocation)
      #expect(outcome.errors.contains(text), "\(outcome.errors)", sourceLocation: sourceLocation)
      #expect(try folder.names(temporary).isEmpty, sourceLocation: sourceLocation)
      return outcome
    }

    @Test("a folder that is no repository, and no folder at all")
    func noRepository() throws {
      let folder = try TemporaryFolder()
      let plain = try folder.newFolder("plain")
      // Git must not find a repository in a folder above the temporary ones.
      let ceiling: [String: String?] = ["GIT_CEILING_DIRECTORIES": folder.path]
      _ = try expectFailure(
        ["--repository", plain], status: 3, saying: "is not a git repository", in: folder,
        environment: ceiling)
      _ = try expectFailure(
        ["--repository", folder.path("none")], status: 3, saying: "There is no folder", in: folder)
    }

    @Test("a repository without a commit")
    func noCommit() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder)
      _ = try expectFailure(
        ["--repository", repository.path], status: 3, saying: "without a commit", in: folder)
    }

    @Test("a shallow clone")
    func shallow() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let clone = folder.path("shallow")
      let url = URL(fileURLWithPath: repository.path).absoluteString
      try GitFixture.git(["clone", "--quiet", "--bare", "--depth", "1", url, clone], in: folder)
      _ = try expectFailure(
        ["--repository", clone], status: 3, saying: "git fetch --unshallow", in: folder)
    }

    @Test("no git")
    func noGit() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let empty = try folder.newFolder("empty")
      for path in [empty, "", nil] {
        _ = try expectFailure(
          ["--repository", repository.path], status: 3, saying: "install git", in: folder,
          environment: ["PATH": path])
      }
    }

    @Test("a folder to keep the stores in that is not empty, or has no place")
    func keep() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      _ = try expectFailure(
        ["--repository", repository.path, "--keep", repository.path], status: 4,
        saying: "not an empty folder", in: folder)
      _ = try expectFailure(
        ["--repository", repository.path, "--keep", folder.path("a/b")], status: 3,
        saying: "Could not create", in: folder)
      #expect(try folder.names(repository.path) == [".git"])
    }

    @Test("a damaged repository, in git's words")
    func damagedRepository() throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let object = try repository.git(["rev-parse", "main~8:bin/data"])
      let path = "\(repository.path)/.git/objects/\(object.prefix(2))/\(object.dropFirst(2))"
      let bytes = try #require(FileManager.default.contents(atPath: path))
      try FileManager.default.removeItem(atPath: path)
      try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: path))
      _ = try expectFailure(
        ["--repository", repository.path], status: 3, saying: "git cat-file failed", in: folder)
    }

    @Test("a store that differs from git's tree is exit code 1, and each difference a line")
    func differences() throws {
      let folder = try TemporaryFolder()
      var history = History()
      history.commit(
        at: 1_500_000_000, [.text("same", "1"), .text("changed", "1"), .text("removed", "1")])
      history.commit(
        at: 1_500_000_001, [.text("changed", "2"), .delete("removed"), .text("added", "1")])
      let repository = try GitFixture(in: folder, history)
      // This git tells of all commits but the last; the tree is still that of the last.
      let path = try GitFixture.wrapper(
        #"case " $* " in *" log "*) exec "$git" "$@~1";; esac"#, in: folder)
      let kept = folder.path("kept")
      let outcome = try expectFailure(
        ["--repository", repository.path, "--keep", kept], status: 1, saying: "3 differences",
        in: folder, environment: ["PATH": path])
      let lines = outcome.lines.filter { $0.hasPrefix("  ") }.sorted()
      #expect(
        lines == [
          "  differs from git: changed", "  missing in the store: added", "  not in git: removed",
        ])
      #expect(!outcome.output.contains("Compared"))
      #expect(try Tool.run(["verify", "\(kept)/replayed"], in: folder).status == 0)
    }

    @Test("a git that dies in the middle", arguments: ["log", "cat-file", "ls-tree", "rev-list"])
    func dyingGit(command: String) throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let path = try GitFixture.wrapper(
        #"case " $* " in *" \#(command) "*) echo "no more" >&2; exit 7;; esac"#, in: folder)
      _ = try expectFailure(
        ["--repository", repository.path], status: 3, saying: "no more", in: folder,
        environment: ["PATH": path])
    }

    @Test("a signal ends it, its child, and its files", arguments: [SIGINT, SIGTERM, SIGHUP])
    func signals(signal: Int32) throws {
      let folder = try TemporaryFolder()
      let repository = try GitFixture(in: folder, .everything)
      let temporary = try folder.newFolder("temporary")
      let begun = folder.path("begun")
      // A git that stays, once the replay has begun.
      let path = try GitFixture.wrapper(
        """
        case " $* " in *" log "*)
          echo $$ >'\(begun).new'; mv '\(begun).new' '\(begun)'; exec sleep 1000;;
        esac
        """, in: folder)
      let process = try Tool.process(
        ["demo", "--repository", repository.path], in: folder,
        environment: ["TMPDIR": temporary, "PATH": path])
      try process.run()
      while !FileManager.default.fileExists(atPath: begun), process.isRunning {
        Thread.sleep(forTimeInterval: 0.01)
      }
      let child = try #require(
        Int32(String(contentsOfFile: begun, encoding: .utf8).trimmingCharacters(in: .newlines)))
      #expect(try folder.names(temporary).count == 1)
      kill(process.processIdentifier, signal)
      let outcome = try Tool.outcome(of: process)
      #expect(outcome.status == -signal)
      #expect(outcome.errors.isEmpty)
      #expect(try folder.names(temporary).isEmpty)
      #expect(kill(child, 0) == -1, "The child has ended.")
    }
  }
#endif
