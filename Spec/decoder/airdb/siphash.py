"""SipHash-2-4 with 128-bit output, and the key hash made of it (section 7)."""

import struct

_MASK = 0xFFFFFFFFFFFFFFFF


def _rotate(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _rounds(count, v0, v1, v2, v3):
    for _ in range(count):
        v0 = (v0 + v1) & _MASK
        v1 = _rotate(v1, 13) ^ v0
        v0 = _rotate(v0, 32)
        v2 = (v2 + v3) & _MASK
        v3 = _rotate(v3, 16) ^ v2
        v0 = (v0 + v3) & _MASK
        v3 = _rotate(v3, 21) ^ v0
        v2 = (v2 + v1) & _MASK
        v1 = _rotate(v1, 17) ^ v2
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def siphash128(key, data):
    """The 16 bytes of SipHash-2-4-128 of `data` under a `key` of 16 bytes."""
    k0, k1 = struct.unpack("<QQ", key)
    v0 = k0 ^ 0x736F6D6570736575
    v1 = k1 ^ 0x646F72616E646F6D ^ 0xEE
    v2 = k0 ^ 0x6C7967656E657261
    v3 = k1 ^ 0x7465646279746573

    # The last word holds the bytes that are left over and, on top, the length modulo 256.
    whole = len(data) & ~7
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + last):
        v3 ^= word
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3)
        v0 ^= word

    v2 ^= 0xEE
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2, v3)
    return struct.pack("<QQ", first, v0 ^ v1 ^ v2 ^ v3)


def key_hash(secret, collection, identifier):
    """The 16 bytes that stand for the key (collection, id) in the index."""
    return siphash128(secret, struct.pack("<I", len(collection)) + collection + identifier)
