"""tf.estimator.add_metrics and experimental.call_logit_fn."""

import inspect

from headrace import _api as tf
from headrace.estimator import inputs
from headrace.estimator.estimator import Estimator
from headrace.estimator.mode_keys import ModeKeys

_TAKEN = ("features", "labels", "predictions", "config")


def add_metrics(estimator, metric_fn):
    """An Estimator that evaluates what `metric_fn` gives too: {name: metric} of the
    arguments it names, out of features, labels, predictions, config. ValueError for
    other arguments."""
    if not callable(metric_fn):
        raise TypeError("unsupported callable")
    names = list(inspect.signature(metric_fn).parameters)
    unknown = [n for n in names if n not in _TAKEN]
    if unknown:
        raise ValueError(
            f"metric_fn ({metric_fn}) has following not expected args: {unknown}"
        )

    def model_fn(features, labels, mode, config):
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = dict(zip(_TAKEN, (features, labels, spec.predictions, config)))
        more = metric_fn(**{n: given[n] for n in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return Estimator(
        model_fn=model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )


def call_logit_fn(logit_fn, features, mode, params, config):
    """What logit_fn gives, called with those of its arguments that it names: a tensor,
    or {name: tensor}. ValueError for anything else."""
    known = {"mode": mode, "params": params, "config": config}
    names = inputs.argument_names(logit_fn)
    logits = logit_fn(
        features=features, **{n: v for n, v in known.items() if n in names}
    )
    if not tf.is_tensor(logits) and not isinstance(logits, dict):
        raise ValueError(
            "model_fn should return a Tensor or a dictionary of Tensors.  logit_fn: "
            f"{logit_fn}"
        )
    return logits
