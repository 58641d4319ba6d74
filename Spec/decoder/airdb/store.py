"""Opening a store: the manifest, the log, what was discarded (section 2, R2, R4)."""

import re
from typing import NamedTuple

from . import block, consumers, hlc, manifest as manifests, packed, segment as segments
from .errors import DISCARDED_TAIL, NO_STORE, UNSUPPORTED_FORMAT, DecodeError
from .layout import first_nonzero

_NUMBERED_NAME = re.compile(r"([0-9a-f]{16})\.(segment|index|index\.new|liveness)")


class Entry(NamedTuple):
    """A record of the log with its place."""

    frame: object
    commit: packed.Transaction
    ordinal: int  # in the commit
    block_offset: int
    record: block.Record

    @property
    def key(self):
        return (self.record.collection, self.record.id)


class Store:
    """An opened store. `findings` are the damages that a reader survives, as DecodeErrors."""

    def __init__(self, directory):
        self.directory = directory
        self.findings = []
        self.manifest = self._read_manifest()
        log = segments.Log(self.manifest.epoch, self.manifest.hlc_format)
        self._segment_files = self._list_segment_files()
        self.sealed = []
        for entry in self.manifest.segments:
            self.sealed.append(self._scan_sealed(entry, log))
        self._check_sealed_end()
        log.last = segments.End(
            self.manifest.sealed_segment,
            self.manifest.sealed_length,
            self.manifest.sealed_sequence,
            self.manifest.sealed_checksum,
        )
        self.tail = self._follow_tail(log)
        self.end = log.last
        self.unreached = self._read_unreached()
        self._check_durable_end()
        self._check_watermarks()
        self._report_discarded()
        self._check_physical_kinds()

    @property
    def segments(self):
        """The segments of the log, in its order."""
        return self.sealed + self.tail

    @property
    def frames(self):
        return [frame for segment in self.segments for frame in segment.frames]

    @property
    def commits(self):
        return [commit for frame in self.frames for commit in frame.transactions]

    def entries(self, frames=None):
        """All records in commit order, or those of some frames."""
        for frame in self.frames if frames is None else frames:
            records = iter(frame.records)
            for commit in frame.transactions:
                for number in range(commit.record_count):
                    block_offset, record = next(records)
                    ordinal = number if record.ordinal is None else record.ordinal
                    yield Entry(frame, commit, ordinal, block_offset, record)

    def state(self):
        """The last-writer-wins state, sorted by (HLC, arrival)."""
        newest = {}
        for arrival, entry in enumerate(self.entries()):
            order = entry.record.timestamp.order
            held = newest.get(entry.key)
            if held is None or order > held[0]:
                newest[entry.key] = (order, arrival, entry)
        ranked = sorted(newest.values(), key=lambda held: held[:2])
        return [entry for _, _, entry in ranked]

    # R2.1, R2.2

    def _read_manifest(self):
        data = self.directory.read(manifests.NAME)
        if data is not None:
            return manifests.decode(data)
        for name in self.directory.names():
            match = _NUMBERED_NAME.fullmatch(name)
            is_data = match and not self._is_unfinished_creation(name, *match.groups())
            if is_data or name == consumers.NAME:
                raise DecodeError(f"absent, but there is {name}", manifests.NAME, 0)
        raise DecodeError("there is no store", manifests.NAME, 0, NO_STORE)

    def _is_unfinished_creation(self, name, digits, suffix):
        """Whether a file can be what a creation left: the segment 1 without a frame (R2.1)."""
        if suffix != "segment" or int(digits, 16) != 1:
            return False
        data = self.directory.read(name) or b""
        return not segments.find_witnesses(data, 0, 1)

    def _list_segment_files(self):
        """The ids of the segment files that are not foreign (section 2)."""
        ids = set()
        for name in self.directory.names():
            match = _NUMBERED_NAME.fullmatch(name)
            if match and match[2] == "segment":
                file_id = int(match[1], 16)
                if 1 <= file_id < self.manifest.file_id_limit:
                    ids.add(file_id)
                elif self._is_of_this_store(name, file_id):
                    message = "its id was never given out: an old manifest was put back"
                    raise DecodeError(message, name, 0)
        return ids

    def _is_of_this_store(self, name, file_id):
        try:
            header = segments.decode_header(self.directory.read(name) or b"", file_id)
        except DecodeError:
            return False
        return header.store_id == self.manifest.store_id

    # R2.3

    def _scan_sealed(self, entry, log):
        file = segments.file_name(entry.file_id)
        data = self.directory.read(file)
        if data is None:
            raise DecodeError("a sealed segment is missing", file, 0)
        if len(data) < entry.length:
            raise DecodeError(f"a sealed segment of {entry.length} bytes is cut", file, len(data))
        header = segments.decode_header(data, entry.file_id)
        self._check_sealed_header(header, file)
        # The commit before its first may have been cleaned away, the segment before it replaced.
        log.last = segments.End(
            header.predecessor,
            header.predecessor_length,
            entry.first_sequence - 1,
            header.predecessor_checksum,
        )
        segment = segments.scan(data, entry.file_id, log, limit=entry.length)
        if segment.end != entry.length:
            raise DecodeError(f"damage in a sealed segment: {segment.stop}", file, segment.end)
        beyond = first_nonzero(data, entry.length, len(data))
        if beyond is not None:
            raise DecodeError("not zero behind the last frame", file, beyond)
        self._check_entry(entry, segment)
        log.last_commit_date = entry.last_commit_date
        return segment

    def _check_sealed_header(self, header, file):
        """That it names this store, and the segment before it if that has not been replaced."""
        if header.store_id != self.manifest.store_id:
            raise DecodeError("names another store", file, 16)
        named = (header.predecessor, header.predecessor_length, header.predecessor_checksum)
        if header.predecessor == 0 and any(named):
            raise DecodeError("names no predecessor, and its end", file, 40)
        for entry in self.manifest.segments:
            if entry.file_id == header.predecessor:
                before = self.sealed[-1] if self.sealed else None
                is_before = before is not None and before.file_id == header.predecessor
                end = (entry.file_id, entry.length, entry.last_checksum)
                if not is_before or named != end:
                    raise DecodeError("names another predecessor", file, 40)

    def _check_sealed_end(self):
        """What is left of the last sealed commit has the checksum of the sealed end."""
        manifest = self.manifest
        if self.sealed:
            last = self.sealed[-1].frames[-1]
            commit = last.transactions[-1]
            if commit.sequence == manifest.sealed_sequence:
                if commit.checksum != manifest.sealed_checksum:
                    message = "the last sealed commit is not that of the manifest's sealed end"
                    raise DecodeError(message, last.file, last.offset)

    def _check_entry(self, entry, segment):
        """The manifest's entry of a sealed segment against its frames."""
        first, last = segment.frames[0], segment.frames[-1]
        if segment.is_packed:
            if not self.manifest.required_features & manifests.PACKED_FRAMES:
                message = "packed frames, but the manifest lacks their feature bit"
                raise DecodeError(message, segment.file, segments.HEADER.size)
            if last.sequence > entry.last_sequence:
                raise DecodeError("passes its lastSequence", segment.file, last.offset)
            if last.commit_date > entry.last_commit_date:
                raise DecodeError("passes its lastCommitDate", segment.file, last.offset)
        found = {
            "last_checksum": last.checksum,
            "record_count": sum(frame.record_count for frame in segment.frames),
            "entry_count": len({entry.key for entry in self.entries(segment.frames)}),
        }
        # Commits at either end of a compacted stretch may have been cleaned away.
        if not segment.is_packed or last.sequence == entry.last_sequence:
            found["last_commit_date"] = last.commit_date
        if not segment.is_packed:
            found["first_sequence"] = first.sequence
            found["last_sequence"] = last.sequence
        for name, value in found.items():
            stated = getattr(entry, name)
            if stated != value:
                message = f"the manifest has {name} {stated}, the frames have {value}"
                raise DecodeError(message, segment.file, last.offset)

    def _continues(self, header, last):
        """Whether a segment header names this store and exactly this predecessor."""
        named = (header.predecessor, header.predecessor_length, header.predecessor_checksum)
        expected = (last.segment, last.length, last.checksum)
        return header.store_id == self.manifest.store_id and named == expected

    # R2.4

    def _follow_tail(self, log):
        tail = []
        while True:
            segment = self._next_segment(log)
            if segment is None:
                return tail
            # A segment without a frame is a predecessor too: of length 64, with the checksum
            # that it names itself.
            if not segment.frames:
                log.last = log.last._replace(segment=segment.file_id, length=segments.HEADER.size)
            tail.append(segment)

    def _next_segment(self, log):
        for file_id in sorted(self._segment_files):
            if file_id <= log.last.segment:
                continue
            data = self.directory.read(segments.file_name(file_id)) or b""
            try:
                header = segments.decode_header(data, file_id)
            except DecodeError as error:
                if error.kind == UNSUPPORTED_FORMAT:
                    raise
                continue
            if self._continues(header, log.last):
                return segments.scan(data, file_id, log)
        return None

    def _read_unreached(self):
        """The segment files that are not part of the log: name, reason, witnesses in it."""
        unreached = []
        listed = {entry.file_id for entry in self.manifest.segments}
        reached = listed | {segment.file_id for segment in self.tail}
        for file_id in sorted(self._segment_files - reached):
            file = segments.file_name(file_id)
            data = self.directory.read(file) or b""
            try:
                header = segments.decode_header(data, file_id)
                reason = "its predecessor is not the log's end"
                foreign = header.store_id != self.manifest.store_id
            except DecodeError as error:
                reason, foreign = error.message, False
            if foreign:
                reason = "it is of another store"
            witnesses = []
            if file_id > self.manifest.sealed_segment and not foreign:
                witnesses = segments.find_witnesses(data, 0, file_id)
            unreached.append((file_id, reason, witnesses))
        return unreached

    # R2.5

    def _check_durable_end(self):
        manifest = self.manifest
        if manifest.end_segment == 0:
            return
        if manifest.end_sequence == manifest.sealed_sequence:
            return  # where the scan of the tail began
        for frame in (frame for segment in self.tail for frame in segment.frames):
            if frame.segment == manifest.end_segment and frame.sequence == manifest.end_sequence:
                passed = (frame.offset + frame.length, frame.checksum)
                if passed == (manifest.end_length, manifest.end_checksum):
                    if frame.commit_date != manifest.last_commit_date:
                        message = f"the manifest's lastCommitDate {manifest.last_commit_date}"
                        message += f" is not that of the durable end, {frame.commit_date}"
                        raise DecodeError(message, frame.file, frame.offset)
                    return
        place, reason = self._where_the_log_ends()
        message = f"the log does not pass through its durable end: {reason}"
        raise DecodeError(message, *place)

    def _where_the_log_ends(self):
        """The place to name when the log ends too early, and what was found there."""
        last = self.tail[-1] if self.tail else None
        if last and (last.debris is not None or last.file_id >= self.manifest.end_segment):
            return (last.file, last.end), last.stop
        for file_id, reason, _ in self.unreached:
            if file_id > (last.file_id if last else self.manifest.sealed_segment):
                return (segments.file_name(file_id), 0), reason
        if last:
            return (last.file, last.end), "no segment continues the log"
        return (segments.file_name(self.manifest.end_segment), 0), "absent"

    # R2.6

    def _check_watermarks(self):
        witnesses = [found for segment in self.segments for found in segment.witnesses]
        witnesses += [found for _, _, behind in self.unreached for found in behind]
        for found in witnesses:
            if found.sequence >> 32 > self.manifest.epoch:
                message = f"a frame of epoch {found.sequence >> 32}, above the manifest's: "
                message += "an old manifest was put back"
                raise DecodeError(message, segments.file_name(found.segment), found.offset)

        watermark = self.manifest.end_sequence
        for found in self.frames + witnesses:
            watermark = max(watermark, found.durable_sequence)
        if self.end.sequence < watermark:
            place, reason = self._where_the_log_ends()
            message = f"the log ends at {self.end.sequence:#x}, below the watermark"
            raise DecodeError(f"{message} {watermark:#x}: {reason}", *place)
        self.watermark = watermark

    # R2.7

    def _report_discarded(self):
        for segment in self.tail:
            if segment.debris is not None:
                self._report_debris(segment)
        for file_id, reason, witnesses in self.unreached:
            if not self._is_left_by_compaction(file_id, witnesses):
                message = f"a segment that is not part of the log: {reason}"
                file = segments.file_name(file_id)
                self.findings.append(DecodeError(message, file, 0, DISCARDED_TAIL))

    def _is_left_by_compaction(self, file_id, witnesses):
        """Whether a segment was replaced, should have replaced others, or never had a commit:
        nothing is lost (R2.7)."""
        if file_id <= self.manifest.sealed_segment:
            return True
        kinds = {found.kind for found in witnesses}
        return kinds <= {segments.KIND_PACKED}

    def _report_debris(self, segment):
        message = f"{len(segment.data) - segment.end} bytes behind the last frame, with "
        message += f"{len(segment.witnesses)} frame headers: {segment.stop}"
        # The log goes on in a later segment that names this one's exact end: a crash leaves
        # that only above the watermark.
        last = segment.frames[-1].sequence if segment.frames else 0
        if segment is not self.tail[-1] and self.watermark > last:
            raise DecodeError(message, segment.file, segment.end)
        self.findings.append(DecodeError(message, segment.file, segment.end, DISCARDED_TAIL))

    # Section 3, HLC.md 2

    def _check_physical_kinds(self):
        """A hybrid store holds one kind of physical part, pinned by its first record."""
        if self.manifest.hlc_format != hlc.HYBRID:
            return
        pinned = self.manifest.hlc_physical_kind
        for entry in self.entries():
            kind = entry.record.timestamp.kind
            if pinned == 0:
                pinned = kind
            if kind != pinned:
                message = "an HLC whose physical part is not of the store's kind"
                raise DecodeError(message, entry.frame.file, entry.block_offset)
