"""Operators as values made of tensors: structures, functions, loops, datasets, models."""

import copy
import gc
import pickle
import weakref

import headrace as tf
import numpy as np
import pytest
from operator_cases import CASES

L = tf.linalg
F = np.float32([[4, 1], [1, 3]])
NAMES = sorted(CASES)


def _made(name, batch=(2,), dtype="float64"):
    arrays, make, dense = CASES[name](batch, dtype)
    return make(*(tf.constant(a) for a in arrays)), dense


@pytest.mark.parametrize("name", NAMES)
def test_taken_apart_and_put_together(name):
    operator, dense = _made(name)
    flat = tf.nest.flatten(operator, expand_composites=True)
    assert all(isinstance(x, tf.Tensor) for x in flat)
    again = tf.nest.pack_sequence_as(operator, flat, expand_composites=True)
    assert type(again) is type(operator)
    assert again._type_spec == operator._type_spec
    assert hash(again._type_spec) == hash(operator._type_spec)
    np.testing.assert_allclose(again.to_dense(), dense, atol=1e-12)
    for hint in ("non_singular", "self_adjoint", "positive_definite", "square"):
        assert getattr(again, f"is_{hint}") == getattr(operator, f"is_{hint}")
    for other in (copy.copy(operator), copy.deepcopy(operator)):
        np.testing.assert_allclose(other.to_dense(), dense, atol=1e-12)
    thawed = pickle.loads(pickle.dumps(operator._type_spec))
    assert thawed == operator._type_spec
    # By this name TensorFlow knows the spec in a SavedModel.
    assert thawed.saved_as == f"tf.linalg.{type(operator).__name__}Spec"


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_results_of_functions(name):
    operator, dense = _made(name)
    traces = []

    @tf.function
    def twice(o):
        traces.append(o)
        return o, o.to_dense()

    back, made = twice(operator)
    assert type(back) is type(operator)
    np.testing.assert_allclose(back.to_dense(), dense, atol=1e-12)
    np.testing.assert_allclose(made, dense, atol=1e-12)
    twice(_made(name)[0])
    assert len(traces) == 1
    signed = tf.function(lambda o: o.to_dense(), input_signature=[operator._type_spec])
    np.testing.assert_allclose(signed(operator), dense, atol=1e-12)
    if name != "identity":
        assert tf.autograph.experimental.do_not_convert  # loaded
        other, _ = _made(name, (3,))
        twice(other)
        assert len(traces) == 2


@pytest.mark.parametrize("name", NAMES)
def test_branches_and_loops(name):
    operator, dense = _made(name)

    @tf.function(autograph=False)
    def run(o, n):
        o = tf.cond(n > 1, lambda: o, lambda: tf.identity(o))
        _, o = tf.while_loop(lambda i, o: i < n, lambda i, o: (i + 1, o), (0, o))
        return o

    back = run(operator, tf.constant(2))
    assert type(back) is type(operator)
    np.testing.assert_allclose(back.to_dense(), dense, atol=1e-12)


def test_hints_tell_traces_apart():
    traces = []

    @tf.function
    def f(o):
        traces.append(o.is_positive_definite)
        return o.trace()

    plain = L.LinearOperatorFullMatrix(F)
    definite = L.LinearOperatorFullMatrix(
        F, is_self_adjoint=True, is_positive_definite=True
    )
    for o in (plain, definite, plain, definite):
        assert f(o) == 7
    assert traces == [None, True]
    assert not plain._type_spec.is_compatible_with(definite)
    assert plain._type_spec.is_compatible_with(L.LinearOperatorFullMatrix(2 * F))
    with pytest.raises(ValueError, match="Incompatible CompositeTensor TypeSpecs"):
        tf.nest.assert_same_structure(plain, definite, expand_composites=True)
    wide = L.LinearOperatorFullMatrix(np.ones((3, 3), "float32"))
    common = plain._type_spec.most_specific_common_supertype([wide._type_spec])
    assert common._serialize()[0]["matrix"].shape == [None, None]


def test_branches_of_other_classes_are_refused():
    choose = tf.function(
        lambda c: tf.cond(
            c,
            lambda: L.LinearOperatorFullMatrix(F),
            lambda: L.LinearOperatorDiag([1.0, 2.0]),
        )
    )
    with pytest.raises(TypeError, match="true_fn and false_fn arguments"):
        choose(tf.constant(True))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "identity"])
def test_elements_of_datasets(name):
    operator, dense = _made(name)
    (one,) = tf.data.Dataset.from_tensors(operator)
    np.testing.assert_allclose(one.to_dense(), dense, atol=1e-12)
    traces = tf.data.Dataset.from_tensors(operator).map(lambda o: o.to_dense())
    np.testing.assert_allclose(next(iter(traces)), dense, atol=1e-12)
    single, dense = _made(name, ())
    (batch,) = tf.data.Dataset.from_tensors(single).repeat(3).batch(3)
    assert batch.shape == (3, *dense.shape)
    np.testing.assert_allclose(batch.to_dense(), [dense] * 3, atol=1e-12)


def test_maps_over_a_batch():
    full = L.LinearOperatorFullMatrix(tf.reshape(tf.range(12.0), [3, 2, 2]))
    traces = [3.0, 11.0, 19.0]
    np.testing.assert_allclose(tf.vectorized_map(lambda o: o.trace(), full), traces)
    found = tf.map_fn(lambda o: o.trace(), full, fn_output_signature=tf.float32)
    np.testing.assert_allclose(found, traces)
    made = tf.vectorized_map(L.LinearOperatorFullMatrix, full.matrix)
    assert isinstance(made, L.LinearOperatorFullMatrix)
    np.testing.assert_array_equal(made.matrix, full.matrix)
    rows = list(tf.data.Dataset.from_tensor_slices(full))
    np.testing.assert_array_equal([r.matrix for r in rows], full.matrix)


@pytest.mark.parametrize("name", NAMES)
def test_models_are_saved_with_functions_of_operators(name, tmp_path):
    operator, dense = _made(name)
    module = tf.Module()
    module.f = tf.function(lambda o, x: o.matmul(x))
    x = tf.ones(dense.shape[:-1] + (1,), "float64")
    module.f.get_concrete_function(operator, x)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.f(operator, x), dense @ x.numpy(), atol=1e-9)


# --- Variables.


def test_variables_are_read_when_they_are_used():
    v = tf.Variable([1.0, 2.0])
    o = L.LinearOperatorDiag(v)
    assert o.diag is v
    assert o.variables == (v,)
    v.assign([3.0, 4.0])
    np.testing.assert_array_equal(o.diag_part(), [3, 4])
    np.testing.assert_array_equal(o.matvec([1.0, 1.0]), [3, 4])
    assert o.parameters["diag"] is v


_OF_VARIABLES = {
    "full": lambda v: L.LinearOperatorFullMatrix(v((2, 2))),
    "lower": lambda v: L.LinearOperatorLowerTriangular(v((2, 2))),
    "diag": lambda v: L.LinearOperatorDiag(v(2), is_positive_definite=True),
    "scaled": lambda v: L.LinearOperatorScaledIdentity(2, v(())),
    "householder": lambda v: L.LinearOperatorHouseholder(v(2)),
    "toeplitz": lambda v: L.LinearOperatorToeplitz(v(2), v(2)),
    "tridiag": lambda v: L.LinearOperatorTridiag(v((3, 2))),
    "circulant": lambda v: L.LinearOperatorCirculant(v(2), tf.float32),
    "kronecker": lambda v: L.LinearOperatorKronecker(
        [L.LinearOperatorFullMatrix(v((2, 2))), L.LinearOperatorDiag(v(2))]
    ),
    "blocks": lambda v: L.LinearOperatorBlockDiag(
        [L.LinearOperatorFullMatrix(v((2, 2))), L.LinearOperatorDiag(v(2))]
    ),
    "lower blocks": lambda v: L.LinearOperatorBlockLowerTriangular(
        [
            [L.LinearOperatorFullMatrix(v((2, 2)))],
            [L.LinearOperatorFullMatrix(v((2, 2))), L.LinearOperatorDiag(v(2))],
        ]
    ),
    "low rank": lambda v: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(v(2)), v((2, 1)), v(1)
    ),
    "inversion": lambda v: L.LinearOperatorInversion(
        L.LinearOperatorFullMatrix(v((2, 2)))
    ),
}


@pytest.mark.parametrize("name", sorted(_OF_VARIABLES))
def test_gradients_reach_variables(name):
    r = np.random.RandomState(3)
    made = []

    def variable(shape):
        value = r.uniform(0.5, 1.5, shape)
        if shape == (2, 2):
            value = value + 4 * np.eye(2)
        made.append(tf.Variable(value.astype("float32")))
        return made[-1]

    o = _OF_VARIABLES[name](variable)
    assert {id(v) for v in o.variables} == {id(v) for v in made}
    x = tf.ones(o.shape[-1:])
    uses = {
        "dense": o.to_dense,
        "product": lambda: o.matvec(x),
        "solution": lambda: o.solvevec(x),
        "adjoint": lambda: o.adjoint().to_dense(),
        "inverse": lambda: o.inverse().to_dense(),
        "itself": lambda: o,
    }
    if name not in ("householder", "lower blocks"):  # parts of which do not matter
        uses["determinant"] = o.log_abs_determinant
    for what, use in uses.items():
        with tf.GradientTape() as tape:
            y = use()
        found = tape.gradient(y, o.variables)
        assert all(g is not None for g in found), what
    traced = tf.function(lambda: o.matvec(x))
    before = traced()
    for v in made:
        v.assign(v * 2)
    np.testing.assert_allclose(traced(), o.matvec(x), rtol=1e-5)
    if name != "householder":
        assert not np.allclose(before, traced())


def test_functions_take_operators_of_variables():
    traces = []

    @tf.function
    def f(o):
        traces.append(o)
        return o.trace()

    v = tf.Variable(F)
    o = L.LinearOperatorFullMatrix(v)
    assert f(o) == 7
    v.assign(2 * F)
    assert f(o) == 14
    other = tf.Variable(F)
    assert f(L.LinearOperatorFullMatrix(other)) == 7
    assert f(L.LinearOperatorFullMatrix(F)) == 7
    both = L.LinearOperatorKronecker([o, o])
    assert f(both) == 14 * 14
    assert len(traces) <= 4
    spec = L.LinearOperatorFullMatrix(F)._type_spec
    signed = tf.function(lambda o: o.trace(), input_signature=[spec])
    assert signed(o) == 14
    gone = weakref.ref(other)
    del other
    traces.clear()
    gc.collect()
    assert gone() is None


def test_checkpoints_keep_variables(tmp_path):
    v = tf.Variable([1.0, 2.0])
    module = tf.Module()
    module.o = L.LinearOperatorKronecker(
        [L.LinearOperatorDiag(v), L.LinearOperatorFullMatrix(F)]
    )
    assert module.variables == (v,)
    assert len(module.submodules) == 3
    path = tf.train.Checkpoint(m=module).write(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert "m/o/_operators/0/_diag/.ATTRIBUTES/VARIABLE_VALUE" in names
    v.assign([0.0, 0.0])
    tf.train.Checkpoint(m=module).read(path).assert_consumed()
    np.testing.assert_array_equal(v, [1, 2])


# --- Graphs and sessions.


def test_gradients_in_graphs():
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        m = v1.placeholder_with_default(F, None)
        o = L.LinearOperatorFullMatrix(m)
        d = L.LinearOperatorDiag(v1.placeholder_with_default([1.0, 2.0], None))
        both = o @ d
        y = both.matmul(tf.ones([2, 1]))
        by_operator, by_matrix = tf.gradients(y, [both, m])
        assert isinstance(by_operator, L.LinearOperatorComposition)
        first, second = by_operator.operators
        found = session.run([first.matrix, second.diag, by_matrix, o.shape_tensor()])
        np.testing.assert_allclose(found[0], [[1, 2], [1, 2]])
        np.testing.assert_allclose(found[1], [5, 4])
        np.testing.assert_allclose(found[2], found[0])
        np.testing.assert_array_equal(found[3], [2, 2])
        assert tf.gradients(y, L.LinearOperatorIdentity(2)) == [None]


def test_sessions_use_variables_of_their_graph():
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        o = L.LinearOperatorDiag(v, name="mine")
        y = o.solvevec([2.0, 2.0])
        assert y.op.name.startswith("mine/solve/")
        session.run(v1.global_variables_initializer())
        np.testing.assert_allclose(session.run(y), [2, 1])
        session.run(v.assign([4.0, 4.0]))
        np.testing.assert_allclose(session.run(y), [0.5, 0.5])
        checked = o.assert_non_singular()
        assert isinstance(checked, tf.Operation)
        session.run(checked)
        session.run(v.assign([0.0, 4.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="zero values"):
            session.run(checked)


def test_names_that_version_1_shares():
    for name in dir(L):
        if name.startswith("LinearOperator"):
            assert getattr(tf.compat.v1.linalg, name) is getattr(L, name)


def test_conjugate_gradients():
    o = L.LinearOperatorFullMatrix(F, is_self_adjoint=True, is_positive_definite=True)
    rhs = tf.constant([1.0, 2.0])
    found = L.experimental.conjugate_gradient(o, rhs, max_iter=5)
    np.testing.assert_allclose(found.x, np.linalg.solve(F, rhs), rtol=1e-5)
    near = L.LinearOperatorDiag(1 / np.diag(F))
    found = L.experimental.conjugate_gradient(o, rhs, preconditioner=near)
    np.testing.assert_allclose(found.x, np.linalg.solve(F, rhs), rtol=1e-5)
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        L.experimental.conjugate_gradient(L.LinearOperatorFullMatrix(F), rhs)
