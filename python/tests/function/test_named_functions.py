"""C++ and Python call each other's functions by name, in one process.

tests/cross/functions.cc is the C++ half: functions that are called here, and checks
that call what is registered here.
"""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

import headrace as tf
import numpy as np
import pytest
from headrace._load import _headrace

functions = tf.experimental.functions
ROOT = pathlib.Path(__file__).parents[3]
LIBRARY = ROOT / "build" / "tests" / "cross_functions.so"
EMBEDDED = ROOT / "build" / "tests" / "embedded"
MODULE = ROOT / "build" / "tests" / "shared" / "libheadrace.so"
built = pytest.mark.skipif(not LIBRARY.exists(), reason="no C++ build")


class OwnError(Exception):
    pass


@pytest.fixture(scope="module")
def cpp():
    """Runs a check of the C++ half."""
    if not LIBRARY.exists():
        pytest.skip("no C++ build")
    library = ctypes.CDLL(str(LIBRARY))
    library.cross_give_functions()

    def check(name):
        error = ctypes.create_string_buffer(4000)
        if library.cross_check(name.encode(), error, len(error)):
            pytest.fail(f"{name}: {error.value.decode(errors='replace')}")

    library.cross_told.restype = ctypes.c_char_p
    check.told = lambda: library.cross_told().decode()
    return check


@pytest.fixture
def named():
    """Registers functions for the length of a test."""
    taken = []

    def register(name, function):
        taken.append((name, function))  # which holds it
        return functions.register(name, function)

    yield register
    for name, _ in taken:
        functions.unregister(name)


# --- names ---


def test_names_are_free_when_functions_are_gone():
    f = functions.register("py.f", tf.function(lambda x: x))
    assert functions.find("py.f") is f
    assert "py.f" in functions.names()
    functions.register("py.f", f)  # it has it already
    other = tf.function(lambda x: x + 1)
    with pytest.raises(tf.errors.AlreadyExistsError, match="another function.*'py.f'"):
        functions.register("py.f", other)
    del f
    gc.collect()
    assert "py.f" not in functions.names()
    with pytest.raises(tf.errors.NotFoundError, match="'py.f' is gone"):
        functions.find("py.f")
    functions.register("py.f", other)
    assert functions.unregister("py.f") is True
    assert functions.unregister("py.f") is False
    with pytest.raises(tf.errors.NotFoundError, match="no function.*'py.f'"):
        functions.find("py.f")


def test_a_decorator_registers():
    @functions.register("py.decorated")
    @tf.function
    def f(x):
        return x * 2

    assert functions.find("py.decorated") is f


@pytest.mark.parametrize("function", [len, lambda x: x, None.__class__, 3])
def test_only_traced_functions_have_names(function):
    with pytest.raises(TypeError, match="must be a tf.function, got"):
        functions.register("py.f", function)


def test_names_are_texts():
    f = tf.function(lambda x: x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="an empty one"):
        functions.register("", f)
    for call in (functions.find, functions.unregister):
        with pytest.raises(TypeError, match="a function's name is a str, got int"):
            call(3)


# --- Python calls C++ ---


@built
def test_calls_share_traces_with_cpp(cpp):
    power = functions.find("cpp.power")
    before = power.experimental_get_tracing_count()
    assert power(tf.constant(2.0), 3).numpy() == 8
    assert power(tf.constant(5.0), n=3).numpy() == 125
    assert power.experimental_get_tracing_count() == before + 1
    assert power(tf.constant([1.0, 2.0]), 2).numpy().tolist() == [1, 4]
    assert power(np.float32([3, 4]), 2).numpy().tolist() == [9, 16]
    assert power.experimental_get_tracing_count() == before + 2
    assert "x changed from" in power.explain_retraces()[-1]
    assert power.name == "power"
    assert repr(power) == "<CppFunction 'power'>"
    assert functions.find("cpp.power") == power
    assert len({power, functions.find("cpp.power")}) == 1
    assert power != functions.find("cpp.sum")


@built
def test_concrete_functions_of_cpp(cpp):
    power = functions.find("cpp.power")
    x = tf.constant([[2.0, 3.0]])
    concrete = power.get_concrete_function(x, 2)
    assert concrete(x).numpy().tolist() == [[4, 9]]
    assert concrete(x=x, n=2).numpy().tolist() == [[4, 9]]
    count = power.experimental_get_tracing_count()
    again = power.get_concrete_function(tf.TensorSpec([1, 2], tf.float32), n=2)
    assert again.name == concrete.name
    assert power.experimental_get_tracing_count() == count
    args, kwargs = concrete.structured_input_signature
    assert args == (tf.TensorSpec([1, 2], tf.float32), 2) and kwargs == {}
    assert concrete.structured_outputs == tf.TensorSpec([1, 2], tf.float32)
    assert [op.type for op in concrete.graph.get_operations()][:2] == [
        "Placeholder",
        "Mul",
    ]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = concrete(x)
    assert tape.gradient(y, x).numpy().tolist() == [[4, 6]]
    with pytest.raises(TypeError, match="Binding inputs to tf.function failed"):
        concrete(x, 3)
    spec = tf.TensorSpec([], tf.float32)
    move = functions.find("cpp.move")
    moved = move.get_concrete_function({"place": spec, "speed": spec}, [spec], None)
    one = tf.constant(1.0)
    state, count, nothing = moved({"place": one, "speed": one}, [one], None)
    assert state["place"].numpy() == 2 and count == 1 and nothing is None


@built
def test_structures_cross(cpp):
    move = functions.find("cpp.move")
    state = {"speed": tf.constant(2.0), "place": tf.constant(1.0)}
    new, count, nothing = move(state, [1.0, tf.constant(2.0)], None)
    assert {k: v.numpy() for k, v in new.items()} == {"place": 7, "speed": 2}
    assert count == 2 and nothing is None
    assert move(state, (), np.float32(5))[0]["place"].numpy() == 6
    say = functions.find("cpp.say")
    assert say("aü", True, 2.5) == {"text": "aüaü", "number": "2.500000"}
    assert say("a", False, 2) == {"text": "a", "number": "2.000000"}


class _Pair(tuple):
    pass


@built
@pytest.mark.parametrize(
    "value, told",
    [
        (b"bytes", "x, of type bytes, cannot go from Python to C"),
        ({"a": [1, 2j]}, r"x\['a'\]\[1\], of type complex, cannot"),
        ({1: 2.0}, "x, of type dict, .*its keys are not all str"),
        (1 << 70, "x, of type int, .*over 64 bits"),
        ("\ud800", "x, of type str, .*without UTF-8"),
        (_Pair([1]), "x, of type _Pair, cannot"),
        (object(), "x, of type object, cannot"),
    ],
)
def test_what_cannot_cross_is_refused(cpp, value, told):
    with pytest.raises(TypeError, match=told):
        functions.find("cpp.power")(value, 2)


@built
def test_composite_tensors_are_refused(cpp):
    with pytest.raises(TypeError, match=r"args\[0\], of type RaggedTensor, cannot"):
        functions.find("cpp.weigh")(tf.ragged.constant([[1.0], []]))


@built
def test_a_list_that_holds_itself_is_refused(cpp):
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        functions.find("cpp.power")(endless, 2)


@built
def test_arguments_that_cpp_does_not_take(cpp):
    power = functions.find("cpp.power")
    x = tf.constant(1.0)
    for call, told in [
        (lambda: power(x, 2, m=3), "unexpected keyword argument 'm'"),
        (lambda: power(x, 2, n=3), "multiple values for argument 'n'"),
        (lambda: power(n=3), "missing the argument 'x'"),
    ]:
        with pytest.raises(TypeError, match=told):
            call()
    error = tf.errors.InvalidArgumentError
    with pytest.raises(error, match="takes 2 arguments, got 1"):
        power(x)
    with pytest.raises(error, match="expected an integer as n, got 'a'"):
        power(x, "a")
    assert functions.find("cpp.sum")(tf.constant([1.0, 2.0])).numpy() == 3
    with pytest.raises(error, match="float"):
        functions.find("cpp.sum")(tf.constant([1]))


@built
def test_tapes_go_through_cpp(cpp):
    power = functions.find("cpp.power")
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = power(x, 3)  # a variable for a tensor: C++ reads it
        slope = tape.gradient(y, x)
    assert slope.numpy() == 12
    assert outer.gradient(slope, x).numpy() == 12


@built
def test_variables_are_passed_by_reference(cpp):
    count = functions.find("cpp.count")
    v = tf.Variable(1.0)
    assert count(v).numpy() == 20 and v.numpy() == 2
    assert count(tf.Variable(5.0)).numpy() == 60
    assert count.experimental_get_tracing_count() == 1
    with tf.GradientTape() as tape:
        y = count(v)
    assert tape.gradient(y, v).numpy() == 10


@built
def test_variables_of_cpp_live_in_both(cpp):
    weigh = functions.find("cpp.weigh")
    weight = functions.find("cpp.weight")()
    assert isinstance(weight, tf.Variable) and weight.numpy() == 3
    with tf.GradientTape() as tape:
        y = weigh(tf.constant(2.0))
    assert tape.gradient(y, weight).numpy() == 2
    weight.assign(4.0)
    assert weigh(tf.constant(2.0)).numpy() == 8
    captures = tf.function(lambda: weight * 1.0)
    assert captures().numpy() == 4
    weight = None
    gc.collect()
    assert weigh(tf.constant(2.0)).numpy() == 8
    functions.find("cpp.weight")().assign(3.0)


@built
def test_cpp_is_called_while_python_traces(cpp):
    power = functions.find("cpp.power")

    @tf.function
    def f(x):
        y = tf.constant(0.0)
        for i in tf.range(3):
            y += power(x, 2) + tf.cast(i, tf.float32)
        return y

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    assert f(tf.constant(2.0)).numpy() == 15
    assert slope(tf.constant(2.0)).numpy() == 12
    before = power.experimental_get_tracing_count()
    assert f(tf.constant(3.0)).numpy() == 30
    assert power.experimental_get_tracing_count() == before
    rows = tf.data.Dataset.range(3).map(lambda i: power(tf.cast(i, tf.float32), 2))
    assert [r.numpy() for r in rows] == [0, 1, 4]


@built
@pytest.mark.parametrize(
    "name, error, told",
    [
        ("cpp.refuse", tf.errors.FailedPreconditionError, "^not today$"),
        ("cpp.break", tf.errors.UnknownError, "^Function break threw: broken ü$"),
    ],
)
def test_errors_of_cpp(cpp, name, error, told):
    f = functions.find(name)
    for _ in range(2):
        with pytest.raises(error, match=told):
            f(tf.constant(1.0))
    with pytest.raises(error, match=told.strip("^$")):
        tf.function(lambda x: f(x))(tf.constant(1.0))
    assert f.experimental_get_tracing_count() == 0


@built
def test_errors_of_running_traces_of_cpp(cpp):
    divide = functions.find("cpp.divide")
    with pytest.raises(tf.errors.InvalidArgumentError, match="by zero"):
        divide(tf.constant(1), tf.constant(0))
    assert divide(tf.constant(7), tf.constant(2)).numpy() == 3


# --- C++ calls Python ---


@built
def test_cpp_calls_python(cpp, named):
    @tf.function
    def power(x, n):
        return x**n

    named("py.power", power)
    cpp("calls")
    cpp("names")
    assert power.experimental_get_tracing_count() == 2
    assert power(tf.constant(4.0), 3).numpy() == 64
    assert power.experimental_get_tracing_count() == 2


@built
def test_cpp_calls_python_with_structures(cpp, named):
    def move(state, steps, name, twice):
        assert isinstance(steps, list) and name == "ab" and twice is True
        state = dict(state, place=state["place"] + state["speed"] * sum(steps))
        return state, [s + 1 for s in steps], None

    named("py.move", tf.function(move))
    cpp("structures")


@built
def test_cpp_takes_gradients_of_python(cpp, named):
    @tf.custom_gradient
    def cubed(x):
        return x**3, lambda upstream: 3 * x * x * upstream

    named("py.cubed", tf.function(cubed))
    cpp("gradients")
    cpp("traced")


@built
def test_cpp_gives_variables_to_python(cpp, named):
    def count(v):
        v.assign_add(1.0)
        return v * 10.0

    named("py.count", tf.function(count))
    cpp("variables")


@built
def test_concrete_functions_are_the_same(cpp, named):
    @tf.function
    def power(x, n):
        return x**n

    named("py.power", power)
    cpp("concrete")
    made = power.get_concrete_function(tf.TensorSpec([None], tf.float32), 2)
    assert cpp.told() == made.name.decode()
    assert power.experimental_get_tracing_count() == 1


@built
def test_errors_of_python(cpp, named):
    @tf.function(autograph=False)
    def raises(kind, x):
        if kind == "value":
            raise ValueError("a bad value")
        if kind == "own":
            raise OwnError("mine")
        if kind == "op":
            raise tf.errors.ResourceExhaustedError(None, None, "too much")
        if kind == "stop":
            raise KeyboardInterrupt()
        tf.debugging.assert_positive(x, "must be positive")
        return x

    named("py.raises", raises)
    cpp("errors")


@built
def test_exceptions_come_back_as_they_were(cpp, named):
    error = OwnError("mine")

    @tf.function(autograph=False)
    def raises(x):
        raise error

    named("py.back", raises)
    with pytest.raises(OwnError) as caught:
        functions.find("cpp.calls")("py.back", tf.constant(1.0))
    assert caught.value is error
    assert any(t.name == "raises" for t in caught.traceback)
    with pytest.raises(tf.errors.NotFoundError, match="'py.none'"):
        functions.find("cpp.calls")("py.none", tf.constant(1.0))


@built
def test_handles_of_cpp_hold_functions_of_python(cpp):
    f = functions.register("py.held", tf.function(lambda x: x * 2.0))
    cpp("hold")
    del f
    gc.collect()
    assert "py.held" in functions.names()
    cpp("call_held")
    cpp("drop_held")
    gc.collect()
    assert "py.held" not in functions.names()


@built
def test_threads_of_both_languages(cpp, named):
    named("py.threaded", tf.function(lambda x, n: x + n))
    cpp("threads")
    power = functions.find("cpp.power")
    right = []

    def work():
        for i in range(1, 20):
            shape = [i % 5 + 1]
            right.append(np.all(power(tf.fill(shape, 2.0), 5).numpy() == 32))

    before = power.experimental_get_tracing_count()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(right) == 8 * 19 and all(right)
    assert power.experimental_get_tracing_count() == before + 5


@built
def test_tracing_goes_back_and_forth(cpp, named):
    @tf.function
    def down(x, n):
        if n == 0:
            return x
        return functions.find("cpp.down")(x + 100.0, n - 1)

    named("py.down", down)
    assert down(tf.constant(0.0), 5).numpy() == 302
    assert functions.find("cpp.down")(tf.constant(0.0), 5).numpy() == 203
    with tf.GradientTape() as tape:
        x = tf.constant(1.0)
        tape.watch(x)
        y = down(x, 4) * x
    assert tape.gradient(y, x).numpy() == 204


@built
def test_python_inside_cpp_inside_python(cpp, named):
    v = tf.Variable(3.0)
    named("py.inner", tf.function(lambda x: v * x))
    calls = functions.find("cpp.calls")

    @tf.function
    def outer(x):
        return calls("py.inner", x) + 1.0

    with tf.GradientTape() as tape:
        y = outer(tf.constant(2.0))
    assert y.numpy() == 13
    assert tape.gradient(y, v).numpy() == 4

    @tf.function
    def closes_over(x):
        inner = functions.register("py.closure", tf.function(lambda y: y * x))
        z = calls("py.closure", x + 1.0)
        del inner
        return z

    assert closes_over(tf.constant(2.0)).numpy() == 12


@built
def test_functions_that_trace_each_other_on_two_threads(cpp, named):
    meet = threading.Barrier(2)
    calls = functions.find("cpp.calls")

    @tf.function(autograph=False)
    def ring(x, n=0):
        if n == 0:
            return x
        meet.wait(20)  # `calls` is being traced, too, and about to come here
        return calls("py.leaf", x)

    @tf.function(autograph=False)
    def from_cpp(x):
        meet.wait(20)
        return ring(x)

    named("py.ring", from_cpp)
    named("py.leaf", tf.function(lambda x: x + 1.0))
    results = {}
    threads = [
        threading.Thread(target=lambda: results.update(python=ring(x, 1).numpy())),
        threading.Thread(
            target=lambda: results.update(cpp=calls("py.ring", x).numpy())
        ),
    ]
    x = tf.constant(1.0)
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == {"python": 4, "cpp": 2}


# --- programs of C++ ---


@pytest.mark.skipif(not EMBEDDED.exists(), reason="no C++ build with libpython")
@pytest.mark.skipif(
    not (MODULE.exists() and os.path.samefile(MODULE, _headrace.__file__)),
    reason="the program is linked to another module than this one",
)
def test_a_program_of_cpp_with_python_in_it():
    paths = [str(pathlib.Path(tf.__file__).parents[1]), *filter(None, sys.path)]
    result = subprocess.run(
        [EMBEDDED],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines() == [
        "traces 0",
        "python 8.0",
        "traces 1",
        "cpp 10",
        "traces 1",
        "slope 24",
        "ValueError 3",
        "9 Function cubed is Python's, and the interpreter has ended",
        "trace 54",
        "names cpp.twice",
    ]
