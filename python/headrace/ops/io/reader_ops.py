"""tf.compat.v1's readers: records of the files that a queue names."""

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, execution
from headrace.framework.support import signatures
from headrace.ops.io import queue_ops


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


class ReaderBase:
    """A reader by its handle."""

    def __init__(self, reader_ref, supports_serialize=False):
        execution.only_in_graphs(
            "Readers are not supported when eager execution is enabled. Instead, "
            "please use tf.data to get data into your model."
        )
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    reader_ref = read_only(
        "_reader_ref", "The handle of the reader: a scalar resource tensor."
    )
    supports_serialize = read_only(
        "_supports_serialize",
        "Whether serialize_state() and restore_state() work: bool.",
    )

    def _ask(self, what, name, **arguments):
        return _raw(what, reader_handle=self._reader_ref, name=name, **arguments)

    def read(self, queue, name=None):
        """(key, value): the next record."""
        handle = getattr(queue, "queue_ref", queue)
        return self._ask("ReaderReadV2", name, queue_handle=handle)

    def read_up_to(self, queue, num_records, name=None):
        """(keys, values) of at most so many records."""
        count = conversion.convert_to_tensor(num_records, dtypes.int64)
        handle = getattr(queue, "queue_ref", queue)
        return self._ask(
            "ReaderReadUpToV2", name, queue_handle=handle, num_records=count
        )

    def num_records_produced(self, name=None):
        """How many records were read since the start or reset(): an int64 scalar."""
        return self._ask("ReaderNumRecordsProducedV2", name)

    def num_work_units_completed(self, name=None):
        """How many files were read to their ends: an int64 scalar."""
        return self._ask("ReaderNumWorkUnitsCompletedV2", name)

    def serialize_state(self, name=None):
        """The state as a string scalar; fails when run where the reader cannot."""
        return self._ask("ReaderSerializeStateV2", name)

    def restore_state(self, state, name=None):
        """The operation that puts a state of serialize_state() back."""
        state = conversion.convert_to_tensor(state, dtypes.string)
        handle = self._reader_ref
        return queue_ops.effect(
            "ReaderRestoreStateV2", reader_handle=handle, state=state, name=name
        )

    def reset(self, name=None):
        """The operation that puts the reader back to its start."""
        return queue_ops.effect(
            "ReaderResetV2", reader_handle=self._reader_ref, name=name
        )


def _made(op, **arguments):
    """The handle of a new reader; None where ReaderBase refuses."""
    return None if _headrace.is_eager() else _raw(op, **arguments)


def _makes(op, text, serializes=False):
    """A constructor of those parameters for readers of an op; what is None is left to
    the op's defaults."""

    def begin(self, name, **given):
        attributes = {k: v for k, v in given.items() if v is not None}
        ReaderBase.__init__(self, _made(op, name=name, **attributes), serializes)

    return signatures.constructor(text, begin)


class TextLineReader(ReaderBase):
    """Lines of text files."""

    __init__ = _makes("TextLineReaderV2", "skip_header_lines=None, name=None")


class TFRecordReader(ReaderBase):
    """Records of TFRecord files."""

    def __init__(self, name=None, options=None):
        kind = getattr(options, "compression_type", options) or ""
        super().__init__(_made("TFRecordReaderV2", compression_type=kind, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Records of one size."""

    __init__ = _makes(
        "FixedLengthRecordReaderV2",
        "record_bytes, header_bytes=None, footer_bytes=None, hop_bytes=None, name=None, "
        "encoding=None",
    )


class WholeFileReader(ReaderBase):
    """Files, one record each."""

    __init__ = _makes("WholeFileReaderV2", "name=None", serializes=True)


class IdentityReader(ReaderBase):
    """The queued strings themselves."""

    __init__ = _makes("IdentityReaderV2", "name=None", serializes=True)
