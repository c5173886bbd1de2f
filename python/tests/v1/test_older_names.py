"""What tf.compat.v1 keeps of older programs, as TensorFlow 2.21 has it."""

import gc
import inspect
import os

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


# --- tensors that sessions keep ---


def test_handles_keep_tensors(session):
    handle = session.run(v1.get_session_handle(tf.constant([1.0, 2.0])))
    assert handle.eval().tolist() == [1, 2] and str(handle) == handle.handle
    holder, tensor = v1.get_session_tensor(handle.handle, tf.float32)
    more = v1.get_session_handle(tensor + 1.0)
    for _ in range(3):
        handle = session.run(more, {holder: handle.handle})
    assert handle.eval().tolist() == [4, 5]
    x = v1.placeholder(tf.float32)
    assert session.run(x * 2.0, {x: handle}).tolist() == [8, 10]
    plain, again = session.run([x, more], {x: 3.0, holder: handle.handle})
    assert plain == 3 and again.eval().tolist() == [5, 6]


def test_handles_end(session):
    handle = session.run(v1.get_session_handle(tf.constant(1)))
    handle.delete()
    with pytest.raises(TypeError, match="may have already been deleted"):
        handle.eval()
    kept = session.run(v1.get_session_handle(tf.constant(2)))
    raw = kept.get_raw_handle()
    del kept
    gc.collect()
    holder, tensor = v1.get_session_tensor(raw, tf.int32)
    assert session.run(tensor, {holder: raw}) == 2
    place, deleted = v1.delete_session_tensor(raw)
    session.run(deleted, {place: raw})
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tensor, {holder: raw})
    with pytest.raises(TypeError, match="`data` must be of type Tensor."):
        v1.get_session_handle(3)


# --- variables ---


def test_variables_in_parts(session):
    parts = v1.create_partitioned_variables(
        [4, 6], [1, 4], v1.ones_initializer(), name="p"
    )
    names = [part.op.name for part in parts]
    assert names == ["p/part_0", "p/part_1", "p/part_2", "p/part_3"]
    assert [part.shape.as_list() for part in parts] == [[4, 2], [4, 2], [4, 1], [4, 1]]
    whole = v1.create_partitioned_variables([3, 2], [3, 1], tf.zeros([3, 2]))
    assert whole[2].op.name == "PartitionedVariable/part_2"
    session.run(v1.global_variables_initializer())
    assert session.run(parts[0]).sum() == 8 and session.run(whole[1]).tolist() == [
        [0, 0]
    ]


@pytest.mark.parametrize(
    ("shape", "slicing", "text"),
    [
        (
            [4, 6],
            [2, 3],
            "Can only slice a variable along one dimension: shape: .4, 6.",
        ),
        ([4, 6], [3], "must have the length: shape: .4, 6., slicing: .3."),
        ([], [], "must have rank at least 1"),
    ],
)
def test_parts_that_cannot_be(session, shape, slicing, text):
    with pytest.raises(ValueError, match=text):
        v1.create_partitioned_variables(shape, slicing, v1.ones_initializer())


@pytest.mark.parametrize("resource", [True, False])
def test_variables_without_values_are_found(session, resource):
    assert v1.assert_variables_initialized() is None
    v1.get_variable("v", [2], use_resource=resource)
    v1.get_variable("w", [2, 1], use_resource=resource)
    checked = v1.assert_variables_initialized()
    with pytest.raises(tf.errors.FailedPreconditionError):
        session.run(checked)
    session.run(v1.global_variables_initializer())
    assert session.run(checked).tolist() == [1, 2]


def test_regularizers_of_nothing(session):
    with v1.variable_scope("s", regularizer=v1.no_regularizer):
        v1.get_variable("v", [2])
    assert not v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)


def test_creators_see_variables(session):
    made = []

    def create(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**kwargs)

    with v1.variable_creator_scope(create):
        v1.get_variable("v", [1])
        tf.Variable(1.0, name="w")
    assert made == ["v", "w"]


# --- tensors ---


def test_op_scope(session):
    with v1.op_scope([1.0], None, "default") as scope:
        assert scope == "default/" and tf.constant(1).name == "default/Const:0"
    with v1.op_scope([], "n", "default") as scope:
        assert scope == "n/"


def test_conversions():
    sparse = v1.SparseTensorValue([[0]], [1], [2])
    found = v1.convert_to_tensor_or_sparse_tensor(sparse)
    assert isinstance(found, tf.SparseTensor)
    assert v1.convert_to_tensor_or_sparse_tensor([1], tf.float32).dtype == tf.float32
    with pytest.raises(RuntimeError, match="Requested: float32,  Actual: int32"):
        v1.convert_to_tensor_or_sparse_tensor(sparse, tf.float32)
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert v1.convert_to_tensor_or_indexed_slices(slices, tf.float32) is slices
    assert v1.convert_to_tensor_or_indexed_slices(1).numpy() == 1
    with pytest.raises(
        ValueError, match="`dtype` int32 for `value` .* with dtype float"
    ):
        v1.convert_to_tensor_or_indexed_slices(slices, tf.int32)


def sparse(values):
    return tf.SparseTensor([[0, 0], [1, 0], [1, 1]], values, [2, 2])


IDS = sparse(tf.constant([2, 3, 0], tf.int64))
VALUES = sparse([0.1, 0.2, 0.3])


def test_sparse_merge():
    found = v1.sparse_merge(IDS, VALUES, 5)
    np.testing.assert_array_equal(found.indices, [[0, 2], [1, 0], [1, 3]])
    np.testing.assert_allclose(found.values, [0.1, 0.3, 0.2])
    np.testing.assert_array_equal(found.dense_shape, [2, 5])
    found = v1.sparse.merge([IDS, IDS], VALUES, [5, 4], already_sorted=True)
    np.testing.assert_array_equal(found.indices, [[0, 2, 2], [1, 3, 3], [1, 0, 0]])
    np.testing.assert_array_equal(found.dense_shape, [2, 5, 4])


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ((IDS, VALUES, [5]), TypeError, "vocab_size has to be a Tensor or Python int."),
        (
            ([IDS], VALUES, 5),
            TypeError,
            "vocab_size has to be a list of Tensors or Pyt",
        ),
        (([IDS, IDS], VALUES, [5]), ValueError, "have to have equal lengths."),
        ((IDS, 3, 5), TypeError, "Input must be a SparseTensor."),
        ((3, VALUES, 5), TypeError, "sp_ids has to be a SparseTensor or list thereof."),
    ],
)
def test_wrong_merges(given, error, text):
    with pytest.raises(error, match=text):
        v1.sparse_merge(*given)


def test_serialized_sparse_tensors():
    one = tf.SparseTensor([[0, 1]], [7], [2, 2])
    assert v1.serialize_sparse(one).shape == [3]
    many = v1.io.serialize_many_sparse(one)
    found = v1.deserialize_many_sparse(many, tf.int32)
    np.testing.assert_array_equal(tf.sparse.to_dense(found), [[0, 7], [0, 0]])


# --- the rest ---


def test_places_of_files():
    folder = os.path.dirname(os.path.realpath(__file__))
    loader = v1.resource_loader
    assert loader.get_data_files_path() == folder
    assert loader.get_path_to_datafile("a") == os.path.join(folder, "a")
    assert loader.load_resource("__init__.py").startswith(b'"""')
    assert loader.readahead_file_path("/x/y") == "/x/y"
    with pytest.raises(FileNotFoundError):
        loader.load_resource("none")


def test_errors_by_codes():
    errors = v1.errors
    assert errors.error_code_from_exception_type(errors.NotFoundError) == 5
    unknown = errors.error_code_from_exception_type(ValueError)
    assert isinstance(unknown, errors.UnknownError)
    assert str(unknown) == "Unknown class exception"
    assert errors.exception_type_from_error_code(5) is errors.NotFoundError
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(99)


def test_names_under_others():
    assert v1.VERSION == tf.version.VERSION and v1.CXX11_ABI_FLAG in (0, 1)
    assert v1.user_ops.my_fact().numpy() == b"0! == 1"
    assert v1.io.QueueBase is v1.QueueBase
    assert v1.train.queue_runner.QueueRunner is v1.train.QueueRunner
    np.testing.assert_allclose(
        v1.spectral.dct([1.0, 2.0]), [6.0, -1.4142135], rtol=1e-5
    )


def test_names_of_operations():
    values = tf.constant([[1, 2]], tf.quint8), tf.constant([[3, 4]], tf.quint8)
    out, low, high = v1.quantized_concat(0, values, [0.0, 0.0], [255.0, 255.0])
    assert tf.cast(out, tf.int32).numpy().tolist() == [[1, 2], [3, 4]]
    assert (float(low), float(high)) == (0.0, 255.0)
    prints = v1.train.sdca_fprint(["a"])
    assert prints.numpy().tolist() == [[7969074168056553668, 5955762262185338209]]
    arguments = list(inspect.signature(v1.train.sdca_optimizer).parameters)
    assert arguments[-2:] == ["adaptative", "name"] and len(arguments) == 17
    with tf.Graph().as_default(), v1.Session() as session:
        weights = v1.get_variable("w", initializer=[1.0, -0.05], use_resource=False)
        session.run(v1.global_variables_initializer())
        session.run(v1.train.sdca_shrink_l1([weights._ref()], l1=0.1, l2=1.0))
        np.testing.assert_allclose(session.run(weights), [0.9, 0.0])


def test_intermediates_are_always_there():
    for state in (True, False, None):
        v1.experimental.output_all_intermediates(state)
        with tf.Graph().as_default(), v1.Session() as session:
            x = tf.constant(2.0)
            y = tf.while_loop(lambda y: y < 50.0, lambda y: y * y, [x])[0]
            assert session.run(v1.gradients(y, x)) == [8 * 2.0**7]
    v1.experimental.output_all_intermediates(None)


def test_names_whose_operations_need_a_gpu():
    with pytest.raises(tf.errors.InvalidArgumentError, match="not pinned"):
        tf.check_pinned([1.0])
    given = [tf.zeros(s) for s in ([1, 2, 2, 1], [1, 2, 2, 4], [1, 5], [2, 2, 4])]
    with pytest.raises(tf.errors.NotFoundError, match="Could not find device for node"):
        tf.image.generate_bounding_box_proposals(*given)

    @tf.function
    def traced():
        return tf.image.generate_bounding_box_proposals(*given)

    boxes, scores = traced.get_concrete_function().structured_outputs
    assert boxes.shape.as_list() == [1, 300, 4] and scores.shape.as_list() == [1, 300]
