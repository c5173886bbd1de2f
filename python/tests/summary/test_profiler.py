"""tf.profiler.experimental: the files that it writes and what it refuses."""

import glob
import threading

import headrace as tf
import pytest
from headrace.framework.support import protos

profiler = tf.profiler.experimental
PATTERN = "/plugins/profile/*/*.xplane.pb"


@pytest.fixture(autouse=True)
def _ended():
    yield
    try:
        profiler.stop(save=False)
    except tf.errors.UnavailableError:
        pass


def _planes(folder):
    (path,) = glob.glob(f"{folder}{PATTERN}")
    with open(path, "rb") as f:
        space = protos.message("tensorflow.profiler.XSpace").FromString(f.read())
    assert len(space.hostnames) == 1 and not space.errors
    return {plane.name: plane for plane in space.planes}


def _stat(plane, stat):
    kind = stat.WhichOneof("value")
    value = getattr(stat, kind)
    if kind == "ref_value":
        value = plane.stat_metadata[value].name
    return plane.stat_metadata[stat.metadata_id].name, value


def _lines(folder):
    """{line's name: [(event, begin, end, {attribute: value})]}."""
    plane = _planes(folder)["/host:CPU"]
    return {
        line.name: [
            (
                plane.event_metadata[e.metadata_id].name,
                e.offset_ps,
                e.offset_ps + e.duration_ps,
                dict(_stat(plane, s) for s in e.stats),
            )
            for e in line.events
        ]
        for line in plane.lines
    }


def _events(folder):
    return [event for line in _lines(folder).values() for event in line]


def _named(folder, name):
    return [e for e in _events(folder) if e[0] == name]


def test_a_program(tmp_path):
    @tf.function
    def f(x):
        return tf.nn.relu(tf.matmul(x, x))

    x = tf.ones([4, 4])
    with profiler.Profile(str(tmp_path)):
        for step in range(2):
            with profiler.Trace("train", step_num=step):
                f(x)
        f.get_concrete_function(x)(x)
        tf.matmul(x, x)
    calls = _named(tmp_path, "f")
    assert [c[3] for c in calls] == [
        {"tf_function_call": "traced-nonXla", "tracing_count": 1},
        {"tf_function_call": "notTraced-nonXla", "tracing_count": 1},
        {"tf_function_call": "concrete"},
    ]
    steps = _named(tmp_path, "train")
    assert [s[3] for s in steps] == [{"step_num": 0}, {"step_num": 1}]
    for scope, call in zip(steps, calls):
        assert scope[1] <= call[1] <= call[2] <= scope[2]
    eager = [e[3] for e in _named(tmp_path, "EagerExecute")]
    assert {"eager_op": "MatMul", "is_func": 0} in eager
    assert sum(e["is_func"] for e in eager) == 3
    names = {e[0] for e in _events(tmp_path)}
    assert "EagerLocalExecute: MatMul" in names
    assert any(n.startswith("Relu:") for n in names)  # a step of the plan
    environment = _planes(tmp_path)["Task Environment"]
    stats = dict(_stat(environment, s) for s in environment.stats)
    assert 0 < stats["profile_start_time"] < stats["profile_stop_time"]
    assert not glob.glob(f"{tmp_path}/**/*tmp*", recursive=True)


def test_attributes(tmp_path):
    with profiler.Profile(str(tmp_path)):
        with profiler.Trace("x", a=-4, b=2**63, c=2**70, d=1.5, e=True, f=[1], g=None):
            pass
        with profiler.Trace("y") as trace:
            trace.set_metadata(late="z")
    (x,), (y,) = _named(tmp_path, "x"), _named(tmp_path, "y")
    expected = {"a": -4, "b": 2**63, "c": str(2**70), "d": 1.5, "e": 1, "f": "[1]"}
    assert x[3] == {**expected, "g": "None"}
    assert y[3] == {"late": "z"}


def test_hostile_names(tmp_path):
    names = ["a/../b", "nul\0é", "", "a#b=1#"]
    with profiler.Profile(str(tmp_path)):
        for name in names:
            with profiler.Trace(name, value="\udcff\0"):
                pass
        with profiler.Trace("é" * 100_000):
            pass
        with pytest.raises(UnicodeEncodeError):
            profiler.Trace("\udcff").__enter__()
    found = [e[0] for e in _events(tmp_path)]
    assert found[: len(names)] == names
    assert len(found[len(names)].encode()) <= 1100
    with pytest.raises(TypeError, match="name"):
        profiler.Trace(b"bytes")


def test_threads_have_lines_of_their_own(tmp_path):
    def work():
        with profiler.Trace("inside"):
            tf.constant(1.0) + 1

    with profiler.Profile(str(tmp_path)):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    lines = _lines(tmp_path).values()
    inside = [[e for e in line if e[0] == "inside"] for line in lines]
    assert sum(map(len, inside)) == 3


@pytest.mark.parametrize("level, ops", [(0, None), (1, False), (2, True)])
def test_levels(tmp_path, level, ops):
    options = profiler.ProfilerOptions(host_tracer_level=level)
    with profiler.Profile(str(tmp_path), options), profiler.Trace("scope"):
        tf.constant(1.0) + 1
    names = {e[0] for e in _events(tmp_path)}
    assert ("scope" in names) == (level > 0)
    assert ("EagerExecute" in names) == bool(ops)


def test_a_delay(tmp_path):
    options = profiler.ProfilerOptions(delay_ms=60_000)
    with profiler.Profile(str(tmp_path), options), profiler.Trace("scope"):
        pass
    assert _events(tmp_path) == []


def test_profiles_of_the_same_second(tmp_path):
    for _ in range(3):
        with profiler.Profile(str(tmp_path)):
            pass
    assert len(glob.glob(f"{tmp_path}{PATTERN}")) == 3


def test_states(tmp_path):
    unavailable = "Cannot export profiling results. No profiler is running."
    with pytest.raises(tf.errors.UnavailableError, match=unavailable):
        profiler.stop()
    profiler.start(tmp_path)
    with pytest.raises(tf.errors.AlreadyExistsError, match="Another profiler is run"):
        profiler.start(str(tmp_path))
    profiler.stop(save=False)
    assert not glob.glob(f"{tmp_path}/*")


@pytest.mark.parametrize("folder", ["/proc/nowhere/x", "a\0b"])
def test_folders_that_cannot_be_written(folder):
    profiler.start(folder)
    with pytest.raises((tf.errors.NotFoundError, tf.errors.InvalidArgumentError)):
        profiler.stop()
    with pytest.raises(tf.errors.UnavailableError):
        profiler.stop()


def test_what_is_refused(tmp_path):
    options = profiler.ProfilerOptions
    with pytest.raises(NotImplementedError, match="python_tracer_level"):
        profiler.start(str(tmp_path), options(python_tracer_level=1))
    with pytest.raises(ValueError, match="device_tracer_level"):
        profiler.start(str(tmp_path), options(device_tracer_level=7))
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1 ms"):
        profiler.start(str(tmp_path), options(delay_ms=-1))
    with pytest.raises(TypeError, match="ProfilerOptions"):
        profiler.start(str(tmp_path), {"host_tracer_level": 1})
    with pytest.raises(TypeError, match="logdir"):
        profiler.start(None)
