"""What is nested very deeply, or contains itself, ends in a value or an error."""

import limited

_SELF = """
x = []
x.append(x)
wide = []
wide.extend([wide, wide])
d = {}
d["a"] = d
class Named:
    pass
"""

_CALLS = [
    "tf.constant({})",
    "tf.convert_to_tensor({})",
    "tf.reshape([1], {})",
    "tf.zeros({})",
    "tf.stack({})",
    "tf.constant([1.0]) + {}",
    "tf.constant([1.0])[{}]",
    "tf.Variable({})",
    "tf.make_tensor_proto({})",
    "tf.ragged.constant({})",
    "tf.function(lambda a: 1)({})",
    "tf.function(lambda a: 1)(k={})",
    "tf.function(lambda: {})()",
    "tf.function(lambda a: 1).get_concrete_function({})",
    "tf.function(lambda a: 1, input_signature=[{}])",
    "tf.nest.flatten({})",
    "tf.nest.map_structure(lambda v: v, {})",
    "tf.nest.assert_same_structure({0}, {0})",
    "tf.nest.pack_sequence_as({}, [1])",
    "tf.data.Dataset.from_tensors({})",
    "tf.data.Dataset.from_tensor_slices({})",
    "tf.while_loop(lambda *a: False, lambda *a: a, [{}])",
    "tf.concat({}, 0)",
    "tf.strings.join({})",
    "tf.map_fn(lambda v: v, {})",
    "tf.clip_by_global_norm({}, 1.0)",
    "tf.py_function(lambda: {}, [], [tf.float32])",
    "tf.numpy_function(lambda: {}, [], [tf.float32])",
    "tf.train.Checkpoint(a={})",
    "tf.raw_ops.Squeeze(input=[1.0], axis={})",
    "tf.raw_ops.AddN(inputs={})",
    "tf.type_spec_from_value({})",
    "tf.cond(tf.constant(True), lambda: {0}, lambda: {0})",
    "tf.TensorShape({})",
]


def test_lists_and_dicts_that_contain_themselves():
    program = (
        _SELF
        + f"""
for call in {_CALLS!r}:
    for name in ["x", "wide", "d"]:
        begin = time.monotonic()
        try:
            eval(call.format(name))
            print("value:", call, name)
        except (RecursionError, ValueError, TypeError, tf.errors.OpError) as e:
            pass
        assert time.monotonic() - begin < 5, call
"""
    )
    values = limited.run(program)
    # A dict is the sequence of its keys; an eager cond hands anything on.
    for line in values.splitlines():
        assert "tf.cond" in line or line.endswith("strings.join({}) d"), values


def test_variants_in_variants():
    program = """
    n = 200_000
    o = tf.raw_ops.OptionalNone()
    for _ in range(n):
        o = tf.raw_ops.OptionalFromValue(components=[o])
    print(outcome(lambda: tf.zeros_like(o).dtype))
    del o
    empty = tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.variant)
    l = empty
    for _ in range(n):
        l = tf.raw_ops.TensorListPushBack(input_handle=empty, tensor=l)
    print(outcome(lambda: tf.zeros_like(l).dtype))
    print(outcome(lambda: tf.raw_ops.AddN(inputs=[l, l]).dtype))
    print(outcome(lambda: tf.io.serialize_tensor(l)))
    del l

    @tf.function
    def grown(m):
        return tf.while_loop(
            lambda i, o: i < m,
            lambda i, o: (i + 1, tf.raw_ops.OptionalFromValue(components=[o])),
            (0, tf.raw_ops.OptionalNone()))[1]

    grown(tf.constant(n))
    l = empty
    for _ in range(50):
        l = tf.raw_ops.TensorListPushBack(input_handle=empty, tensor=l)
    assert tf.raw_ops.AddN(inputs=[l, tf.zeros_like(l)]).dtype == tf.variant
    """
    seen = limited.run(program, timeout=120).splitlines()
    assert seen[0] in ("UnimplementedError", "InvalidArgumentError"), seen
    assert seen[1:3] == ["ResourceExhaustedError"] * 2, seen
    assert seen[3] in ("ResourceExhaustedError", "UnimplementedError"), seen


def test_datasets_behind_datasets(tmp_path):
    program = """
    def chained(n, step, d=None):
        d = d or tf.data.Dataset.range(1)
        for _ in range(n):
            d = step(d)
        return d

    one = tf.data.Dataset.range(1)
    steps = [
        lambda d: d.concatenate(one),
        lambda d: tf.data.Dataset.zip((d, one)).map(lambda a, b: a),
        lambda d: d.batch(1).unbatch(),
        lambda d: d.map(lambda v: v + 1),
        lambda d: d.prefetch(0).shuffle(2),
        lambda d: one.flat_map(lambda _: d),
    ]
    for step in steps:
        d = chained(120, step)
        assert len(list(d)) in (1, 121)
        it = iter(d)
        next(it)
        tf.train.Checkpoint(it=it).write(sys.argv[1])
        del it, d
    # As deep as they may be, and deeper.
    d = chained(4990, steps[0])
    print(outcome(lambda: sum(1 for _ in d)))
    print(outcome(lambda: chained(20_000, steps[0])))
    threading.stack_size(256 << 10)
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(outcome(lambda: sum(1 for _ in d))))
    thread.start()
    thread.join()
    print(seen[0])
    """
    seen = limited.run(program, str(tmp_path / "c"), timeout=120).splitlines()
    assert seen == ["4991", "ResourceExhaustedError", "ResourceExhaustedError"]
