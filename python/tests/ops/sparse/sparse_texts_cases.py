"""Cases of test_sparse_texts.py (recorded.py writes their values)."""


def _sparse(tf, kind="float32"):
    values = tf.cast([1, 0, 3], kind) if kind != "string" else ["a", "", "c" * 40]
    return tf.SparseTensor([[0, 1], [0, 3], [2, 0]], tf.constant(values), [3, 4])


KINDS = ("float32", "float64", "int32", "int64", "bool", "complex64", "string")


def case_serialize(tf):
    return [tf.io.serialize_sparse(_sparse(tf, kind)) for kind in KINDS]


def case_serialize_many(tf):
    return [tf.io.serialize_many_sparse(_sparse(tf, kind)) for kind in KINDS]


def _parts(x):
    return [x.indices, x.values, x.dense_shape]


def case_there_and_back(tf):
    return [
        _parts(
            tf.io.deserialize_many_sparse(
                tf.io.serialize_many_sparse(_sparse(tf, kind)), kind
            )
        )
        for kind in KINDS
    ]


def case_stacked(tf):
    x = tf.io.serialize_sparse(_sparse(tf))
    wide = tf.io.serialize_sparse(tf.SparseTensor([[1, 6]], [9.0], [2, 7]))
    both = tf.stack([x, wide])
    return [
        _parts(tf.io.deserialize_many_sparse(both, tf.float32, rank=3)),
        *(
            tf.raw_ops.DeserializeSparse(serialized_sparse=s, dtype=tf.float32)
            for s in (x, both, tf.stack([both, both, both]))
        ),
    ]


def case_variants(tf):
    x = tf.io.serialize_sparse(_sparse(tf), out_type=tf.variant)
    many = tf.io.serialize_many_sparse(_sparse(tf), out_type=tf.variant)
    return [
        tf.raw_ops.DeserializeSparse(serialized_sparse=s, dtype=tf.float32)
        for s in (x, many)
    ]


def _back(tf, x, dtype="float32"):
    return tf.raw_ops.DeserializeManySparse(serialized_sparse=x, dtype=dtype)


def case_other_dtype(tf):
    return _back(tf, tf.io.serialize_many_sparse(_sparse(tf)), "int32")


def case_no_proto(tf):
    return _back(tf, [["zz", "zz", "zz"]])


def case_two_parts(tf):
    return _back(tf, tf.io.serialize_sparse(_sparse(tf))[:2])


def case_no_rows(tf):
    return _back(tf, tf.zeros([0, 3], tf.string))


def case_ranks_differ(tf):
    line = tf.io.serialize_sparse(tf.SparseTensor([[1]], [9.0], [2]))
    return _back(tf, tf.stack([tf.io.serialize_sparse(_sparse(tf)), line]))


def case_rows_of_nothing(tf):
    return tf.io.serialize_many_sparse(tf.SparseTensor([[0]], [1.0], [1]))


def case_dtype_mixed_up(tf):
    x = tf.io.serialize_sparse(_sparse(tf))
    return _back(tf, tf.stack([x[1], x[1], x[1]]))
