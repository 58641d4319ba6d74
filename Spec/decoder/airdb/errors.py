"""Damage, and the class that the decision table (R4) gives it."""

CORRUPTION = "corruption"
DISCARDED_TAIL = "discarded tail"
DERIVED_DATA = "derived data"
UNSUPPORTED_FORMAT = "unsupported format"
NO_STORE = "no store"


class DecodeError(Exception):
    """Bytes that are not what the specification says; the only exception this package raises."""

    def __init__(self, message, file, offset, kind=CORRUPTION):
        super().__init__(message)
        self.message = message
        self.file = file
        self.offset = offset
        self.kind = kind

    def __str__(self):
        return f"{self.kind}: {self.file}: offset {self.offset}: {self.message}"
