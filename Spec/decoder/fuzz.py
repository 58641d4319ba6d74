#!/usr/bin/env python3
"""Feeds mutated stores to the decoder.

usage: fuzz.py [COUNT [SEED]]

Whatever the bytes, the decoder answers with records or with a DecodeError; and without checksums
forged, the records are those of the store, or a prefix of them where the store was not closed.
Half of the mutants have their checksums forged, so that the code behind them is reached.
"""

import io
import random
import sys
import traceback

import make_store
from airdb import block, manifest, segment
from airdb.crc32c import bound, crc
from airdb.directory import MemoryDirectory
from airdb.store import Store
from airdb_decode import FINE, MODES, run

EXTREMES = [0, 1, 2, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


def answers(files):
    """What the decoder says in each mode: exit status, standard output, standard error."""
    found = {}
    for mode in MODES:
        out, err = io.StringIO(), io.StringIO()
        found[mode] = (run(MemoryDirectory(files), mode, out, err), out.getvalue(), err.getvalue())
    return found


def mutate(files, rng):
    """One store with a few bytes, sectors or files that are not what was written."""
    files = dict(files)
    names = [name for name in sorted(files) if files[name]]
    name = rng.choice(names)
    content = bytearray(files[name])
    at = rng.randrange(len(content))
    what = rng.randrange(10)
    if what <= 3:
        content[at] ^= 1 << rng.randrange(8)
    elif what == 4:
        size = rng.choice([1, 2, 4, 8])
        value = rng.choice(EXTREMES) % (1 << 8 * size)
        content[at : at + size] = value.to_bytes(size, "little")[: len(content) - at]
    elif what == 5:
        del content[at:]
    elif what == 6:
        content += bytes(rng.choice([0, 0, 0xAA]) for _ in range(rng.choice([1, 8, 64, 512])))
    elif what == 7:
        start = at // 512 * 512
        end = min(start + 512, len(content))
        filling = rng.choice([bytes(end - start), rng.randbytes(end - start)])
        content[start:end] = filling
    elif what == 8:
        other = rng.randrange(len(content))
        size = min(rng.choice([8, 64, 512, 4096]), len(content) - max(at, other))
        content[at : at + size] = content[other : other + size]
    else:
        other = rng.choice(names)
        if rng.random() < 0.5:
            files[name], files[other] = files[other], files[name]
        else:
            del files[name]
        return files
    files[name] = bytes(content)
    return files


def forge(files, original):
    """Gives a mutant right checksums wherever the original had one."""
    files = {name: bytearray(content) for name, content in files.items()}
    store = Store(MemoryDirectory(original))
    stored = files.get("MANIFEST")

    def put(content, at, value):
        content[at : at + 4] = value.to_bytes(4, "little")

    previous = segment.End()
    for number, scanned in enumerate(store.segments):
        content = files.get(scanned.file)
        if content is None or len(content) < scanned.end:
            continue
        at = segment.HEADER.offset_of("predecessor_checksum")
        if scanned.predecessor == previous.segment:
            put(content, at, previous.checksum)
        else:  # it was written behind a segment that has been replaced
            previous = segment.End(checksum=int.from_bytes(content[at : at + 4], "little"))
        put(content, 8, bound(b"SEGH", scanned.file_id, 0, content[12:64]))
        for frame in scanned.frames:
            forge_frame(content, frame, previous.checksum, put)
            checksum = int.from_bytes(content[frame.offset + 4 : frame.offset + 8], "little")
            end = frame.offset + frame.length
            previous = segment.End(scanned.file_id, end, frame.sequence, checksum)
            for name in ("end", "sealed"):
                ends = (getattr(store.manifest, f"{name}_{part}") for part in ("segment", "length"))
                if stored and previous[:2] == tuple(ends):
                    put(stored, manifest.HEADER.offset_of(f"{name}_checksum"), checksum)
        if stored and number < len(store.sealed):
            at = store.manifest.segments_offset + manifest.SEGMENT.size * number
            put(stored, at + manifest.SEGMENT.offset_of("last_checksum"), previous.checksum)
    for name, content in files.items():
        if name.endswith(".index"):
            for at in range(0, len(content) - 4095, 4096):
                page = content[at + 4 : at + 4096]
                put(content, at, bound(b"PAGE", int(name[:16], 16), at, page))
        if name.endswith(".liveness") and len(content) >= 64:
            forge_liveness(content, int(name[:16], 16), put)
            if stored:
                checksum = int.from_bytes(content[8:12], "little")
                put(stored, manifest.HEADER.offset_of("liveness_checksum"), checksum)
    if stored:
        put(stored, 8, bound(b"MANI", 0, 0, stored[12:]))
    return {name: bytes(content) for name, content in files.items()}


def forge_frame(content, frame, previous_checksum, put):
    at = frame.offset
    body = at + segment.FRAME.size
    checksum = crc(content[body : body + frame.label_length + frame.table_length])
    for start in frame.block_offsets:
        lengths = [int.from_bytes(content[start + i : start + i + 4], "little") for i in (8, 12)]
        end = start + block.HEADER.size + sum(lengths)
        put(content, start, bound(b"BLCK", frame.segment, start, content[start + 4 : end]))
        checksum = crc(content[start : start + 4], checksum)
    put(content, at + segment.FRAME.offset_of("body_checksum"), checksum)
    put(content, at + segment.FRAME.offset_of("previous_checksum"), previous_checksum)
    header = content[at + 8 : at + segment.FRAME.size]
    put(content, at + 4, bound(b"FRAM", frame.segment, at, header))


def forge_liveness(content, generation, put):
    count = int.from_bytes(content[48:52], "little")
    end = min(64 + 32 * count, len(content))
    for at in range(64, end - 31, 32):
        entries = int.from_bytes(content[at + 8 : at + 16], "little")
        offset = int.from_bytes(content[at + 16 : at + 24], "little")
        if offset:
            bits = content[offset : offset + -(-entries // 8)]
            put(content, at + 24, bound(b"LIVE", generation, offset, bits))
    put(content, 8, bound(b"LIVE", generation, 0, content[12:end]))


def check_answer(found, right, closed):
    """Fails if a mutant whose checksums are not forged gave records of its own."""
    status, out, err = found["--jsonl"]
    expected = right["--jsonl"][1]
    assert status == FINE or err, "an exit status without a message"
    if "corruption" in err or "unsupported" in err or "no store" in err:
        assert not out, "records in spite of corruption"
    else:
        assert out == expected if closed else expected.startswith(out), "wrong records"


def main(arguments):
    count = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if arguments[1:] else 1
    originals = {name: make().files for name, make in make_store.EXAMPLES.items()}
    right = {name: answers(files) for name, files in originals.items()}
    statuses = {}
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name = rng.choice(sorted(originals))
        files = mutate(originals[name], rng)
        forged = rng.random() < 0.5
        try:
            if forged:
                files = forge(files, originals[name])
            found = answers(files)
            if not forged:
                check_answer(found, right[name], closed=name != "unclosed")
        except Exception:
            traceback.print_exc()
            sys.stderr.write(f"seed {seed}, mutant {number} of {name}, forged: {forged}\n")
            return 1
        key = found["--check"][0]
        statuses[key] = statuses.get(key, 0) + 1
    print(f"{count} mutants; exit statuses of --check: {dict(sorted(statuses.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
