"""Variable-length integers (section 1). Errors are ValueErrors: the caller knows the place."""

_LIMIT = 1 << 64


def encode(value):
    """The shortest form of an unsigned 64-bit value."""
    assert 0 <= value < _LIMIT
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data, position, end):
    """The value at `position`, and the position behind it."""
    value = 0
    for index in range(10):
        if position + index >= end:
            raise ValueError("a varint is cut off")
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index > 0:
                raise ValueError("a varint is not in its shortest form")
            if value >= _LIMIT:
                raise ValueError("a varint exceeds 64 bits")
            return value, position + index + 1
    raise ValueError("a varint is longer than 10 bytes")


def zigzag(value):
    """Maps a signed 64-bit value to an unsigned one."""
    assert -(1 << 63) <= value < 1 << 63
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value):
    """The signed value that `zigzag` maps to `value`."""
    return (value >> 1) ^ -(value & 1)
