"""Ops that call functions, iterators of several devices, sampled and chosen datasets,
packed elements: what they refuse."""

import headrace as tf
import pytest

raw = tf.raw_ops
Invalid = tf.errors.InvalidArgumentError
KINDS = {"output_types": [tf.int64], "output_shapes": [[]]}


def _long(values):
    return tf.constant(values, tf.int64)


def _range(n):
    return tf.data.Dataset.range(n)._variant_tensor


def _all(variant, spec=None):
    spec = spec or tf.TensorSpec([], tf.int64)
    return list(tf.data.experimental.from_variant(variant, spec).as_numpy_iterator())


def _traced(function, *specs):
    made = tf.function(function, autograph=False)
    return made.get_concrete_function(*specs)


def test_counted_loops_refuse():
    one = tf.TensorSpec([], tf.float32)
    body = _traced(lambda i, x: (x * 2,), tf.TensorSpec([], tf.int32), one)
    for numbers in ((0, 3, 0), (3, 0, 1), (0, 3, -1)):
        start, limit, delta = numbers
        text = f"Invalid start/limit/delta: {start} {limit} {delta}"
        with pytest.raises(Invalid, match=text):
            raw.For(start=start, limit=limit, delta=delta, input=[1.0], body=body)
    with pytest.raises(Invalid, match="start must be a scalar"):
        raw.For(start=[0], limit=3, delta=1, input=[1.0], body=body)
    with pytest.raises(Invalid, match="takes 3 arguments"):
        raw.For(start=0, limit=3, delta=1, input=[1.0, 2.0], body=body)
    with pytest.raises(Invalid):
        raw.For(start=0, limit=3, delta=1, input=[1], body=body)
    with pytest.raises(tf.errors.NotFoundError):
        raw.For(start=0, limit=3, delta=1, input=[1.0], body="nobody_has_this")
    count = tf.TensorSpec([], tf.int32)
    turned = _traced(lambda i, x: (tf.cast(x, tf.int32),), count, one)
    with pytest.raises(Invalid, match="returned a int32 as result 0"):
        raw.For(start=0, limit=3, delta=1, input=[1.0], body=turned)


def test_gradients_of_functions_refuse():
    one = tf.TensorSpec([], tf.float32)
    function = _traced(lambda x, y: (x * y,), one, one)
    with pytest.raises(Invalid, match="takes 2 arguments and the gradients of 1"):
        raw.SymbolicGradient(input=[1.0, 2.0], Tout=[tf.float32] * 2, f=function)
    with pytest.raises(Invalid, match="input 1 is a int32"):
        raw.SymbolicGradient(
            input=[1.0, tf.constant(2), 1.0], Tout=[tf.float32, tf.int32], f=function
        )
    with pytest.raises(Invalid):
        raw.SymbolicGradient(input=[1.0], Tout=[tf.float32] * 2, f=function)


def test_maps_of_rows_refuse():
    one = tf.TensorSpec([], tf.float32)
    function = _traced(lambda x, y: (x * y,), one, one)

    def run(*arguments, shapes=((),), types=(tf.float32,)):
        return raw.MapDefun(
            arguments=list(arguments),
            captured_inputs=[],
            output_types=list(types),
            output_shapes=[list(s) for s in shapes],
            f=function,
        )

    three = tf.constant([1.0, 2.0, 3.0])
    with pytest.raises(Invalid, match="Input 1 has leading dimension 2"):
        run(three, three[:2])
    with pytest.raises(Invalid, match="Input 1 has a rank of 0"):
        run(three, 1.0)
    with pytest.raises(Invalid, match="expected output shape, \\[3\\]"):
        run(three, three, shapes=[[3]])
    with pytest.raises(Invalid, match="expected output type for output: 0"):
        run(three, three, types=[tf.int32])
    with pytest.raises(Invalid):
        run(three)
    with pytest.raises(Invalid, match="must be the same length"):
        run(three, three, shapes=[[], []])
    with pytest.raises(Invalid, match="not known"):
        run(three[:0], three[:0], shapes=[[None]])


def test_iterators_of_several_devices_refuse():
    devices = {"devices": ["/cpu:0", "/cpu:0"]}
    handle = raw.AnonymousMultiDeviceIteratorV3(**devices, **KINDS)

    def begin(dataset, most=2):
        return raw.MultiDeviceIteratorInit(
            dataset=dataset, multi_device_iterator=handle, max_buffer_size=_long(most)
        )

    def take(shard, number):
        return raw.MultiDeviceIteratorGetNextFromShard(
            multi_device_iterator=handle,
            shard_num=shard,
            incarnation_id=_long(number),
            **KINDS,
        )[0].numpy()

    with pytest.raises(tf.errors.FailedPreconditionError, match="not been init"):
        take(0, 0)
    first = begin(_range(5)).numpy()
    for shard in (2, -1, 2**31 - 1):
        with pytest.raises(Invalid, match="shard_num must be in \\[0, 2\\)"):
            take(shard, first)
    with pytest.raises(Invalid, match="Invalid incarnation id: 99"):
        take(0, 99)
    second = begin(_range(5), most=-3).numpy()
    with pytest.raises(Invalid, match="Invalid incarnation id"):
        take(0, first)
    assert [take(0, second), take(1, second), take(1, second)] == [0, 1, 3]
    with pytest.raises(Invalid, match="Data type mismatch"):
        begin(tf.data.Dataset.from_tensors(1.0)._variant_tensor)
    with pytest.raises(Invalid, match="parse string_handle"):
        raw.MultiDeviceIteratorFromStringHandle(string_handle="abc", **KINDS)
    text = raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=handle)
    with pytest.raises(Invalid, match="Data type mismatch"):
        raw.MultiDeviceIteratorFromStringHandle(
            string_handle=text, output_types=[tf.float32], output_shapes=[[]]
        )

    # An error of the dataset is every shard's.
    def bad(x):
        return tf.debugging.check_numerics(1.0 / tf.cast(x, tf.float32), "bad")

    broken = tf.data.Dataset.range(3).map(lambda x: tf.cast(bad(x), tf.int64))
    third = begin(broken._variant_tensor).numpy()
    for shard in (0, 1):
        with pytest.raises(Invalid):
            take(shard, third)


def test_shards_read_from_threads():
    """Each shard gets its elements, in order, whoever is ahead."""
    import concurrent.futures

    count = 300
    handle = raw.AnonymousMultiDeviceIteratorV3(devices=["/cpu:0"] * 3, **KINDS)
    number = raw.MultiDeviceIteratorInit(
        dataset=_range(count), multi_device_iterator=handle, max_buffer_size=_long(1)
    )

    def read(shard):
        found = []
        while True:
            try:
                found += raw.MultiDeviceIteratorGetNextFromShard(
                    multi_device_iterator=handle,
                    shard_num=shard,
                    incarnation_id=number,
                    **KINDS,
                )
            except tf.errors.OutOfRangeError:
                return [x.numpy() for x in found]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = list(pool.map(read, range(3)))
    assert found == [list(range(s, count, 3)) for s in range(3)]


def test_datasets_refuse():
    def sample(rate):
        return raw.SamplingDataset(
            input_dataset=_range(5), rate=rate, seed=_long(1), seed2=_long(2), **KINDS
        )

    with pytest.raises(Invalid, match="rate must be a scalar"):
        sample([0.5])
    assert _all(sample(float("nan"))) == []

    def choose(*datasets, tries=2):
        return raw.ChooseFastestDataset(
            input_datasets=list(datasets), num_experiments=tries, **KINDS
        )

    with pytest.raises(Invalid, match="Input 1 has cardinality: 6"):
        choose(_range(5), _range(6))
    with pytest.raises(Invalid, match="Input 1 has output types: float"):
        choose(_range(5), tf.data.Dataset.from_tensors(1.0)._variant_tensor)
    with pytest.raises(Invalid, match="num_experiments"):
        choose(_range(5), _range(5), tries=0)

    even = _traced(lambda x: x % 2 == 0, tf.TensorSpec([], tf.int64))

    def keep(calls, order="default"):
        return raw.ParallelFilterDataset(
            input_dataset=_range(7),
            other_arguments=[],
            num_parallel_calls=_long(calls),
            predicate=even,
            deterministic=order,
            **KINDS,
        )

    for calls in (0, -5):
        with pytest.raises(Invalid, match="num_parallel_calls must be greater"):
            keep(calls)
    with pytest.raises(Invalid, match="Unrecognized determinism policy: x"):
        keep(2, "x")


def test_branches_refuse():
    branch = _traced(lambda d: d, tf.TensorSpec([], tf.variant))

    def choose(numerator=1, denominator=1, lengths=(0, 0), arguments=()):
        return raw.ChooseFastestBranchDataset(
            input_dataset=_range(6),
            ratio_numerator=_long(numerator),
            ratio_denominator=_long(denominator),
            other_arguments=list(arguments),
            num_elements_per_branch=3,
            branches=[branch, branch],
            other_arguments_lengths=list(lengths),
            **KINDS,
        )

    assert _all(choose()) == list(range(6))
    with pytest.raises(Invalid, match="`ratio_numerator` must be greater"):
        choose(numerator=0)
    with pytest.raises(Invalid, match="`ratio_denominator` must be greater"):
        choose(denominator=-1)
    with pytest.raises(Invalid, match="must be divisible"):
        choose(denominator=2)
    with pytest.raises(Invalid, match="must have the same length"):
        choose(lengths=(0,))
    for lengths in ((0, 1), (-1, 1), (1 << 62, 1 << 62)):
        with pytest.raises(Invalid, match="must sum up to"):
            choose(lengths=lengths)


def test_records_refuse(tmp_path):
    def write(dataset, name=str(tmp_path / "r"), kind=""):
        raw.DatasetToTFRecord(
            input_dataset=dataset._variant_tensor, filename=name, compression_type=kind
        )

    texts = tf.data.Dataset.from_tensor_slices(["a"])
    with pytest.raises(Invalid, match="only supports DT_STRING dataypes, but got int"):
        write(tf.data.Dataset.range(3))
    with pytest.raises(Invalid, match="1 single column, but got 2"):
        write(tf.data.Dataset.zip((texts, texts)))
    with pytest.raises(Invalid, match="one string, got shape \\[2\\]"):
        write(tf.data.Dataset.from_tensor_slices([["a", "b"]]))
    with pytest.raises(tf.errors.NotFoundError):
        write(texts, str(tmp_path / "no" / "r"))
    with pytest.raises(Invalid):
        write(texts, kind="FOO")
    for more, error in (
        ({}, tf.errors.NotFoundError),
        ({"compression_type": "FOO"}, Invalid),
        ({"batch_size": -1}, Invalid),
        ({"file_buffer_size": 0}, Invalid),
        ({"file_shuffle_shift_ratio": float("nan")}, Invalid),
    ):
        with pytest.raises(error):
            raw.RecordInput(file_pattern=str(tmp_path / "none*"), **more)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(tf.errors.OutOfRangeError, match="have no records"):
        raw.RecordInput(file_pattern=str(tmp_path / "empty"))
    (tmp_path / "cut").write_bytes(b"\x01\x02\x03")
    with pytest.raises(tf.errors.DataLossError):
        raw.RecordInput(file_pattern=str(tmp_path / "cut"))


def test_tables_of_datasets_refuse():
    def fill(dataset, **more):
        kinds = {"key_dtype": tf.string, "value_dtype": tf.int64, **more}
        table = raw.AnonymousHashTable(**kinds)
        raw.InitializeTableFromDataset(
            table_handle=table, dataset=dataset._variant_tensor
        )

    pairs = tf.data.Dataset.from_tensor_slices((["a", "a"], _long([1, 2])))
    with pytest.raises(Invalid, match="pairs of string and int64, got \\(int64\\)"):
        fill(tf.data.Dataset.range(3))
    with pytest.raises(Invalid, match="pairs of string and int32"):
        fill(pairs, value_dtype=tf.int32)
    with pytest.raises(Invalid, match="has the shapes \\[2\\] and \\[2\\]"):
        fill(pairs.batch(2))
    with pytest.raises(tf.errors.FailedPreconditionError, match="different value"):
        fill(pairs)


def test_packed_elements_refuse():
    packed = raw.CompressElement(components=[tf.constant([1, 2]), tf.constant("abc")])

    def unpack(t=packed, types=(tf.int32, tf.string), shapes=((2,), ())):
        shapes = [list(s) for s in shapes]
        return raw.UncompressElement(
            compressed=t, output_types=list(types), output_shapes=shapes
        )

    Failed = tf.errors.FailedPreconditionError
    with pytest.raises(Failed, match="tensor of type int64 but got"):
        unpack(types=(tf.int64, tf.string))
    with pytest.raises(Failed, match="Expected 1 outputs from uncompress, but got 2"):
        unpack(types=[tf.int32], shapes=[[2]])
    with pytest.raises(Invalid, match="does not contain a compressed element"):
        unpack(_range(3))
    with pytest.raises(Invalid, match="input with 1 dimensions"):
        unpack(tf.stack([packed, packed]))

    ragged, sparse = b"\x0a\x02\x08\x03", b"\x0a\x02\x08\x01"
    one = raw.CompositeTensorVariantFromComponents(components=[1.0], metadata=ragged)

    def parts(t=one, metadata=ragged, types=(tf.float32,)):
        return raw.CompositeTensorVariantToComponents(
            encoded=t, metadata=metadata, Tcomponents=list(types)
        )

    assert parts()[0].numpy() == 1
    with pytest.raises(Invalid, match="Expected a SPARSE_TENSOR_SPEC .*RAGGED_TENSOR"):
        parts(metadata=sparse)
    with pytest.raises(Invalid, match="Error parsing `metadata`"):
        parts(metadata=b"\xff")
    with pytest.raises(Invalid, match="has 1 tensor components; expected 2"):
        parts(types=(tf.float32, tf.float32))
    with pytest.raises(Invalid, match="Tensor component 0 had dtype"):
        parts(types=[tf.int32])
    with pytest.raises(Invalid, match="CompositeTensorVariant"):
        parts(_range(3))


def test_places_of_new_datasets_are_saved():
    """An iterator that is restored goes on where it was."""
    one, two = [tf.TensorSpec([], tf.int64)], [tf.TensorSpec([], tf.int64)] * 2
    functions = {
        "key_func": _traced(lambda x: x % 3, *one),
        "init_func": _traced(lambda key: (key, _long(0)), *one),
        "reduce_func": _traced(lambda s, n, x: (s + x, n + 1), *two, *one),
        "finalize_func": _traced(lambda s, n: s * 10 + n, *two),
    }
    functions.update({f"{name}_other_arguments": [] for name in list(functions)})
    grouped = raw.GroupByReducerDataset(input_dataset=_range(10), **functions, **KINDS)
    sampled = raw.SamplingDataset(
        input_dataset=_range(30), rate=0.4, seed=_long(1), seed2=_long(2), **KINDS
    )
    chosen = raw.ChooseFastestDataset(
        input_datasets=[_range(9), _range(9)], num_experiments=2, **KINDS
    )
    for variant in (grouped, sampled, chosen):
        wanted = _all(variant)

        def walk(variant=variant):
            iterator = raw.AnonymousIteratorV3(**KINDS)
            raw.MakeIterator(dataset=variant, iterator=iterator)
            return iterator

        def read(iterator, count):
            return [
                raw.IteratorGetNext(iterator=iterator, **KINDS)[0].numpy()
                for _ in range(count)
            ]

        iterator = walk()
        assert read(iterator, 1) == wanted[:1]
        state = raw.SerializeIterator(resource_handle=iterator)
        assert read(iterator, len(wanted) - 1) == wanted[1:]
        again = walk()
        raw.DeserializeIterator(resource_handle=again, serialized=state)
        assert read(again, len(wanted) - 1) == wanted[1:]
