"""CRC-32C and the checksum bound to a place (section 1)."""

import struct

_REFLECTED_POLYNOMIAL = 0x82F63B78  # 0x1EDC6F41 with its bits reversed


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_REFLECTED_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _table()


def crc(data, previous=0):
    """The CRC-32C of `data`; `previous` is the CRC of the bytes before them, if there are any."""
    table = _TABLE
    value = previous ^ 0xFFFFFFFF
    for byte in bytes(data):
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def bound(tag, file, offset, data):
    """`data`'s checksum bound to the file and the offset where it belongs."""
    return crc(data, crc(struct.pack("<4sQQ", tag, file, offset)))
