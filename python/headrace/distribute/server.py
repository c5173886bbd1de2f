"""tf.distribute.Server: a task of a cluster."""

import atexit

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.framework.support import protos

_running = []  # cores: a server lives until the process ends


def _stop_all():
    while _running:
        _running.pop().stop()


atexit.register(_stop_all)


def _only(values, name):
    if len(values) != 1:
        raise ValueError(f"Must specify an explicit `{name}`.")
    return values[0]


def _server_def(given, job_name, task_index, protocol, config):
    """The ServerDef that the constructor's arguments mean."""
    made = protos.ServerDef()
    if isinstance(given, protos.ServerDef):
        made.CopyFrom(given)
    else:
        try:
            spec = ClusterSpec(given)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or "
                "`tf.train.ClusterSpec`."
            ) from None
        if job_name is None:
            job_name = _only(spec.jobs, "job_name")
        if task_index is None:
            known = spec.task_indices(job_name) if job_name in spec.jobs else [0]
            task_index = _only(known, "task_index")
        made.cluster.CopyFrom(spec.as_cluster_def())
        made.protocol = "grpc"
    if job_name is not None:
        made.job_name = job_name
    if task_index is not None:
        made.task_index = task_index
    if protocol is not None:
        made.protocol = protocol
    if config is not None:
        made.default_session_config.MergeFrom(config)
    return made


class Server:
    """A task of a cluster, which sessions of its `target` and other tasks use.

    It runs parts of graphs, holds their variables and hands out what they send, until
    the process ends, even where nobody holds this object any more.

    Args:
      server_or_cluster_def: a tf.train.ServerDef, or what a tf.train.ClusterSpec is made
        of.
      job_name, task_index: which task of the cluster this is; not needed where there is
        but one.
      protocol: "grpc", which alone is known.
      config: a ConfigProto, from which sessions start that clients make.
      start: whether it answers at once, or from start() on.

    Raises:
      TypeError: for what is no cluster.
      ValueError: where the task is not said.
      errors.OpError: where it has no place in the cluster, cannot listen at its address,
        or the library of gRPC is not there.
    """

    def __init__(
        self,
        server_or_cluster_def,
        job_name=None,
        task_index=None,
        protocol=None,
        config=None,
        start=True,
    ):
        said = _server_def(
            server_or_cluster_def, job_name, task_index, protocol, config
        )
        self._server_def = said
        self._core = _headrace.ServerCore(said.SerializeToString())
        _running.append(self._core)
        if start:
            self.start()

    server_def = read_only("_server_def", "The tf.train.ServerDef of the task.")

    @property
    def target(self):
        """What tf.compat.v1.Session takes to reach this task: "grpc://host:port"."""
        return self._core.target

    def start(self):
        """Answers calls from now on; does nothing where it does."""
        self._core.start()

    def join(self):
        """Blocks until the process ends: signals, such as Ctrl-C, end it."""
        self._core.join()

    @staticmethod
    def create_local_server(config=None, start=True):
        """A cluster of this one task, "localhost", at a port that is free."""
        return Server(
            {"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start
        )
