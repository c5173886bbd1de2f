"""Cases of test_cross.py (recorded.py writes their values)."""

import itertools


def _sparse(tf, rows):
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [v for row in rows for v in row]
    width = max(len(row) for row in rows)
    return tf.SparseTensor(indices, tf.constant(values), [len(rows), width])


def _inputs(tf):
    return [
        _sparse(tf, [["a", "b"], ["c"]]),
        tf.constant([["x", "y"], ["z", ""]]),
        _sparse(tf, [[1, -2], [3]]),
        tf.constant([[5], [2**40]], tf.int64),
        tf.constant([[7, 8], [9, -1]], tf.int32),
    ]


def _ragged(tf):
    return [
        tf.ragged.constant([["a", "b"], ["c"]]),
        tf.ragged.constant([[1], [2, 3]]),
        tf.ragged.constant([[], ["q", "r", "s"]], dtype=tf.string),
    ]


def _plain(x):
    if hasattr(x, "row_splits"):
        return [x.values, x.row_splits]
    return [x.indices, x.values, x.dense_shape]


def case_sparse_cross(tf):
    all_inputs = _inputs(tf)
    return [
        _plain(tf.sparse.cross(list(some), separator=separator))
        for n in (1, 2, 3)
        for some in itertools.permutations(all_inputs, n)
        for separator in (None, "-", "")
    ]


def case_sparse_cross_hashed(tf):
    all_inputs = _inputs(tf)
    return [
        _plain(tf.sparse.cross_hashed(list(some), num_buckets=buckets, hash_key=key))
        for n in (1, 2, 3)
        for some in itertools.permutations(all_inputs, n)
        for buckets, key in ((0, None), (100, None), (0, 7), (10, -1))
    ]


def case_sparse_cross_of_ragged(tf):
    return _plain(tf.sparse.cross(_ragged(tf)))


def case_ragged_cross(tf):
    all_inputs = _inputs(tf)[:3] + _ragged(tf)
    return [
        _plain(tf.ragged.cross(list(some)))
        for n in (1, 2, 3)
        for some in itertools.permutations(all_inputs, n)
        if any(hasattr(x, "row_splits") for x in some)
    ]


def case_ragged_cross_hashed(tf):
    all_inputs = _inputs(tf)[:3] + _ragged(tf)
    return [
        _plain(tf.ragged.cross_hashed(list(some), num_buckets=buckets, hash_key=key))
        for n in (1, 2)
        for some in itertools.permutations(all_inputs, n)
        for buckets, key in ((0, None), (100, 5))
    ]


def _parts(tf):
    a, d, b, e, _ = _inputs(tf)
    return {
        "indices": [a.indices, b.indices],
        "values": [a.values, tf.cast(b.values, tf.int64)],
        "shapes": [a.dense_shape, b.dense_shape],
        "dense_inputs": [d, e],
    }


def case_hashed_v2(tf):
    out = []
    for buckets in (0, 50):
        parts = _parts(tf)
        out.append(
            tf.raw_ops.SparseCrossHashed(
                num_buckets=buckets, strong_hash=False, salt=[3, 4], **parts
            )
        )
        parts["dense_inputs"] = []
        out.append(
            tf.raw_ops.SparseCrossHashed(
                num_buckets=buckets, strong_hash=True, salt=[3, 4], **parts
            )
        )
    return out


def case_hashed_v2_salt(tf):
    return tf.raw_ops.SparseCrossHashed(
        num_buckets=0, strong_hash=False, salt=[3], **_parts(tf)
    )


def case_texts_of_numbers(tf):
    return tf.raw_ops.SparseCross(
        hashed_output=False,
        num_buckets=0,
        hash_key=1,
        out_type=tf.string,
        internal_type=tf.int64,
        **_parts(tf),
    )


def case_internal_type(tf):
    return tf.raw_ops.SparseCross(
        hashed_output=False,
        num_buckets=0,
        hash_key=1,
        out_type=tf.string,
        internal_type=tf.string,
        **_parts(tf),
    )


def _changed(tf, **keys):
    return tf.raw_ops.SparseCrossV2(sep="_", **{**_parts(tf), **keys})


def case_rows_differ(tf):
    return _changed(tf, shapes=[[3, 2], [2, 2]])


def case_values_missing(tf):
    values = _parts(tf)["values"]
    return _changed(tf, values=[values[0][:2], values[1]])


def case_shape_of_three(tf):
    return _changed(tf, shapes=[[2, 2, 2], [2, 2]])


def case_dense_rows_differ(tf):
    return _changed(tf, dense_inputs=[tf.constant([["x"]]), tf.constant([["y"]])])


def case_dense_vector(tf):
    return _changed(tf, dense_inputs=[tf.constant(["x", "y"])])
