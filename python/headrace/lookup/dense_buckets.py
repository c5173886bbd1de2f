"""The layout in which DenseHashTable exports its contents, as TensorFlow reads them.

A row a bucket, a power of two of them: the key and its value, or the empty key and
zeros. A key lies in the first free bucket of h, h + 1, h + 1 + 2, h + 1 + 2 + 3, …
where h is its hash; that of an integer is the integer itself.
"""

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import errors

_FULL = 0.8  # at most so much of the buckets is taken
DEFAULT_BUCKETS = 1 << 17


def is_count(count):
    """Whether a table can have so many buckets."""
    return count >= 4 and not count & (count - 1)


def check_count(count):
    """The number of buckets to begin with, or InvalidArgumentError."""
    count = DEFAULT_BUCKETS if count is None else int(count)
    if not is_count(count):
        raise errors.InvalidArgumentError._of(
            f"Number of buckets must be at least 4 and a power of 2, got: {count}"
        )
    return count


def arrange(keys, values, empty, count):
    """(keys [n, 1], values [n, elements]) in at least `count` buckets.

    `keys` and `values` are eager tensors of the contents, `empty` the empty key.
    """
    hashes = _hashes(keys)
    while len(hashes) > _FULL * count:
        count *= 2
    taken = {}
    for row, place in enumerate(hashes):
        place, step = place & (count - 1), 0
        while place in taken:
            step += 1
            place = (place + step) & (count - 1)
        taken[place] = row
    places, rows = list(taken), list(taken.values())
    names, contents = keys.numpy(), values.numpy()
    key_rows = np.full([count, 1], empty.numpy(), names.dtype)
    nothing = b"" if contents.dtype == object else 0
    shape = [count, *(contents.shape[1:] or [1])]
    value_rows = np.full(shape, nothing, contents.dtype)
    key_rows[places, 0] = names[rows]
    value_rows[places] = contents[rows].reshape(len(rows), *shape[1:])
    make = _headrace.make_tensor
    return make(key_rows, keys.dtype), make(value_rows, values.dtype)


def _hashes(keys):
    if keys.dtype.is_integer:
        return keys.numpy().tolist()
    if keys.dtype.name != "string":
        raise NotImplementedError(f"DenseHashTable: export of {keys.dtype.name} keys")
    hashed = raw.StringToHashBucket(keys, num_buckets=1 << 62)
    return hashed.numpy().tolist()
