import headrace as tf
import pytest

ClusterSpec = tf.train.ClusterSpec
NO_CLUSTER = (
    "`cluster` must be a dictionary mapping one or more job names to lists of network "
    "addresses, or a `ClusterDef` protocol buffer"
)


@pytest.fixture
def cluster():
    return ClusterSpec({"worker": {3: "x:2", 1: "w:1"}, "ps": ["a:1", "b:2"]})


def test_forms_are_one(cluster):
    text = "ClusterSpec({'ps': ['a:1', 'b:2'], 'worker': {1: 'w:1', 3: 'x:2'}})"
    proto = cluster.as_cluster_def()
    assert [job.name for job in proto.job] == ["ps", "worker"]
    assert dict(proto.job[1].tasks) == {1: "w:1", 3: "x:2"}
    for form in (cluster, proto, cluster.as_dict()):
        again = ClusterSpec(form)
        assert repr(again) == text and again == cluster
        assert again.as_cluster_def() == proto
    assert list(cluster.as_dict()) == cluster.jobs == ["worker", "ps"]
    assert ClusterSpec({"a": ("x:1",), "b": {"0": b"y"}}).as_dict() == {
        "a": ["x:1"],
        "b": ["y"],
    }
    assert ClusterSpec({"a": []}).as_dict() == {"a": {}}
    assert ClusterSpec({"a": {-1: "x"}}).as_dict() == {"a": {-1: "x"}}


def test_tasks(cluster):
    assert cluster.num_tasks("worker") == 2
    assert cluster.task_indices("worker") == [1, 3]
    assert cluster.task_address("worker", 3) == "x:2"
    assert cluster.job_tasks("worker") == [None, "w:1", None, "x:2"]
    for ask in (cluster.num_tasks, cluster.task_indices, cluster.job_tasks):
        with pytest.raises(ValueError, match="No such job in cluster: 'no'"):
            ask("no")
    with pytest.raises(ValueError, match="No such job in cluster: 'no'"):
        cluster.task_address("no", 0)
    for index in (0, "0"):
        with pytest.raises(ValueError, match=f"No task with index {index!r} in job"):
            cluster.task_address("worker", index)


def test_equality(cluster):
    assert cluster == ClusterSpec(cluster) and cluster != ClusterSpec({})
    assert cluster != cluster.as_dict() and ClusterSpec({}) == {}
    assert ClusterSpec({"a": {0: "x"}}) == ClusterSpec({"a": ["x"]})
    assert cluster and not ClusterSpec({})
    with pytest.raises(TypeError, match="unhashable type: 'ClusterSpec'"):
        hash(cluster)


@pytest.mark.parametrize(
    "given, kind, text",
    [
        ([1], TypeError, NO_CLUSTER),
        (None, TypeError, NO_CLUSTER),
        (
            {"a": "b:1"},
            TypeError,
            "The tasks for job 'a' must be a list or a dictionary",
        ),
        ({"a": 3}, TypeError, "The tasks for job 'a' must be a list or a dictionary"),
        ({"a": {"x": "b"}}, ValueError, "invalid literal for int"),
        ({1: ["b"]}, TypeError, "Job name 1 must be bytes or unicode"),
        ({"a": [1]}, TypeError, "Task address 1 must be bytes or unicode"),
        ({"a": {0: 1}}, TypeError, "Task address 1 must be bytes or unicode"),
    ],
)
def test_what_is_no_cluster(given, kind, text):
    with pytest.raises(kind, match=text):
        ClusterSpec(given)
