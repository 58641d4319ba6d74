"""Reading forward through a range of bytes of a file."""

from . import varint
from .errors import DecodeError


class Cursor:
    """A place in `start..<end`. What does not fit there is an error that names it."""

    subject = ""  # what is being read, for messages

    def __init__(self, data, start, end, file):
        self.data, self.position, self.end, self.file = data, start, end, file

    def fail(self, message, offset=None):
        where = self.position if offset is None else offset
        raise DecodeError(f"{self.subject}: {message}", self.file, where)

    def bytes(self, count):
        if count > self.end - self.position:
            self.fail("cut off")
        start = self.position
        self.position += count
        return bytes(self.data[start : self.position])

    def varint(self):
        try:
            value, self.position = varint.decode(self.data, self.position, self.end)
        except ValueError as error:
            self.fail(str(error))
        return value
