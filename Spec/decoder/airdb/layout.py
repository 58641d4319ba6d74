"""Fixed structures as tables, row for row those of the specification.

One table decodes, encodes and annotates (make_hexdump.py) a structure.
"""

import struct
from types import SimpleNamespace

from .errors import CORRUPTION, DecodeError

_INTEGERS = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "i64": "<q"}


class Layout:
    """A structure: rows of (offset, type, name).

    Types are `u8 u16 u32 u64 i64`, and `N bytes`. A row named `reserved` must be zero.
    """

    def __init__(self, *rows):
        self.rows = []
        end = 0
        for offset, kind, name in rows:
            assert offset == end, f"{name} is not at {end}"
            if kind in _INTEGERS:
                size = struct.calcsize(_INTEGERS[kind])
            else:
                size = int(kind.split()[0])
            self.rows.append((offset, size, kind, name))
            end = offset + size
        self.size = end

    def decode(self, data, at, file, damage=CORRUPTION):
        """The fields at `at`, which the caller has checked to be there."""
        fields = SimpleNamespace()
        for offset, size, kind, name in self.rows:
            content = bytes(data[at + offset : at + offset + size])
            if name == "reserved":
                if any(content):
                    raise DecodeError("reserved bytes are not zero", file, at + offset, damage)
            elif kind in _INTEGERS:
                setattr(fields, name, struct.unpack(_INTEGERS[kind], content)[0])
            else:
                setattr(fields, name, content)
        return fields

    def encode(self, **values):
        """The bytes of a structure with these fields."""
        out = bytearray()
        for _, size, kind, name in self.rows:
            if name == "reserved":
                out += bytes(size)
            elif kind in _INTEGERS:
                out += struct.pack(_INTEGERS[kind], values.pop(name))
            else:
                content = values.pop(name)
                assert len(content) == size, name
                out += content
        assert not values, values
        return bytes(out)

    def offset_of(self, name):
        return next(row[0] for row in self.rows if row[3] == name)


def first_nonzero(data, start, end):
    """The offset of the first byte in `data[start..<end]` that is not zero, or None."""
    rest = bytes(data[start:end]).lstrip(b"\0")
    return end - len(rest) if rest else None


def padded(length, multiple=8):
    """The least multiple of `multiple` that is not below `length`."""
    return -(-length // multiple) * multiple
