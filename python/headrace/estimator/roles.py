"""What a process of a cluster does for an Estimator, as TF_CONFIG says."""

import json
import os
import time

from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.distribute.server import Server
from headrace.estimator.checkpoints import step_of
from headrace.framework.settings import logging
from headrace.train import checkpoint_state
from headrace.v1.train.device_setter import replica_device_setter

_IN_CLUSTER = 'If "cluster" is set in TF_CONFIG, '
_CHIEFS = ("chief", "master")
_LOOKS = 1.0  # seconds between two looks of an evaluator for a checkpoint


def of_environment():
    """The fields of a RunConfig that TF_CONFIG decides; none where it names no cluster.
    ValueError for a cluster without a chief, or a task that is not in it."""
    told = json.loads(os.environ.get("TF_CONFIG") or "{}")
    if not told.get("cluster"):
        return {}
    cluster = ClusterSpec(told["cluster"])
    kind, number = _task_of(told.get("task") or {}, cluster)
    fields = dict(_service=told.get("service"), _task_type=kind, _task_id=number)
    if kind == "evaluator":  # which is none of the others'
        alone = dict(_cluster_spec=ClusterSpec({}), _num_worker_replicas=0)
        return dict(fields, **alone, _is_chief=False, _global_id_in_cluster=None)
    counts = {job: cluster.num_tasks(job) for job in cluster.jobs}
    order = [j for j in ("chief", "master", "worker", "ps") if j in counts]
    order += [j for j in cluster.jobs if j not in (*order, "evaluator")]
    before = sum(counts[j] for j in order[: order.index(kind)])
    alone = sum(counts.values()) == 1
    return dict(
        fields,
        _cluster_spec=cluster,
        _is_chief=kind in _CHIEFS,
        _master="" if alone else f"grpc://{cluster.task_address(kind, number)}",
        _global_id_in_cluster=before + number,
        _num_ps_replicas=counts.get("ps", 0),
        _num_worker_replicas=sum(counts.get(j, 0) for j in (*_CHIEFS, "worker")),
    )


def _task_of(task, cluster):
    chiefs = [cluster.num_tasks(job) for job in _CHIEFS if job in cluster.jobs]
    if not chiefs:
        raise ValueError(_IN_CLUSTER + 'it must have one "chief" node.')
    if sum(chiefs) > 1:
        raise ValueError('The "cluster" in TF_CONFIG must have only one "chief" node.')
    kind, number = task.get("type"), task.get("index")
    if not kind:
        raise ValueError(_IN_CLUSTER + "task type must be set.")
    if number is None:
        raise ValueError(_IN_CLUSTER + "task index must be set.")
    number = int(number)
    if number < 0:
        raise ValueError("Task index must be non-negative number.")
    if kind == "evaluator":
        return kind, number
    if kind not in cluster.jobs:
        raise ValueError(
            f"{kind} is not a valid task_type in the cluster_spec:\n{cluster}"
        )
    if number not in cluster.task_indices(kind):
        raise ValueError(
            f"{number} is not a valid task_id for task_type {kind} in the "
            f"cluster_spec:\n{cluster}"
        )
    return kind, number


def filter_devices(session_config, kind, number):
    """Has sessions of a task wait for the servers of parameters and itself alone."""
    others = {"ps": ["/job:worker", "/job:chief", "/job:master"]}
    own = f"/job:{kind}" + (f"/task:{number}" if kind == "worker" else "")
    session_config.device_filters.extend(["/job:ps", *others.get(kind, [own])])


def devices_of(config):
    """The device function of a task's graph, or None."""
    if config.device_fn is not None:
        return config.device_fn
    if not config.num_ps_replicas:
        return None
    return replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        merge_devices=True,
        cluster=config.cluster_spec,
    )


def _serve(config):
    return Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        config=config.session_config,
        protocol=config.protocol,
    )


def run(estimator, train_spec, evaluator, start_delay_secs, throttle_secs):
    """What the task of the estimator's configuration does, until all is trained; a server
    of parameters joins until its process ends."""
    config = estimator.config
    if config.task_type == "evaluator":
        _evaluate(estimator, train_spec, evaluator, start_delay_secs, throttle_secs)
        return
    server = _serve(config) if config.master else None
    if config.task_type == "ps":
        server.join()
        return
    listeners = list(train_spec.saving_listeners) if config.is_chief else []
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=listeners,
    )


def _evaluate(estimator, train_spec, evaluator, start_delay_secs, throttle_secs):
    """Evaluates checkpoints as others write them, the last one too."""
    if train_spec.max_steps is not None and train_spec.max_steps <= step_of(
        estimator.model_dir
    ):
        logging.info(
            "Exiting evaluation, global_step has reached train max_steps already."
        )
        return
    time.sleep(start_delay_secs)
    seen = None
    while True:
        path = checkpoint_state.latest_checkpoint(estimator.model_dir)
        if path is None or path == seen:
            time.sleep(_LOOKS)
            continue
        begun, seen = time.time(), path
        step = step_of(estimator.model_dir)
        is_last = train_spec.max_steps is not None and step >= train_spec.max_steps
        evaluator.evaluate(step, is_last)
        if is_last:
            return
        time.sleep(max(0.0, begun + throttle_secs - time.time()))
