#!/usr/bin/env python3
"""Reads a store by the specification alone.

usage: airdb_decode.py STORE [--jsonl | --state | --consumers | --check]

  --jsonl  every record of the log in commit order, one JSON object a line (the default)
  --state  the newest version of each key, in the order (HLC, arrival), in the same form
  --consumers  the consumers, in the order of their names, one JSON object a line
  --check  verifies everything that the specification says of the store

Fields: sequence, ordinal (in the commit), date (milliseconds since 1970), label, collection, id,
type, hlc, payload (or payload64 where it is not UTF-8), author64, signature64 (null: absent). Of a
consumer: number, name, sequence (0: at the beginning), checksum, horizon, retention ("latest
versions" or "history"), maximumAge, maximumBytes (null: none), registered, resets.

Damage is told on standard error, a line each: "CLASS: FILE: offset N: what", the class being
"corruption", "discarded tail", "derived data" or "unsupported format". Under corruption nothing
is printed on standard output; otherwise all that the store holds is.

exit status: 0 fine, 1 damage, 2 unsupported format, 3 usage, or no store
"""

import base64
import json
import os
import sys

from airdb import consumers
from airdb.check import check
from airdb.directory import DiskDirectory
from airdb.errors import NO_STORE, UNSUPPORTED_FORMAT, DecodeError
from airdb.store import Store

FINE, DAMAGE, UNSUPPORTED, USAGE = 0, 1, 2, 3
MODES = ("--jsonl", "--state", "--consumers", "--check")


def line(entry):
    """A record as a line of JSON."""
    commit, record = entry.commit, entry.record
    fields = {
        "sequence": commit.sequence,
        "ordinal": entry.ordinal,
        "date": commit.date,
        "label": commit.label.decode(),
        "collection": record.collection.decode(),
        "id": record.id.decode(),
        "type": record.type,
        "hlc": record.hlc.decode(),
    }
    try:
        fields["payload"] = record.payload.decode()
    except UnicodeDecodeError:
        fields["payload64"] = _base64(record.payload)
    fields["author64"] = _base64(record.author)
    fields["signature64"] = _base64(record.signature)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def consumer_line(consumer):
    """A consumer as a line of JSON."""
    fields = {
        "number": consumer.number,
        "name": consumer.name.decode(),
        "sequence": consumer.sequence,
        "checksum": consumer.checksum,
        "horizon": consumer.horizon,
        "retention": "history" if consumer.retention == consumers.HISTORY else "latest versions",
        "maximumAge": consumer.maximum_age if consumer.flags & consumers.HAS_AGE else None,
        "maximumBytes": consumer.maximum_bytes if consumer.flags & consumers.HAS_BYTES else None,
        "registered": consumer.registered_date,
        "resets": consumer.resets,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _consumers(store):
    data = store.directory.read(consumers.NAME)
    if data is None:
        return []
    return consumers.ConsumerFile(data, store.manifest.store_id).table.consumers


def _base64(content):
    return None if content is None else base64.b64encode(content).decode()


def run(directory, mode, out, err):
    """Reads the store, writes to the two streams, and returns the exit status."""
    try:
        store = Store(directory)
        findings = check(store) if mode == "--check" else store.findings
        if mode == "--check":
            for finding in findings:
                err.write(f"{finding}\n")
            out.write(_summary(store, findings))
        elif mode == "--consumers":
            for consumer in _consumers(store):
                out.write(consumer_line(consumer) + "\n")
        else:
            for entry in store.entries() if mode == "--jsonl" else store.state():
                out.write(line(entry) + "\n")
            for finding in findings:
                err.write(f"{finding}\n")
    except DecodeError as error:
        err.write(f"{error}\n")
        return _status([error])
    return _status(findings)


def _summary(store, findings):
    frames, records = len(store.frames), sum(frame.record_count for frame in store.frames)
    segments = f"{len(store.sealed)} sealed and {len(store.tail)} unsealed segments"
    log = f"{frames} frames of {len(store.commits)} commits, {records} records"
    return f"{segments}, {log}; {len(findings)} findings\n"


def _status(findings):
    kinds = {finding.kind for finding in findings}
    if NO_STORE in kinds:
        return USAGE
    if UNSUPPORTED_FORMAT in kinds:
        return UNSUPPORTED
    return DAMAGE if kinds else FINE


def main(arguments):
    modes = [argument for argument in arguments if argument.startswith("--")]
    paths = [argument for argument in arguments if not argument.startswith("--")]
    if len(paths) != 1 or len(modes) > 1 or any(mode not in MODES for mode in modes):
        sys.stderr.write(__doc__)
        return USAGE
    if not os.path.isdir(paths[0]):
        sys.stderr.write(f"not a directory: {paths[0]}\n")
        return USAGE
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        mode = modes[0] if modes else "--jsonl"
        return run(DiskDirectory(paths[0]), mode, sys.stdout, sys.stderr)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")
        return FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
