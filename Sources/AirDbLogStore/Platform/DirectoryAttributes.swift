#if canImport(Darwin)
  import Foundation
#endif

/// What a directory can be told on Apple platforms. Files that are created in it later inherit the
/// protection; the exclusion covers all that is in it.
package struct DirectoryAttributes: Sendable, Equatable {
  /// When the content can be read while the device is locked; nil leaves it to the system.
  package var protection: Protection?
  package var isExcludedFromBackup = false

  /// The classes of data protection.
  package enum Protection: Sendable, Equatable {
    case complete, completeUnlessOpen, completeUntilFirstUserAuthentication, unprotected
  }

  package init() {}
}

extension SystemPlatform {
  package func setAttributes(
    _ path: String, _ attributes: DirectoryAttributes
  ) throws(SystemError) {
    #if canImport(Darwin)
      do {
        if let protection = attributes.protection {
          try FileManager.default.setAttributes(
            [.protectionKey: FileProtectionType(protection)], ofItemAtPath: path)
        }
        if attributes.isExcludedFromBackup {
          var url = URL(fileURLWithPath: path, isDirectory: true)
          var values = URLResourceValues()
          values.isExcludedFromBackup = true
          try url.setResourceValues(values)
        }
      } catch {
        throw SystemError(error, call: "setAttributes")
      }
    #endif
  }

  package func isExcludedFromBackup(_ path: String) throws(SystemError) -> Bool {
    #if canImport(Darwin)
      do {
        let url = URL(fileURLWithPath: path, isDirectory: true)
        return try url.resourceValues(forKeys: [.isExcludedFromBackupKey]).isExcludedFromBackup
          ?? false
      } catch {
        throw SystemError(error, call: "resourceValues")
      }
    #else
      return false
    #endif
  }
}

#if canImport(Darwin)
  extension FileProtectionType {
    fileprivate init(_ protection: DirectoryAttributes.Protection) {
      self =
        switch protection {
        case .complete: .complete
        case .completeUnlessOpen: .completeUnlessOpen
        case .completeUntilFirstUserAuthentication: .completeUntilFirstUserAuthentication
        case .unprotected: .none
        }
    }
  }

  extension SystemError {
    /// The failed system call behind an error of Foundation; `EIO` if it does not tell one.
    fileprivate init(_ error: any Error, call: String) {
      let error = error as NSError
      let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
      self.init(
        errno: cause.domain == NSPOSIXErrorDomain ? Int32(clamping: cause.code) : EIO, call: call)
    }
  }
#endif
