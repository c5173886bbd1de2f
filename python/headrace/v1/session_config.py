"""What a session does with its ConfigProto, and a run with its RunOptions."""

from headrace.context.errors import InvalidArgumentError, NotFoundError
from headrace.framework.settings import config as settings
from headrace.framework.support import protos

_ONE = "there is one kind of device and one process"
_PLANS = "graphs are always made into plans, whose results are the same"
_TPU = "there is no TPU"
# Fields by their path: None where they act; "same: why" where runs give the same with
# any value; else why they are refused. Parts of a field go by its row unless they have
# one. python/tests/v1/test_session_config.py has all fields looked up.
FIELDS = {
    "device_count": None,
    "intra_op_parallelism_threads": None,
    "inter_op_parallelism_threads": None,
    "use_per_session_threads": "same: the threads are always the session's own limit",
    "session_inter_op_thread_pool": None,
    "placement_period": f"same: {_ONE}",
    "device_filters": f"same: {_ONE}",
    "gpu_options": "same: there is no GPU",
    "pluggable_device_options": "same: there is no such device",
    "allow_soft_placement": None,
    "log_device_placement": None,
    "graph_options.enable_recv_scheduling": f"same: {_ONE}",
    "graph_options.optimizer_options": f"same: {_PLANS}",
    "graph_options.build_cost_model": "runs make no cost model",
    "graph_options.build_cost_model_after": "runs make no cost model",
    "graph_options.infer_shapes": "same: shapes are always inferred",
    "graph_options.place_pruned_graph": "same: what a run needs alone is placed",
    "graph_options.enable_bfloat16_sendrecv": f"same: {_ONE}",
    "graph_options.timeline_step": "timelines are made by RunOptions.trace_level",
    "graph_options.rewrite_options": f"same: {_PLANS}",
    "operation_timeout_in_ms": None,
    "rpc_options": f"same: {_ONE}",
    "cluster_def": "sessions are in one process",
    "isolate_session_state": "same: sessions share no state",
    "share_cluster_devices_in_session": f"same: {_ONE}",
    "experimental": f"same: {_ONE}",
    "experimental.executor_type": None,
    "experimental.session_metadata": None,
    "experimental.disable_output_partition_graphs": None,
    "experimental.optimize_for_static_graph": f"same: {_PLANS}",
    "experimental.disable_optimize_for_static_graph": f"same: {_PLANS}",
    "experimental.target_tpu": _TPU,
    "experimental.coordination_config.service_type": "sessions are in one process",
}
RUN_FIELDS = {
    "trace_level": None,
    "timeout_in_ms": None,
    "inter_op_thread_pool": None,
    "output_partition_graphs": None,
    "debug_options.debug_tensor_watch_opts": "tensors of runs are not dumped",
    "debug_options": "same: nothing is dumped",
    "report_tensor_allocations_upon_oom": "same: errors say what was asked for",
    "experimental": f"same: {_ONE}",
}
_EXECUTORS = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def row_of(path, table):
    """The row of a field, or of what it is part of; KeyError where there is none."""
    while path not in table:
        path, dot, _ = path.rpartition(".")
        if not dot:
            raise KeyError(path)
    return table[path]


def _check(message, table, prefix=""):
    """NotImplementedError for a field that is set and that nothing here serves."""
    for field, value in message.ListFields():
        path = prefix + field.name
        if hasattr(value, "ListFields"):
            _check(value, table, path + ".")
            continue
        try:
            row = row_of(path, table)
        except KeyError:
            row = "it is not known"
        if row is not None and not row.startswith("same: "):
            name = message.DESCRIPTOR.name
            raise NotImplementedError(f"{name}.{field.name} is not supported: {row}")


class Config:
    """What a session's ConfigProto says, or None; TypeError for anything else.

    `checked` fields are refused where nothing here serves them; others are for a server
    to read.
    """

    def __init__(self, proto, checked=True):
        if proto is None:
            proto = protos.ConfigProto()
        elif not isinstance(proto, protos.ConfigProto):
            raise TypeError(
                "Argument `config` must be a tf.ConfigProto, but got "
                f'"{type(proto).__name__}"'
            )
        if checked:
            _check(proto, FIELDS)
        known = len(settings.list_logical_devices("CPU"))
        self.processors = proto.device_count.get("CPU", known)
        if self.processors <= 0:
            raise NotFoundError._of("No CPU devices are available in this process")
        self.intra_op = max(proto.intra_op_parallelism_threads, 0)
        self.inter_op = proto.inter_op_parallelism_threads
        self.pools = [p.num_threads for p in proto.session_inter_op_thread_pool]
        self.timeout = max(proto.operation_timeout_in_ms, 0)
        self.soft_placement = proto.allow_soft_placement
        self.log_placement = proto.log_device_placement
        more = proto.experimental
        self.partitions = not more.disable_output_partition_graphs
        self.executor = more.executor_type
        if self.executor == "SINGLE_THREADED_EXECUTOR":
            self.inter_op = 1
        if more.session_metadata.version < 0:
            raise InvalidArgumentError._of(
                "Session version shouldn't be negative: "
                f"goo.gle/debugstr   \n{more.session_metadata}"
            )

    def check_executor(self):
        """NotFoundError for an executor that nobody has."""
        if self.executor not in _EXECUTORS:
            raise NotFoundError._of(
                "No executor factory registered for the given executor type: "
                f"{self.executor} Registered factories are {{DEFAULT, , "
                "SINGLE_THREADED_EXECUTOR}."
            )

    def threads(self, pool):
        """Steps that run side by side in the pool of that number, as `inter_op`: 0 for
        the default, below for the calling thread alone."""
        count = max(len(self.pools), 1)
        if not -1 <= pool < count:
            raise InvalidArgumentError._of(f"Invalid inter_op_thread_pool: {pool}")
        if pool < 0:
            return 1
        threads = self.pools[pool] if self.pools else self.inter_op
        return 1 if threads < 0 else threads


class Run:
    """What the RunOptions of a run say, for a session with that configuration."""

    def __init__(self, options, config):
        if options is None:
            options = _DEFAULT
        elif not isinstance(options, protos.RunOptions):
            raise TypeError(
                f"`options` must be a RunOptions proto, got {type(options).__name__}"
            )
        else:
            _check(options, RUN_FIELDS)
        self.options = options
        self.timeout = max(options.timeout_in_ms, 0) or config.timeout
        self.trace = options.trace_level > 0
        self.partitions = options.output_partition_graphs
        self.threads = config.threads(options.inter_op_thread_pool)
        if self.partitions and not config.partitions:
            raise InvalidArgumentError._of(
                "RunOptions.output_partition_graphs() is not supported when "
                "disable_output_partition_graphs is true."
            )


_DEFAULT = protos.RunOptions()


def check_metadata(metadata):
    """TypeError for what is no RunMetadata."""
    if metadata is not None and not isinstance(metadata, protos.RunMetadata):
        raise TypeError(
            f"`run_metadata` must be a RunMetadata proto, got {type(metadata).__name__}"
        )
