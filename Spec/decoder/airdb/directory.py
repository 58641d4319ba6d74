"""The files of a store, on disk or (for tests and fuzzing) in memory."""

import os
import stat

from .errors import DecodeError


class DiskDirectory:
    """The directory at `path`."""

    def __init__(self, path):
        self.path = path

    def names(self):
        try:
            return sorted(os.listdir(self.path))
        except OSError as error:
            raise DecodeError(f"cannot be listed: {error.strerror}", ".", 0) from error

    def read(self, name):
        """The content of a file, or None if there is none of that name."""
        path = os.path.join(self.path, name)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise DecodeError("not a regular file", name, 0)
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DecodeError(f"cannot be read: {error.strerror}", name, 0) from error


class MemoryDirectory:
    """A dictionary from names to contents."""

    def __init__(self, files):
        self.files = files

    def names(self):
        return sorted(self.files)

    def read(self, name):
        return self.files.get(name)
