#!/usr/bin/env python3
"""Writes the known-answer vectors of Spec/vectors (but hlc.json) for the tests, the engine's too.

usage: make_vectors.py [DIRECTORY]
"""

import json
import os
import sys

from airdb import siphash, varint
from airdb.crc32c import bound, crc

_HERE = os.path.dirname(os.path.abspath(__file__))


def checksums():
    plain = [
        ("", "empty"),
        (b"123456789".hex(), "the check value"),
        ("00" * 32, "RFC 3720 B.4: 32 bytes of zeros"),
        ("ff" * 32, "RFC 3720 B.4: 32 bytes of ones"),
        (bytes(range(32)).hex(), "RFC 3720 B.4: 32 incrementing bytes"),
        (bytes(range(31, -1, -1)).hex(), "RFC 3720 B.4: 32 decrementing bytes"),
        (
            "01c00000000000000000000000000000140000000000040000000014000000182800000000000000"
            "0200000000000000",
            "RFC 3720 B.4: an iSCSI read command",
        ),
        ("00", "one byte"),
        (b"AFRM".hex(), "4 bytes"),
        (bytes(range(256)).hex(), "all bytes"),
        (bytes(i * 7 % 251 for i in range(1027)).hex(), "an odd length"),
    ]
    places = [
        ("SEGH", 1, 0, b"123456789"),
        ("FRAM", 1, 64, b""),
        ("FRAM", 1, 72, b"123456789"),
        ("FRAM", 2, 72, b"123456789"),
        ("BLCK", 2**64 - 1, 2**40 + 8, bytes(range(100))),
        ("PAGE", 7, 4096, bytes(4092)),
        ("LIVE", 3, 96, b"\x01"),
        ("MANI", 0, 0, b"manifest"),
    ]
    return {
        "crc": [
            {"what": what, "bytes": content, "crc": f"{crc(bytes.fromhex(content)):08x}"}
            for content, what in plain
        ],
        "bound": [
            {
                "tag": tag,
                "file": str(file),
                "offset": str(offset),
                "bytes": content.hex(),
                "crc": f"{bound(tag.encode(), file, offset, content):08x}",
            }
            for tag, file, offset, content in places
        ],
    }


def varints():
    values = {0, 1, 2, 127, 128, 129, 255, 256, 300, 2**31 - 1, 2**31, 2**32 - 1, 2**32}
    for bits in range(7, 64, 7):
        values |= {2**bits - 1, 2**bits}
    values |= {2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1}
    signed = {0, -1, 1, -2, 2, 63, -64, 64, -65, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)}
    malformed = [
        ("", "no byte"),
        ("80", "cut off"),
        ("ffffffffffffffffff", "cut off behind nine bytes"),
        ("8000", "0 in two bytes"),
        ("8100", "1 in two bytes"),
        ("ff8000", "127 in three bytes"),
        ("80808080808080808000", "0 in ten bytes"),
        ("ffffffffffffffffff02", "65 bits"),
        ("ffffffffffffffffff7f", "70 bits"),
        ("80808080808080808080", "no last byte among ten"),
        ("8080808080808080808001", "eleven bytes"),
    ]
    return {
        "unsigned": [
            {"value": str(value), "bytes": varint.encode(value).hex()} for value in sorted(values)
        ],
        "zigzag": [
            {
                "value": str(value),
                "mapped": str(varint.zigzag(value)),
                "bytes": varint.encode(varint.zigzag(value)).hex(),
            }
            for value in sorted(signed)
        ],
        "malformed": [{"bytes": content, "why": why} for content, why in malformed],
    }


def key_hashes():
    counting = bytes(range(16)).hex()
    uuid = "550e8400-e29b-41d4-a716-446655440000"
    keys = [
        (counting, "", ""),
        (counting, "notes", "a"),
        (counting, "notesa", ""),
        (counting, "", "notesa"),
        (counting, "note", "sa"),
        (counting, "notes", uuid),
        (counting, "notes", uuid.upper()),
        (counting, "caf\u00e9", "\u00e9"),
        (counting, "cafe\u0301", "e\u0301"),
        (counting, "\U0001f600", "a\u0000b"),
        ("00" * 16, "notes", "a"),
        ("ff" * 16, "notes", "a"),
    ]
    keys += [(counting, "c", "0123456789abcdef"[:length]) for length in range(1, 17)]
    keys += [(counting, "c" * 4096, "i" * 300)]
    raw = [
        {
            "length": length,
            "hash": siphash.siphash128(bytes(range(16)), bytes(range(length))).hex(),
        }
        for length in range(64)
    ]
    return {
        "siphash": raw,
        "keys": [
            {
                "secret": secret,
                "collection": collection,
                "id": identifier,
                "hash": siphash.key_hash(
                    bytes.fromhex(secret), collection.encode(), identifier.encode()
                ).hex(),
            }
            for secret, collection, identifier in keys
        ],
    }


FILES = {"checksum.json": checksums, "varint.json": varints, "keyhash.json": key_hashes}


def text_of(name):
    """The content of a vector file: an item a line."""
    lists = []
    for key, items in FILES[name]().items():
        lines = ",\n".join("    " + json.dumps(item) for item in items)
        lists.append(f'  "{key}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(lists) + "\n}\n"


def main(arguments):
    directory = arguments[0] if arguments else os.path.join(_HERE, "..", "vectors")
    for name in FILES:
        with open(os.path.join(directory, name), "w", encoding="utf-8", newline="\n") as file:
            file.write(text_of(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
