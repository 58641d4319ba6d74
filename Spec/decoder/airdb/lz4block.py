"""Decompression of one LZ4 block (section 6). Errors are ValueErrors: the caller knows the place.

A block is a run of sequences: a token (literal length in its high half, match length less 4 in its
low one; 15 goes on in bytes that are added up, up to the first that is not 255), literals, a
16-bit match offset, the rest of the match length. The last sequence ends behind its literals.
"""

_SHORTEST_MATCH = 4
_LAST_LITERALS = 5


def decompress(stored, raw_length):
    """The `raw_length` bytes that `stored` decompresses to, exactly."""
    out = bytearray()
    position = 0
    after_match = False
    while True:
        if position >= len(stored):
            raise ValueError("LZ4: the block ends without a last sequence of literals")
        token = stored[position]
        literals, position = _length(stored, position + 1, token >> 4, raw_length)
        if literals > len(stored) - position:
            raise ValueError("LZ4: literals pass the end of the block")
        if literals > raw_length - len(out):
            raise ValueError("LZ4: more bytes than the raw length")
        out += stored[position : position + literals]
        position += literals

        if position == len(stored):
            if after_match and literals < _LAST_LITERALS:
                raise ValueError("LZ4: fewer than 5 literals behind the last match")
            if len(out) != raw_length:
                raise ValueError("LZ4: fewer bytes than the raw length")
            return bytes(out)

        if len(stored) - position < 2:
            raise ValueError("LZ4: a match offset is cut off")
        offset = stored[position] | stored[position + 1] << 8
        position += 2
        if offset == 0 or offset > len(out):
            raise ValueError("LZ4: a match begins before the first byte")
        length, position = _length(stored, position, token & 15, raw_length)
        length += _SHORTEST_MATCH
        if length > raw_length - len(out):
            raise ValueError("LZ4: more bytes than the raw length")
        _copy_match(out, offset, length)
        after_match = True


def _length(stored, position, nibble, limit):
    """A length that starts in a token's `nibble`, and the position behind what continues it."""
    if nibble < 15:
        return nibble, position
    length = 15
    while True:
        if position >= len(stored):
            raise ValueError("LZ4: a length is cut off")
        byte = stored[position]
        position += 1
        length += byte
        if byte < 255:
            return length, position
        if length > limit:
            raise ValueError("LZ4: more bytes than the raw length")


def _copy_match(out, offset, length):
    """Appends `length` bytes from `offset` bytes back; a match may overlap what it appends."""
    start = len(out) - offset
    if offset >= length:
        out += out[start : start + length]
    else:
        period = bytes(out[start:])
        out += (period * (length // offset + 1))[:length]
