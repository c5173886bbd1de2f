"""Variables whose rows or columns stand for words, when the words change."""

import numpy as np

from headrace.framework import dtypes
from headrace.framework.support import signatures
from headrace.io import gfile
from headrace.ops import array_ops


class VocabInfo(
    signatures.tuple_of(
        "VocabInfo",
        "new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size=-1, "
        "backup_initializer=None, axis=0",
    )
):
    """Which words the rows (or with axis=1 the columns) of a variable stand for.

    Files with a word a line: `new_vocab`, of which `new_vocab_size` lines count, and
    behind these `num_oov_buckets`; `old_vocab` of the checkpoint, of which
    `old_vocab_size` lines count (-1: all). Words that the checkpoint does not have get
    values of `backup_initializer`, or zeros.
    """

    @staticmethod
    def _check(given):
        if given["axis"] not in (0, 1):
            raise ValueError(
                "The only supported values for the axis argument are 0 and 1.  "
                f"Provided axis: {given['axis']}"
            )


def _words(path, count):
    with gfile.GFile(path, "rb") as file:
        words = [line.rstrip(b"\r\n") for line in file.read().splitlines()]
    if count > len(words):
        raise ValueError(f"{path} has {len(words)} words, not {count}")
    return words if count < 0 else words[:count]


class Remapping:
    """Makes of a tensor of the checkpoint the first value of a variable, or of one of
    its parts."""

    def __init__(self, info, part):
        places = {
            w: i for i, w in enumerate(_words(info.old_vocab, info.old_vocab_size))
        }
        new = _words(info.new_vocab, info.new_vocab_size)
        found = [places.get(word, -1) for word in new] + [-1] * info.num_oov_buckets
        slices = getattr(part, "_save_slice_info", None)
        offset = 0 if slices is None else slices.var_offset[info.axis]
        self._shape = part.shape.as_list()
        size = self._shape[info.axis]
        if offset + size > len(found):
            raise ValueError(
                f"{part.name} has {size} places from {offset} on for {len(found)} words "
                f"and buckets of {info.new_vocab}"
            )
        self._old_places = np.array(found[offset : offset + size], np.int64)
        self._dtype = dtypes.as_dtype(part.dtype).base_dtype
        self._info = info

    def __call__(self, old):
        axis, known = self._info.axis, self._old_places >= 0
        rows = array_ops.gather(old, np.maximum(self._old_places, 0), axis=axis)
        rows = array_ops.reshape(rows, self._shape)
        if known.all():
            return rows
        make = self._info.backup_initializer
        if make is None:
            others = array_ops.zeros_like(rows)
        else:
            others = make(self._shape, dtype=self._dtype)
        known = known[:, None] if axis == 0 and len(self._shape) > 1 else known
        return array_ops.where(known, rows, others)
