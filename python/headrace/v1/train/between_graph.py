"""The ParameterServerStrategy of TensorFlow 1: each worker builds a graph of its own, whose
variables lie on parameter servers by turns, and trains without waiting for the others."""

import contextlib

from headrace.context import stack, strategies
from headrace.distribute import strategy
from headrace.distribute.mirrored import CentralStorageExtended
from headrace.distribute.resolver.base import SimpleClusterResolver
from headrace.distribute.resolver.launched import default_resolver
from headrace.v1.train.device_setter import replica_device_setter


def _check_task(spec, task_type, task_id):
    if not task_type or task_id is None:
        raise ValueError(
            "When `cluster_spec` is given, you must also specify `task_type` and `task_id`"
        )
    if task_type not in spec.jobs:
        raise ValueError(f"`task_type` {task_type!r} not found in cluster_spec.")
    if task_id not in spec.task_indices(task_type):
        raise ValueError(
            f"`task_id` {task_id} is none of {task_type!r} in cluster_spec: "
            f"{spec.task_indices(task_type)}"
        )


class ParameterServerExtendedV1(CentralStorageExtended):
    """A worker's replicas, and variables on the cluster's servers; of a process that is
    alone as CentralStorageStrategy has it, on one device."""

    experimental_between_graph = True

    def __init__(self, container_strategy, resolver):
        super().__init__(container_strategy, strategy.all_devices()[:1], "/cpu:0")
        self._join(resolver)

    def _join(self, resolver):
        spec = resolver.cluster_spec()
        self._near_to = self._setter = self._cluster_spec = None
        if sum(map(spec.num_tasks, spec.jobs)) <= 1:
            return
        task_type, task_id = resolver.task_type, resolver.task_id
        _check_task(spec, task_type, task_id)
        self._cluster_spec, self._task = spec, (task_type, task_id)
        place = f"/job:{task_type}/replica:0/task:{task_id}"
        gpus = resolver.num_accelerators().get("GPU", 0)
        kinds = [f"GPU:{i}" for i in range(gpus)] or ["CPU:0"]
        self._devices = tuple(f"{place}/device:{kind}" for kind in kinds)
        self._parameter_device = None  # each variable has its own
        self._servers = tuple(f"/job:ps/task:{i}" for i in spec.task_indices("ps"))
        self._setter = replica_device_setter(
            ps_tasks=len(self._servers), worker_device=place, ps_device="/job:ps"
        )
        has_chief = "chief" in spec.jobs
        chief = self._task == (("chief" if has_chief else "worker"), 0)
        self.experimental_should_init = chief
        self.should_checkpoint = self.should_save_summary = chief
        workers = sum(spec.num_tasks(j) for j in ("chief", "worker") if j in spec.jobs)
        behind_chief = has_chief and task_type == "worker"
        self._shards = workers, task_id + 1 if behind_chief else task_id

    def _configure(self, session_config, cluster_spec, task_type, task_id):
        if cluster_spec is not None and self._cluster_spec is None:
            self._join(SimpleClusterResolver(cluster_spec, "", task_type, task_id))
        if session_config is not None:
            self._update_config(session_config)

    def _update_config(self, config):
        if self._cluster_spec is None:
            super()._update_config(config)
            return
        # Workers share variables, and a worker that is away holds up no other one.
        config.isolate_session_state = False
        del config.device_filters[:]
        job, index = self._task
        if job != "ps":
            config.device_filters.extend([f"/job:{job}/task:{index}", "/job:ps"])

    # --- variables ---

    @property
    def _own_parameter_devices(self):
        if self._setter is None:
            return super()._own_parameter_devices
        return self._servers

    @contextlib.contextmanager
    def _place(self):
        if self._setter is None:
            with super()._place():
                yield
            return
        if stack.executing_eagerly():
            raise RuntimeError(
                "The ParameterServerStrategy of TensorFlow 1 makes variables of a cluster in "
                "graphs alone; tf.distribute.ParameterServerStrategy does so eagerly"
            )
        graph = stack.default_graph()
        if self._near_to is not None:
            with graph.colocate_with(self._near_to, ignore_existing=True):
                yield
            return
        # Contexts around have no say, whether devices or colocations.
        with (
            graph.colocate_with(None, ignore_existing=True),
            graph.device(None),
            graph.device(self._setter),
        ):
            yield

    @contextlib.contextmanager
    def _near(self, variable):
        outer, self._near_to = self._near_to, variable
        try:
            yield
        finally:
            self._near_to = outer

    def colocate_vars_with(self, colocate_with_variable):
        """A context whose variables lie where that one does."""
        found = super().colocate_vars_with(colocate_with_variable)  # checks it
        return found if self._setter is None else self._near(colocate_with_variable)

    def non_slot_devices(self, var_list):
        """Where what an optimizer has for all variables lies: beside the first by name."""
        if self._setter is None:
            return super().non_slot_devices(var_list)
        return min(var_list, key=lambda v: v.name)

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        """Runs fn(...) once, where that variable lies."""
        if self._setter is None:
            return super().update_non_slot(colocate_with, fn, args, kwargs, group)
        with self._updating(0, getattr(colocate_with, "device", None)):
            return self._grouped([fn(*args, **(kwargs or {}))], group)

    def _update_all(self, fn, *args):
        if self._setter is None:
            return super()._update_all(fn, *args)
        mode = strategies.Mode(self._container_strategy(), None, 0)
        with strategies.entering(mode):
            return fn(*args)


class ParameterServerStrategyV1(strategy.StrategyV1):
    """The ParameterServerStrategy of TensorFlow 1, for graphs: every worker runs the same
    program, variables lie on the tasks of job "ps" by turns, and updates are asynchronous.
    A process that is alone has its variables on its first CPU.

    Args:
      cluster_resolver: a ClusterResolver; by default what TF_CONFIG, else a launcher's
        variables say.

    Raises:
      ValueError: where the resolver does not say which task of its cluster this is.
    """

    def __init__(self, cluster_resolver=None):
        resolver = cluster_resolver or default_resolver()
        super().__init__(ParameterServerExtendedV1(self, resolver))
