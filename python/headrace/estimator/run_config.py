"""tf.estimator.RunConfig: where and how an Estimator runs."""

import copy
import json
import os

from headrace.context.properties import read_only
from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.estimator import roles
from headrace.framework.support import protos, signatures

_DEFAULT = object()  # not given
_UNSUPPORTED = tuple(
    """
    train_distribute eval_distribute experimental_distribute
    experimental_max_worker_delay_secs
    """.split()
)


class TaskType:
    """What a process of a cluster does."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


def default_session_config():
    """Soft placement, and the graph rewritten once."""
    config = protos.ConfigProto(allow_soft_placement=True)
    rewrites = config.graph_options.rewrite_options
    rewrites.meta_optimizer_iterations = type(rewrites).ONE
    return config


def _check(config):
    positive = ("save_checkpoints_secs", "save_checkpoints_steps")
    for name in (*positive, "save_summary_steps", "keep_checkpoint_max"):
        value = getattr(config, name)
        if value is not None and value < 0:
            raise ValueError(f"{name} should be >= 0")
    for name in ("keep_checkpoint_every_n_hours", "log_step_count_steps"):
        value = getattr(config, name)
        if value is not None and value <= 0:
            raise ValueError(f"{name} should be > 0")
    seed = config.tf_random_seed
    if seed is not None and not isinstance(seed, int):
        raise ValueError("tf_random_seed must be integer.")
    if config.model_dir is not None and not config.model_dir:
        raise ValueError("model_dir should be non-empty")
    for name in _UNSUPPORTED:
        if getattr(config, name) is not None:
            raise NotImplementedError(f"RunConfig: {name} is not supported")


class RunConfig:
    """The configuration of an Estimator: a value, changed by replace()."""

    @signatures.having(
        "self, model_dir=None, tf_random_seed=None, save_summary_steps=100, "
        "save_checkpoints_steps=_DEFAULT, save_checkpoints_secs=_DEFAULT, "
        "session_config=None, keep_checkpoint_max=5, "
        "keep_checkpoint_every_n_hours=10000, log_step_count_steps=100, "
        "train_distribute=None, device_fn=None, protocol=None, eval_distribute=None, "
        "experimental_distribute=None, experimental_max_worker_delay_secs=None, "
        "session_creation_timeout_secs=7200, checkpoint_save_graph_def=True",
        _DEFAULT=_DEFAULT,
    )
    def __init__(self, **given):
        often = ("save_checkpoints_steps", "save_checkpoints_secs")
        if all(given[name] is _DEFAULT for name in often):
            given["save_checkpoints_secs"] = 600
        for name in often:
            if given[name] is _DEFAULT:
                given[name] = None
        if given["save_checkpoints_steps"] and given["save_checkpoints_secs"]:
            raise ValueError(_BOTH)
        given["model_dir"] = _folder(given["model_dir"])
        own_session = given["session_config"] is None
        if own_session:
            given["session_config"] = default_session_config()
        self.__dict__.update({f"_{name}": value for name, value in given.items()})
        self.__dict__.update(_ALONE, _cluster_spec=ClusterSpec({}))
        self.__dict__.update(roles.of_environment())
        if self._cluster_spec and own_session:
            roles.filter_devices(self._session_config, self._task_type, self._task_id)
        _check(self)

    def __getattr__(self, name):
        if name[:1] != "_" and "_" + name in self.__dict__:
            return self.__dict__["_" + name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name, value):
        raise AttributeError(f"RunConfig: {name} is changed by replace()")

    def __deepcopy__(self, memo):
        other = type(self).__new__(type(self))
        other.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return other

    is_chief = read_only(
        "_is_chief", "Whether this task writes checkpoints and summaries."
    )

    def replace(self, **kwargs):
        """A copy with other values."""
        for name in kwargs:
            if name not in _REPLACEABLE:
                raise ValueError(
                    f"Replacing {name} is not supported. Allowed properties are "
                    f"{_REPLACEABLE}."
                )
        steps = kwargs.get("save_checkpoints_steps")
        secs = kwargs.get("save_checkpoints_secs")
        if steps is not None and secs is not None:
            raise ValueError(_BOTH)
        other = copy.deepcopy(self)
        if "save_checkpoints_steps" in kwargs:
            other.__dict__["_save_checkpoints_secs"] = None
        if "save_checkpoints_secs" in kwargs:
            other.__dict__["_save_checkpoints_steps"] = None
        for name, value in kwargs.items():
            value = _folder(value) if name == "model_dir" else value
            other.__dict__["_" + name] = value
        _check(other)
        return other


_REPLACEABLE = [p.name for p in signatures.parameters_of(RunConfig)]
_BOTH = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."


def _folder(model_dir):
    """The folder, which TF_CONFIG may name too."""
    model_dir = None if model_dir is None else os.fspath(model_dir)
    named = json.loads(os.environ.get("TF_CONFIG") or "{}").get("model_dir")
    if named and model_dir and named != model_dir:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same "
            f"value as the model_dir in TF_CONFIG. model_dir: {model_dir}\nTF_CONFIG"
            f'["model_dir"]: {named}.\n'
        )
    return model_dir or named


_ALONE = {
    "_service": None,
    "_cluster_spec": None,
    "_task_type": TaskType.WORKER,
    "_task_id": 0,
    "_global_id_in_cluster": 0,
    "_master": "",
    "_evaluation_master": "",
    "_is_chief": True,
    "_num_ps_replicas": 0,
    "_num_worker_replicas": 1,
}
