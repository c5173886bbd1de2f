"""Calls of several ops: lists, tables, control flow and datasets.

A program gets a module, its draws, and `given`, which makes a tensor with a gradient."""

import numpy as np
from draw import INDEX, NUMBERS, WIDE

RECIPES = {}


def program(run):
    name = "".join(part.title() for part in run.__name__.split("_"))
    RECIPES[name] = run
    return run


# --- Lists.


def _element(d):
    return d.shape(most=2, largest=3, empty=0)


@program
def list_stack(tf, d, given):
    """From a tensor, with some changes, back to one."""
    R, dtype, shape, n = tf.raw_ops, d.pick(*WIDE), _element(d), d.integer(1, 5)
    size = np.asarray(shape, d.pick(*INDEX))
    made = R.TensorListFromTensor(
        tensor=given(d.array(dtype, (n, *shape))), element_shape=size
    )
    for _ in range(d.integer(0, 4)):
        how, item = d.integer(0, 3), given(d.array(dtype, shape))
        if how == 0:
            made = R.TensorListPushBack(input_handle=made, tensor=item)
            n += 1
        elif how == 1 and n > 1:
            made, _popped = R.TensorListPopBack(
                input_handle=made, element_shape=size, element_dtype=dtype
            )
            n -= 1
        elif how == 2:
            made = R.TensorListSetItem(
                input_handle=made, index=d.integer(0, n - 1), item=item
            )
        else:
            n += 1
            made = R.TensorListResize(input_handle=made, size=n)
            made = R.TensorListSetItem(input_handle=made, index=n - 1, item=item)
    stacked = R.TensorListStack(
        input_handle=made,
        element_shape=size,
        element_dtype=dtype,
        num_elements=d.pick(-1, n),
    )
    return [stacked, R.TensorListLength(input_handle=made)]


@program
def list_gather_scatter(tf, d, given):
    R, dtype, shape, n = tf.raw_ops, d.pick(*WIDE), _element(d), d.integer(1, 5)
    size = np.asarray(shape, "int32")
    made = R.TensorListScatterV2(
        tensor=given(d.array(dtype, (n, *shape))),
        indices=np.asarray(d.permutation(n), "int32"),
        element_shape=size,
        num_elements=d.pick(-1, n, n + 2),
    )
    taken = R.TensorListGather(
        input_handle=made,
        indices=d.between("int32", (d.integer(0, 4),), 0, n - 1),
        element_shape=size,
        element_dtype=dtype,
    )
    one = R.TensorListGetItem(
        input_handle=made,
        index=d.integer(0, n - 1),
        element_shape=size,
        element_dtype=dtype,
    )
    return [
        taken,
        one,
        R.TensorListElementShape(input_handle=made, shape_type=tf.int64),
    ]


@program
def list_split_concat(tf, d, given):
    R, dtype, inner = tf.raw_ops, d.pick(*WIDE), _element(d)
    lengths = [d.integer(0, 3) for _ in range(d.integer(1, 4))]
    made = R.TensorListSplit(
        tensor=given(d.array(dtype, (sum(lengths), *inner))),
        element_shape=np.asarray((-1, *inner), "int32"),
        lengths=np.asarray(lengths, "int64"),
    )
    joined, sizes = R.TensorListConcatV2(
        input_handle=made,
        element_shape=np.asarray((-1, *inner), "int32"),
        leading_dims=np.asarray(lengths, "int64"),
        element_dtype=dtype,
    )
    return [joined, sizes]


@program
def list_with_gaps(tf, d, given):
    """Elements that nobody set are zeros."""
    R, dtype, shape, n = tf.raw_ops, d.pick(*NUMBERS), _element(d), d.integer(1, 5)
    size = np.asarray(shape, "int32")
    made = R.TensorListReserve(element_shape=size, num_elements=n, element_dtype=dtype)
    for _ in range(d.integer(0, n)):
        item = d.array(dtype, shape)
        made = R.TensorListSetItem(
            input_handle=made, index=d.integer(0, n - 1), item=tf.constant(item)
        )
    both = R.TensorListConcatLists(input_a=made, input_b=made, element_dtype=dtype)
    return [
        R.TensorListStack(
            input_handle=x, element_shape=size, element_dtype=dtype, num_elements=-1
        )
        for x in (made, both)
    ]


@program
def array_of_tensors(tf, d, given):
    dtype, shape, n = d.pick(*WIDE), _element(d), d.integer(1, 5)
    array = tf.TensorArray(
        dtype, size=n, dynamic_size=d.maybe(), clear_after_read=False
    )
    array = array.unstack(given(d.array(dtype, (n, *shape))))
    i = d.integer(0, n - 1)
    array = array.write(i, array.read(i) * 2)
    places = [d.integer(0, n - 1) for _ in range(3)]
    return [array.stack(), array.gather(places), array.size()]


# --- Tables.

_KEYS = ("int64", "int32", "string")
_VALUES = ("int64", "float32", "float64", "int32", "string", "bool")


def _keys(d, dtype, n):
    if dtype == "string":
        return np.asarray([b"k%d" % i for i in d.permutation(9)[:n]], object)
    return np.asarray(d.permutation(9)[:n], dtype)


def _sorted(tf, pair):
    keys, values = (np.asarray(x) for x in pair)
    order = np.argsort(keys)
    return [tf.constant(keys[order]), tf.constant(values[order])]


@program
def mutable_table(tf, d, given):
    kind, dtype, n = d.pick("int64", "string"), d.pick("int64", "float32"), 5
    default = tf.constant(d.array(dtype, ()))
    table = tf.lookup.experimental.MutableHashTable(kind, dtype, default)
    for _ in range(3):
        keys = _keys(d, kind, n)
        table.insert(tf.constant(keys), tf.constant(d.array(dtype, (n,))))
        table.remove(tf.constant(keys[: d.integer(0, 3)]))
    found = table.lookup(tf.constant(_keys(d, kind, 6).reshape(2, 3)))
    return [found, table.size(), *_sorted(tf, table.export())]


@program
def rows_in_a_table(tf, d, given):
    shape = d.shape(least=1, most=1, empty=0)
    R, dtype = tf.raw_ops, d.pick("float32", "int64")
    table = R.AnonymousMutableHashTableOfTensors(
        key_dtype=tf.int64, value_dtype=tf.as_dtype(dtype), value_shape=shape
    )
    keys = _keys(d, "int64", 4)
    R.LookupTableInsertV2(
        table_handle=table, keys=keys, values=d.array(dtype, (4, *shape))
    )
    found = R.LookupTableFindV2(
        table_handle=table,
        keys=_keys(d, "int64", 5),
        default_value=tf.constant(d.array(dtype, shape)),
    )
    return [found, R.LookupTableSizeV2(table_handle=table)]


@program
def static_table(tf, d, given):
    kind, dtype = d.pick("int64", "string", "int32"), d.pick("int64", "string")
    if kind == "int32":
        dtype = "string"
    start = tf.lookup.KeyValueTensorInitializer(
        tf.constant(_keys(d, kind, 5)), tf.constant(d.array(dtype, (5,)))
    )
    table = tf.lookup.StaticHashTable(start, tf.constant(d.array(dtype, ())))
    return [table.lookup(tf.constant(_keys(d, kind, 7))), table.size()]


@program
def vocabulary(tf, d, given):
    words = tf.constant([b"k1", b"k4", b"k7"])
    start = tf.lookup.KeyValueTensorInitializer(words, tf.range(3, dtype=tf.int64))
    table = tf.lookup.StaticVocabularyTable(start, d.integer(1, 5))
    return [table.lookup(tf.constant(_keys(d, "string", 8))), table.size()]


# --- Control flow, through functions.


def _function(tf, body, *arguments):
    """body by a traced function, which now and then does not know the shapes."""
    specs = [tf.TensorSpec(None, x.dtype) for x in arguments]
    return tf.function(body, input_signature=specs, autograph=False)(*arguments)


@program
def branch(tf, d, given):
    x = given(d.array(d.pick(*WIDE), d.shape(most=2)))
    limit = d.uniform(-2, 2)

    def body(x):
        high = tf.reduce_sum(x) > limit
        return tf.cond(high, lambda: (x * x, x + 1), lambda: (tf.sin(x), -x))

    return _function(tf, body, x)


@program
def switch(tf, d, given):
    x = given(d.array(d.pick(*WIDE), d.shape(most=2)))
    kinds = [
        lambda: x * 3,
        lambda: tf.exp(-x * x),
        lambda: tf.zeros_like(x) + x[..., :1],
    ]
    kinds = kinds[: 3 if x.shape.rank else 2]
    index = tf.constant(d.integer(-1, 4))
    return _function(tf, lambda i: tf.switch_case(i, kinds), index)


@program
def loop(tf, d, given):
    dtype, n = d.pick(*WIDE), d.integer(0, 5)
    x, w = given(d.array(dtype, (2, 3), scale=0.7)), given(d.array(dtype, (3, 3), 0.7))
    steps = d.pick(1, 2, 10)

    def body(x, w, n):
        def step(i, x, total):
            x = tf.tanh(x @ w)
            return i + 1, x, total + tf.reduce_sum(x) * tf.cast(i, x.dtype)

        start = (tf.constant(0), x, tf.zeros([], x.dtype))
        return tf.while_loop(
            lambda i, *_: i < n, step, start, parallel_iterations=steps
        )[1:]

    return _function(tf, body, x, w, tf.constant(n))


@program
def growing_loop(tf, d, given):
    """A loop whose state grows, and that ends by what it makes."""
    x = given(d.array(d.pick(*WIDE), (d.integer(1, 3), 2)))
    most = d.integer(1, 9)

    def body(x):
        return tf.while_loop(
            lambda x: tf.shape(x)[0] < most,
            lambda x: [tf.concat([x, x[-1:] * 0.5 + 1], 0)],
            [x],
            shape_invariants=[tf.TensorShape([None, 2])],
        )

    return _function(tf, body, x)


@program
def loop_with_branches(tf, d, given):
    x, n = given(d.array(d.pick(*WIDE), (3,))), d.integer(0, 5)

    def body(x):
        def step(i, x):
            odd = tf.equal(i % 2, 1)
            return i + 1, tf.cond(odd, lambda: x * x, lambda: tf.cos(x) * 2)

        return tf.while_loop(lambda i, x: i < n, step, [0, x])[1]

    return _function(tf, body, x)


@program
def scan_and_fold(tf, d, given):
    x = given(d.array(d.pick(*WIDE), (d.integer(1, 4), 2)))
    back = d.maybe()

    def body(x):
        folded = (tf.foldr if back else tf.foldl)(lambda a, b: a * 0.5 + b * b, x)
        return tf.scan(lambda a, b: a * b + 1, x, reverse=back), folded

    return _function(tf, body, x)


@program
def mapped(tf, d, given):
    x = given(d.array(d.pick(*WIDE), (d.integer(1, 4), d.integer(1, 3))))
    return _function(tf, lambda x: tf.map_fn(lambda r: tf.reduce_sum(r * r), x), x)


@program
def vectorized(tf, d, given):
    dtype = d.pick(*WIDE)
    x, w = given(d.array(dtype, (d.integer(1, 4), 3))), given(d.array(dtype, (3, 2)))

    def row(r):
        return tf.linalg.matvec(w, tf.nn.softmax(r), transpose_a=True) + tf.reduce_max(
            r
        )

    return [tf.vectorized_map(row, x)]


# --- Datasets.


def _all(tf, dataset, most=40):
    """The elements, one after another, and how many there are."""
    made = [tf.nest.flatten(e) for _, e in zip(range(most), dataset, strict=False)]
    flat = [x for element in made for x in element]
    return [
        *(
            tf.RaggedTensor.to_tensor(x) if hasattr(x, "row_splits") else x
            for x in flat
        ),
        tf.constant(len(made)),
        dataset.cardinality(),
    ]


def _source(tf, d):
    how, n = d.integer(0, 2), d.integer(0, 9)
    if how == 0:
        return tf.data.Dataset.range(n, output_type=d.pick("int64", "int32", "float32"))
    if how == 1:
        return tf.data.Dataset.range(d.integer(0, 3), n, d.integer(1, 3))
    return tf.data.Dataset.from_tensor_slices(d.array("int64", (n,)))


@program
def dataset_chain(tf, d, given):
    made = _source(tf, d)
    one = {
        "map": lambda x: x.map(lambda v: v * 2 + 1, num_parallel_calls=d.pick(None, 2)),
        "filter": lambda x: x.filter(lambda v: v % 3 != 0),
        "take": lambda x: x.take(d.integer(-1, 5)),
        "skip": lambda x: x.skip(d.integer(0, 4)),
        "repeat": lambda x: x.repeat(d.integer(0, 3)),
        "shard": lambda x: x.shard(3, d.integer(0, 2)),
        "cache": lambda x: x.cache(),
        "prefetch": lambda x: x.prefetch(2),
        "concatenate": lambda x: x.concatenate(x.take(2)),
        "take_while": lambda x: x.take_while(lambda v: v < 7),
        "unique": lambda x: x.unique(),
    }
    for _ in range(d.integer(1, 4)):
        made = one[d.pick(*one)](made)
    return _all(tf, made)


@program
def dataset_batches(tf, d, given):
    made = _source(tf, d)
    size, rest = d.integer(1, 4), d.maybe()
    how = d.integer(0, 4)
    if how == 0:
        made = made.batch(size, drop_remainder=rest, num_parallel_calls=d.pick(None, 2))
    elif how == 1:
        made = made.map(lambda v: tf.fill([tf.cast(v % 4, tf.int32)], v))
        made = made.padded_batch(size, drop_remainder=rest)
    elif how == 2:
        made = made.window(size, d.integer(1, 3), d.integer(1, 2), drop_remainder=rest)
        made = made.flat_map(lambda w: w.batch(9))
    elif how == 3:
        made = made.map(lambda v: tf.fill([tf.cast(v % 4, tf.int32)], v))
        made = made.ragged_batch(size, drop_remainder=rest)
    else:
        made = made.batch(size).unbatch().rebatch(3, drop_remainder=rest)
    return _all(tf, made)


@program
def dataset_mixes(tf, d, given):
    made, other = _source(tf, d), _source(tf, d)
    how = d.integer(0, 4)
    if how == 0:
        made = tf.data.Dataset.zip((made, other))
    elif how == 1:
        length, block = d.integer(1, 3), d.integer(1, 3)
        made = made.interleave(
            lambda v: tf.data.Dataset.from_tensors(v).repeat(3),
            cycle_length=length,
            block_length=block,
            num_parallel_calls=d.pick(None, 2),
        )
    elif how == 2:
        made = made.flat_map(lambda v: tf.data.Dataset.from_tensors((v, v + 1)))
    elif how == 3:
        same = [made, made.map(lambda v: -v)]
        choice = tf.data.Dataset.from_tensor_slices(d.between("int64", (6,), 0, 1))
        made = tf.data.Dataset.choose_from_datasets(same, choice, d.maybe())
    else:
        made = made.enumerate(start=d.integer(0, 5))
    return _all(tf, made)


@program
def dataset_shuffles(tf, d, given):
    made = _source(tf, d).shuffle(
        d.integer(1, 9), seed=d.integer(1, 99), reshuffle_each_iteration=d.maybe()
    )
    if d.maybe():
        made = made.repeat(2)
    if d.maybe():
        extra = tf.data.Dataset.random(seed=d.integer(1, 99)).take(3)
        return _all(tf, made) + _all(tf, extra)
    return _all(tf, made)


@program
def dataset_sums(tf, d, given):
    made = _source(tf, d).map(lambda v: tf.cast(v, tf.int64))
    total = made.reduce(tf.constant(3, tf.int64), lambda a, v: a * 2 + v)
    scanned = made.scan(tf.constant(1, tf.int64), lambda a, v: (a + v, a * v))
    groups = made.group_by_window(
        lambda v: v % 2, lambda k, w: w.batch(3), window_size=d.integer(1, 4)
    )
    return [total, *_all(tf, scanned), *_all(tf, groups)]


@program
def dataset_in_a_function(tf, d, given):
    x, n = given(d.array("float32", (3,))), d.integer(0, 5)

    def body(x):
        made = tf.data.Dataset.range(n).map(lambda i: tf.cast(i, tf.float32) * 0.5)
        return made.reduce(tf.zeros_like(x), lambda a, v: a + v)

    return [_function(tf, body, x)]
