"""MultiWorkerMirroredStrategy of several processes."""

import os
import re
import signal

import headrace as tf
import numpy as np
import pytest
import worker_programs
from worker_programs import run


def alike(found):
    for other in found[1:]:
        assert other == found[0]
    return found[0]


@pytest.mark.parametrize("count", [2, 3])
def test_values_go_together(count):
    found = run("values", count)
    total = sum(range(count))
    for worker, got in enumerate(found):
        assert got["replicas"] == count and got["value"] == worker
        assert got["variables"] == [[1.0, 2.0], True, [5]]
        assert got["is_chief"] == (worker == 0)
        assert got["input"] == [
            f"tf.distribute.InputContext(input pipeline id {worker}, total: {count})"
        ]
        assert got["eager"] == got["traced"]
        number, sums, mean, rows, gathered, columns = got["eager"]
        assert number == worker
        assert sums == [[count + total, 2.0 * count + total], [float(total)] * 3]
        assert mean == [total / count]
        assert rows == [[float(count - i)] * 2 for i in range(count)]
        assert gathered == [[float(w)] * 2 for w in range(count) for _ in range(w + 1)]
        assert columns == [[float(w) for w in range(count) for _ in range(w + 1)]]
        assert got["read"] == 2 * sum(range(1, count + 1))
        assert got["mean"] == (count + total) / (2 * count)
        assert got["sum"] == [float(count), float(total)]
        assert got["gather"] == [[w] for w in range(count)]


def test_devices_are_those_of_the_task():
    for worker, got in enumerate(run("devices", 2)):
        own = f"/job:worker/replica:0/task:{worker}/device:CPU:0"
        assert got == [[own], [own], [[own]], [[own]], [1.0 + worker, 2.0]]


@pytest.mark.parametrize("count", [2, 3])
def test_training_is_that_of_one_process(count):
    found = alike(run("train", count))
    weights = [tf.Variable(tf.ones([3, 1])), tf.Variable([0.5])]
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    batches = tf.data.Dataset.from_tensor_slices(worker_programs.data())
    for i, (x, y) in enumerate(batches.batch(6).repeat(4)):
        loss = worker_programs.gradient_step(weights, optimizer, x, y, 6.0)
        np.testing.assert_allclose(found["losses"][i], loss, rtol=1e-6)
    for got, want in zip(found["weights"], weights):
        np.testing.assert_allclose(got, want.numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_keras_fits(count, tmp_path, monkeypatch):
    monkeypatch.setenv("FILES", str(tmp_path))
    found = alike(run("fit", count))
    tf.keras.utils.set_random_seed(0)
    model = worker_programs.model()
    x, y = worker_programs.data()
    history = model.fit(x, y, batch_size=6, epochs=3, shuffle=False, verbose=0)
    for got, want in zip(found["weights"], model.get_weights()):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
    for name, want in history.history.items():
        np.testing.assert_allclose(found["history"][name], want, rtol=1e-5)
    evaluated = model.evaluate(x, y, batch_size=6, verbose=0)
    np.testing.assert_allclose(found["evaluated"], evaluated, rtol=1e-5)
    # All have all rows, in their order.
    np.testing.assert_allclose(
        found["predicted"], model.predict(x, batch_size=5, verbose=0), atol=1e-5
    )
    np.testing.assert_allclose(found["one"], model.predict_on_batch(x[:1]), atol=1e-5)
    assert all(np.isfinite(w).all() for w in found["uneven"])
    # One of the workers wrote, and what a single process reads.
    names = [f"epoch{e}.index" for e in (1, 2, 3)]
    assert sorted(p.name for p in tmp_path.glob("*.index")) == names
    assert [p.name for p in (tmp_path / "backup").iterdir()] == ["chief"]
    model.load_weights(tmp_path / "epoch3").expect_partial()
    for got, want in zip(model.get_weights(), found["weights"]):
        np.testing.assert_array_equal(got, np.array(want, np.float32))


def test_workers_read_files_of_their_own(tmp_path, monkeypatch):
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("".join(f"{i}{j}\n" for j in range(4)))
    monkeypatch.setenv("FILES", str(tmp_path))
    found = run("files", 2)
    # A global batch of four is two rows a worker; who has less gets empty ones.
    assert found[0] == [["00", "01"], ["02", "03"], ["20", "21"], ["22", "23"]]
    assert found[1] == [["10", "11"], ["12", "13"], [], []]


@pytest.mark.parametrize("count", [2, 3])
def test_datasets_of_a_function_end_together(count):
    totals = [2, 5, 4] if count == 2 else [3, 10, 13, 13]
    for got in run("uneven", count):
        assert got["eager"] == totals, got
        assert got["loop"] == got["iterator"] == [sum(totals), len(totals)], got
        assert got["next"] == totals[:3] and not got["endless"], got
        assert got["end"] == "OutOfRangeError", got


# One that is stopped keeps its connections.
@pytest.mark.parametrize(
    ("count", "by"), [(2, signal.SIGKILL), (3, signal.SIGKILL), (3, signal.SIGSTOP)]
)
def test_a_death_is_an_error_soon(count, by, monkeypatch):
    monkeypatch.setenv("SIGNAL", str(int(by)))
    for got in run("death", count, but=[count - 1]):
        assert got["class"] == "UnavailableError", got
        assert got["seconds"] < 10 and f"rank {count - 1}" in got["text"], got


def test_a_worker_that_does_not_come():
    first, second = run("stall", 2)
    assert first["class"] == "DeadlineExceededError" and 1.5 < first["seconds"] < 5
    # Where the parts came late, less of its two seconds was waiting. The call to the
    # other one ends at the same moment.
    told = (
        r"waited (1\.[5-9]|2\.\d) s for rank 1|after 2\.\d+ s\); rank 0 .*asked rank 1"
    )
    assert re.search(told, first["text"]), first
    assert second["class"] == "DeadlineExceededError", second


def test_workers_that_do_not_agree():
    for got in run("disagree", 2):
        assert got["class"] == "InvalidArgumentError", got
        for part in ("Shape mismatch", "task:0", "task:1", "[2]", "[3]"):
            assert part in got["text"], got


def test_who_is_no_worker():
    def of(task, **options):
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": ["127.0.0.1:1", "127.0.0.1:2"]}), *task
        )
        made = tf.distribute.experimental.CommunicationOptions(**options)
        return tf.distribute.MultiWorkerMirroredStrategy(resolver, made)

    with pytest.raises(ValueError, match="task_type and task_id"):
        of(())
    with pytest.raises(ValueError, match="none of the workers"):
        of(("", "ps", 0))
    chiefs = tf.train.ClusterSpec({"chief": ["127.0.0.1:1", "127.0.0.1:2"]})
    with pytest.raises(ValueError, match="There must be at most one 'chief' job."):
        tf.distribute.MultiWorkerMirroredStrategy(
            tf.distribute.cluster_resolver.SimpleClusterResolver(chiefs, "", "chief", 0)
        )


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_nccl_without_a_gpu():
    """It is said, and tensors go as they do without."""
    for got in run("nccl", 2):
        assert got["sum"] == 3.0 and got["traced"] == 4.0
        said = [s for s in got["said"] if "NCCL" in s]
        assert said and all(
            s.startswith("Enabled NCCL communication but no GPUs detected/specified. (")
            and ("NVIDIA's driver cannot be loaded (libcuda.so.1" in s or "no GPU" in s)
            for s in said
        ), got["said"]
