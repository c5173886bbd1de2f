import json
import types

import headrace as tf
import pytest

resolvers = tf.distribute.cluster_resolver
ClusterSpec = tf.train.ClusterSpec


def test_base_is_abstract():
    with pytest.raises(TypeError, match="abstract class ClusterResolver"):
        resolvers.ClusterResolver()


def test_simple():
    spec = ClusterSpec({"ps": ["a:1", "b:2"]})
    made = resolvers.SimpleClusterResolver(
        spec, task_type="worker", task_id=1, rpc_layer="grpc"
    )
    assert (made.task_type, made.task_id) == ("worker", 1)
    assert (made.rpc_layer, made.environment) == ("grpc", "")
    assert made.cluster_spec() is spec and made.num_accelerators() == {}
    assert made.master() == made.master("ps") == made.master(task_id=1) == "grpc://"
    assert made.master("ps", 1) == "grpc://b:2"
    assert made.master("ps", 1, "x") == "x://b:2"
    with pytest.raises(ValueError, match="No task with index 9 in job 'ps'"):
        made.master("ps", 9)
    made.task_type, made.task_id, made.rpc_layer = "ps", 0, "zz"
    assert (made.task_type, made.task_id, made.master()) == ("ps", 0, "zz://")
    with pytest.raises(AttributeError):
        made.environment = "e"
    other = resolvers.SimpleClusterResolver(spec, "abc", num_accelerators={"GPU": 2})
    assert other.master() == "abc" and other.num_accelerators("ps", 0) == {"GPU": 2}
    with pytest.raises(
        TypeError, match="cluster_spec must be a `tf.train.ClusterSpec`"
    ):
        resolvers.SimpleClusterResolver({"a": ["b"]})
    with pytest.raises(TypeError, match="master must be a string"):
        resolvers.SimpleClusterResolver(spec, master=3)


def config(monkeypatch, **told):
    monkeypatch.setenv("TF_CONFIG", json.dumps(told))
    return resolvers.TFConfigClusterResolver()


def test_tf_config(monkeypatch):
    cluster = {"worker": ["a:1", "b:2"], "ps": ["c:3"]}
    task = {"type": "worker", "index": 1}
    made = config(monkeypatch, cluster=cluster, task=task, rpc_layer="grpc")
    assert (made.task_type, made.task_id) == ("worker", 1)
    assert (made.rpc_layer, made.environment) == ("grpc", None)
    assert made.master() == "grpc://b:2" and made.master("ps", 0) == "grpc://c:3"
    assert made.num_accelerators() == {}
    with pytest.raises(ValueError, match="No task with index 7 in job 'ps'"):
        made.master("ps", 7)
    made.task_type, made.task_id, made.rpc_layer = "ps", 0, "x"
    assert made.master() == "x://c:3"
    given = resolvers.TFConfigClusterResolver("ps", 0, "y", "e")
    assert (given.master(), given.environment) == ("y://c:3", "e")


def test_tf_config_of_less(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    made = resolvers.TFConfigClusterResolver()
    assert made.task_type is made.task_id is made.rpc_layer is None
    assert made.cluster_spec() == ClusterSpec({}) and made.master() == ""
    one = {"worker": ["a:1"]}
    made = config(monkeypatch, cluster=one, task={"type": "worker", "index": "0"})
    assert made.master() == "" and made.task_id == 0
    assert config(monkeypatch, cluster=one, session_master="s:1").master() == "s:1"
    with pytest.raises(ValueError, match="No such job in cluster: None"):
        config(monkeypatch, cluster={"worker": ["a:1", "b:2"]}).master()
    monkeypatch.setenv("TF_CONFIG", "nope")
    with pytest.raises(json.JSONDecodeError):
        resolvers.TFConfigClusterResolver().cluster_spec()


def simple(jobs, **more):
    return resolvers.SimpleClusterResolver(ClusterSpec(jobs), **more)


def test_union():
    a = simple({"worker": ["a:1", "b:2"]}, master="ma", task_type="worker", task_id=0)
    a.rpc_layer = "r"
    b = simple({"worker": ["c:3"], "ps": ["d:4"]})
    both = resolvers.UnionResolver(a, b)
    assert both.cluster_spec().as_dict() == {
        "worker": ["a:1", "b:2", "c:3"],
        "ps": ["d:4"],
    }
    assert both.master() == "r://ma" and both.master("ps", 0) == "d:4"
    assert (both.task_type, both.task_id, both.rpc_layer) == ("worker", 0, "r")
    both.task_type, both.task_id, both.rpc_layer = "q", 2, "j"
    assert (both.task_type, both.task_id, both.rpc_layer) == ("q", 2, "j")
    given = resolvers.UnionResolver(a, task_type="t", task_id=9, rpc_layer="rr")
    assert (given.task_type, given.task_id, given.rpc_layer) == ("t", 9, "rr")


def test_union_of_sparse_jobs():
    a, five = simple({"w": ["a", "b"]}), simple({"w": {5: "c"}})
    joined = resolvers.UnionResolver(a, five).cluster_spec()
    assert joined.as_dict() == {"w": {0: "a", 1: "b", 5: "c"}}
    for pair in ((a, simple({"w": {1: "c"}})), (simple({"w": {1: "c"}}), a)):
        with pytest.raises(KeyError, match="Duplicate keys detected when merging two"):
            resolvers.UnionResolver(*pair).cluster_spec()
    with pytest.raises(ValueError, match="At least one ClusterResolver is required"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="must be a sub-class of `ClusterResolver"):
        resolvers.UnionResolver(3)
    with pytest.raises(ValueError, match="Unexpected kwargs provided {'foo': 1}"):
        resolvers.UnionResolver(a, foo=1)


STEP = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}


@pytest.fixture
def slurm(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def make(*args, without=(), changed=None, **kwargs):
        for name, value in {**STEP, **(changed or {})}.items():
            monkeypatch.setenv(name, value)
        for name in without:
            monkeypatch.delenv(name)
        return resolvers.SlurmClusterResolver(*args, **kwargs)

    return make


def test_slurm(slurm, monkeypatch):
    made = slurm()
    assert made.get_task_info() == (None, None) and made.master() == ""
    addresses = ["n1:8888", "n1:8889", "n2:8888", "n2:8889"]
    assert made.cluster_spec().as_dict() == {"worker": addresses}
    assert made.get_task_info() == ("worker", 2)
    assert made.master() == "grpc://n2:8888"
    assert made.master("worker", 1, "x") == "x://n1:8889"
    assert made.num_accelerators() == {"GPU": 0}
    jobs = slurm({"ps": 1, "worker": 3}, 1000, gpus_per_node=4, gpus_per_task=2)
    assert jobs.cluster_spec().as_dict() == {
        "ps": ["n1:1000"],
        "worker": ["n1:1001", "n2:1000", "n2:1001"],
    }
    assert jobs.get_task_info() == ("worker", 1)
    assert jobs.num_accelerators() == {"GPU": 2}
    assert __import__("os").environ["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_slurm_lists(slurm):
    made = slurm(
        changed={
            "SLURM_STEP_NODELIST": "a[01-03,7],b,c[9-10]",
            "SLURM_STEP_NUM_TASKS": "8",
            "SLURM_STEP_TASKS_PER_NODE": "1(x6),2",
        }
    )
    assert made.cluster_spec().job_tasks("worker") == [
        f"{host}:8888" for host in ("a01", "a02", "a03", "a7", "b", "c9", "c10")
    ] + ["c10:8889"]


@pytest.mark.parametrize("name", STEP)
def test_slurm_outside_of_a_step(slurm, name):
    with pytest.raises(
        RuntimeError, match=f"{name} not found in environment. Not running"
    ):
        slurm(without=[name])


@pytest.mark.parametrize(
    "changed, more, kind, text",
    [
        (
            {},
            {"jobs": {"w": 5}},
            RuntimeError,
            "Requested 5 tasks but only 4 were assig",
        ),
        (
            {},
            {"gpus_per_node": 1, "gpus_per_task": 2},
            RuntimeError,
            "Requested more GPUs",
        ),
        ({"SLURM_STEP_NODELIST": "n[1-"}, {}, ValueError, "Invalid hostlist format"),
        ({"SLURM_STEP_NODELIST": "n[2-1]"}, {}, ValueError, "Invalid hostlist format"),
        (
            {"SLURM_STEP_NODELIST": "n[0-9999999999]"},
            {},
            ValueError,
            "Invalid hostlist",
        ),
        (
            {"SLURM_STEP_TASKS_PER_NODE": "2(x"},
            {},
            ValueError,
            "Invalid tasks-per-node",
        ),
        ({"SLURM_PROCID": "x"}, {}, ValueError, "invalid literal for int"),
    ],
)
def test_slurm_refuses(slurm, changed, more, kind, text):
    with pytest.raises(kind, match=text):
        slurm(changed=changed, **more)


class Kubernetes:
    """A client that knows pods by selectors: (name, address, phase)."""

    def __init__(self, **pods):
        self._pods = pods

    def list_pod_for_all_namespaces(self, label_selector=None):
        pods = [
            types.SimpleNamespace(
                metadata=types.SimpleNamespace(name=name),
                status=types.SimpleNamespace(phase=phase, host_ip=address),
            )
            for name, address, phase in self._pods[label_selector.partition("=")[2]]
        ]
        return types.SimpleNamespace(items=pods)


def test_kubernetes():
    client = Kubernetes(
        tensorflow=[("p-1", "10.1", "Running"), ("p-0", "10.0", "Running")]
    )
    made = resolvers.KubernetesClusterResolver(override_client=client)
    assert made.cluster_spec().as_dict() == {"worker": ["10.0:8470", "10.1:8470"]}
    assert made.master() == "" and made.master("worker", 1) == "grpc://10.1:8470"
    waiting = Kubernetes(tensorflow=[("p", "10.1", "Pending")])
    made = resolvers.KubernetesClusterResolver(override_client=waiting)
    with pytest.raises(RuntimeError, match='Pod "p" is not running; phase: "Pending"'):
        made.cluster_spec()
    with pytest.raises(ImportError, match="The Kubernetes Python client must be"):
        resolvers.KubernetesClusterResolver()


class Compute:
    """A service of the Compute API with two instances."""

    def instanceGroups(self):  # noqa: N802
        return self

    def instances(self):
        return self

    def listInstances(self, project, zone, instanceGroups, body, orderBy):  # noqa: N802, N803
        assert body == {"instanceState": "RUNNING"}
        items = [{"instance": f"https://x/{n}"} for n in ("i2", "i1")]
        return types.SimpleNamespace(execute=lambda: {"items": items})

    def listInstances_next(self, previous_request, previous_response):  # noqa: N802
        return None

    def get(self, project, zone, instance):
        found = {"networkInterfaces": [{"networkIP": f"10.0.0.{instance[1:]}"}]}
        return types.SimpleNamespace(execute=lambda: found)


def test_compute_engine():
    made = resolvers.GCEClusterResolver("p", "z", "group", 8470, service=Compute())
    assert made.cluster_spec().as_dict() == {
        "worker": ["10.0.0.1:8470", "10.0.0.2:8470"]
    }
    assert made.master() == "grpc://10.0.0.1:8470"
    assert made.master("worker", 1, "x") == "x://10.0.0.2:8470"
    with pytest.raises(RuntimeError, match="You cannot reset the task_type of the GCE"):
        made.task_type = "ps"
    with pytest.raises(ImportError, match="googleapiclient must be installed"):
        resolvers.GCEClusterResolver("p", "z", "group", 8470)


def test_there_is_no_tpu():
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to."):
        resolvers.TPUClusterResolver()
    with pytest.raises(tf.errors.UnimplementedError, match="there are no TPUs"):
        resolvers.TPUClusterResolver("x")
