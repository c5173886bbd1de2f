"""tf.test.Benchmark and StubOutForTesting: what TensorFlow 2.21 does."""

import math

import pytest

import headrace as tf
from headrace.framework.support import protos

v1 = tf.compat.v1


class Adding(tf.test.Benchmark):
    """What the tests below run."""

    def benchmark_runs(self):
        with tf.Graph().as_default(), v1.Session() as session:
            return self.run_op_benchmark(
                session, tf.constant(1.0) + 2.0, min_iters=5, extras={"a": "x"}, mbs=2
            )

    def benchmark_report(self):
        low = {"name": "m", "value": 1.0, "min_value": 0.0}
        self.report_benchmark(
            iters=3, wall_time=0.5, extras={"z": 3.0}, name="other/name", metrics=[low]
        )


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """{name of a file: the entry in it} of the reports so far."""
    monkeypatch.setenv("TEST_REPORT_FILE_PREFIX", f"{tmp_path}/")

    def read():
        found = {}
        for path in tmp_path.iterdir():
            (entry,) = protos.BenchmarkEntries.FromString(path.read_bytes()).entry
            found[path.name] = entry
        return found

    return read


def test_runs_are_measured(reports):
    found = Adding().benchmark_runs()
    (entry,) = reports().values()
    assert found["name"] == entry.name == "Adding.benchmark_runs"
    assert found["iters"] == entry.iters == 5
    assert found["wall_time"] == entry.wall_time > 0
    assert found["throughput"] == entry.throughput == 2 / entry.wall_time
    assert entry.extras["a"].string_value == "x"


def test_traces_are_reported(reports):
    with tf.Graph().as_default(), v1.Session() as session:
        work = tf.add(v1.placeholder_with_default(1.0, []), 2.0, name="added")
        Adding().run_op_benchmark(session, work, store_trace=True, name="traced")
        with pytest.raises(OSError, match="File already exists: .*Adding.traced"):
            Adding().run_op_benchmark(session, work, name="traced")
    trace = reports()["Adding.traced"].extras["full_trace_chrome_format"]
    assert "added" in trace.string_value


def test_reports(reports):
    Adding().benchmark_report()
    entry = reports()["Adding.other__name"]
    assert (entry.name, entry.iters, entry.wall_time) == ("Adding.other/name", 3, 0.5)
    assert entry.extras["z"].double_value == 3
    (metric,) = entry.metrics
    assert metric.HasField("min_value") and not metric.HasField("max_value")
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        Adding().report_benchmark(foo=3)


def test_programs_run_benchmarks(reports, capsys, monkeypatch):
    tf.test.main(["program", "--benchmarks=Adding.*report"])
    assert list(reports()) == ["Adding.other__name"]
    monkeypatch.delenv("TEST_REPORT_FILE_PREFIX")
    tf.test.main(["program", "--benchmarks", "Adding.benchmark_re"])
    assert 'name: "Adding.other/name"' in capsys.readouterr().out
    assert tf.test.Benchmark.is_abstract() and not Adding.is_abstract()
    assert Adding().evaluate([tf.constant(1.0)]) == [1]


def test_configuration():
    options = tf.test.benchmark_config().graph_options.rewrite_options
    assert options.dependency_optimization == options.OFF


def test_folders(monkeypatch):
    assert v1.test.get_temp_dir() == v1.test.get_temp_dir()
    monkeypatch.setenv("TEST_SRCDIR", "/x")
    assert v1.test.test_src_dir_path("a/b") == "/x/a/b"
    monkeypatch.delenv("TEST_SRCDIR")
    with pytest.raises(KeyError, match="TEST_SRCDIR"):
        v1.test.test_src_dir_path("a")


class Base:
    x = 1
    kind = staticmethod(lambda: 3)

    def m(self):
        return 7


class Derived(Base):
    pass


def test_stubs_of_objects_and_classes():
    stubs, one = v1.test.StubOutForTesting(), Derived()
    stubs.SmartSet(one, "x", 5)
    assert (one.x, Derived.x, Base.x, vars(one)) == (5, 5, 1, {})
    stubs.SmartSet(one, "m", lambda self: 8)
    assert one.m() == 8 and Base().m() == 7
    stubs.SmartUnsetAll()
    assert one.x == 1 and one.m() == 7
    stubs.Set(Base, "kind", lambda: 6)
    stubs.Set(Base, "kind", lambda: 7)
    assert Base.kind() == one.kind() == 7
    stubs.UnsetAll()
    assert one.kind() == 3 and isinstance(vars(Base)["kind"], staticmethod)


def test_stubs_of_modules():
    with v1.test.StubOutForTesting() as stubs:
        stubs.SmartSet(math, "pi", 3)
        stubs.Set(math, "e", 2)
        assert math.pi + math.e == 5
        with pytest.raises(AttributeError, match="Attribute not found."):
            stubs.SmartSet(math, "none", 1)
        with pytest.raises(AttributeError, match="none"):
            stubs.Set(math, "none", 1)
    assert math.pi > 3.1 and math.e > 2.7


def test_graphs_that_are_alike():
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="a")
        one = graph.as_graph_def()
        tf.constant(2, name="b")
        two = graph.as_graph_def()
    v1.test.assert_equal_graph_def(one, one)
    with pytest.raises(AssertionError, match="Found unexpected node .*b.* = Const"):
        v1.test.assert_equal_graph_def(two, one)
    with pytest.raises(NotImplementedError, match="checkpoint_v2=True"):
        v1.test.assert_equal_graph_def(one, one, checkpoint_v2=True)
