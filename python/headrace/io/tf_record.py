"""TFRecord files: tf.io.TFRecordWriter, TFRecordOptions, tf_record_iterator."""

import os

from headrace._load import _headrace
from headrace.context import errors
from headrace.framework.support import protos, signatures

# What zlib calls its windows: 16 more for gzip's header, minus for none.
_GZIP_BITS = 16
_DEFLATED = 8


class TFRecordCompressionType:
    """tf.compat.v1.python_io.TFRecordCompressionType."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a record file is packed; the numbers are zlib's."""

    compression_type_map = {  # noqa: RUF012
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    # Sizes of buffers, and when they are flushed, are ours to choose: they change no
    # record.
    @signatures.keeping(
        "compression_type=None, flush_mode=None, input_buffer_size=None, "
        "output_buffer_size=None, window_bits=None, compression_level=None, "
        "compression_method=None, mem_level=None, compression_strategy=None",
        prefix="",
    )
    def __init__(self):
        self.get_compression_type_string(self.compression_type)

    @classmethod
    def get_compression_type_string(cls, options):
        """ "", "ZLIB" or "GZIP", of options, a name or a number."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, int) and options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return options
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def _deflate(self):
        """(level, window bits, memory level, strategy) for the native writer."""

        def or_default(value, default):
            return default if value is None else int(value)

        if or_default(self.compression_method, _DEFLATED) != _DEFLATED:
            raise errors.InvalidArgumentError._of(
                f"compression_method {self.compression_method} is not zlib's only "
                f"one, {_DEFLATED}"
            )
        bits = or_default(self.window_bits, 15)
        if bits > 15:
            bits -= _GZIP_BITS
        return (
            or_default(self.compression_level, -1),
            bits,
            or_default(self.mem_level, 9),
            or_default(self.compression_strategy, 0),
        )


class TFRecordWriter(_headrace.RecordWriter):
    """Writes records into a new file; close it, or use it in a `with`."""

    def __init__(self, path, options=None):
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(compression_type=options)
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(os.fspath(path), kind, *options._deflate())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def tf_record_iterator(path, options=None):
    """The records of a file, as bytes."""
    kind = TFRecordOptions.get_compression_type_string(options)
    return _headrace.RecordIterator(os.fspath(path), kind)


def summary_iterator(path):
    """An iterator over the Event messages of an event file; after its end it gives
    what is written behind."""
    return map(protos.Event.FromString, tf_record_iterator(path))
