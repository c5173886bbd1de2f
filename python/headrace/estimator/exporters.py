"""tf.estimator's exporters: when train_and_evaluate writes models to be served."""

import abc
import inspect
import os

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.io import gfile, tf_record

_COMPARED = ("best_eval_result", "current_eval_result")


class Exporter(abc.ABC):
    """Writes models after evaluations; subclasses say of which."""

    @property
    @abc.abstractmethod
    def name(self):
        """The name of the folder below "export": a str."""

    @abc.abstractmethod
    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        """Writes a checkpoint of an estimator as a SavedModel below a path, or does not.

        `eval_result` are the metrics of the evaluation. The path of the model, or None.
        """


class _Saving(Exporter):
    """What exporters of SavedModels share."""

    def __init__(self, name, serving_input_receiver_fn, assets_extra, as_text):
        self._name = name
        self._given = (serving_input_receiver_fn, assets_extra, as_text)

    name = read_only("_name", 'The name of the folder below "export": a str.')

    def _save(self, estimator, export_path, checkpoint_path):
        receiver_fn, assets_extra, as_text = self._given
        return estimator.export_saved_model(
            export_path, receiver_fn, assets_extra, as_text, checkpoint_path
        )


def _keep_newest(folder, count):
    """Deletes all models of a folder but the newest."""
    if not count:
        return
    names = [n.strip("/") for n in tf.io.gfile.listdir(folder)]
    for name in sorted((n for n in names if n.isdigit()), key=int)[:-count]:
        try:
            tf.io.gfile.rmtree(os.path.join(folder, name))
        except tf.errors.OpError as e:
            logging.warn("Can not delete %s recursively: %s", name, e)


def _checked_count(exports_to_keep):
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise ValueError("`exports_to_keep`, if provided, must be positive number")
    return exports_to_keep


class FinalExporter(_Saving):
    """Writes the model once, at the end."""

    def __init__(
        self, name, serving_input_receiver_fn, assets_extra=None, as_text=False
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        if not is_the_final_export:
            return None
        logging.info("Performing the final export in the end of training.")
        return self._save(estimator, export_path, checkpoint_path)


class LatestExporter(_Saving):
    """Writes the model after each evaluation; of its models the `exports_to_keep` newest
    stay, all where that is None. ValueError unless it is positive."""

    def __init__(
        self,
        name,
        serving_input_receiver_fn,
        assets_extra=None,
        as_text=False,
        exports_to_keep=5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._exports_to_keep = _checked_count(exports_to_keep)

    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        written = self._save(estimator, export_path, checkpoint_path)
        _keep_newest(export_path, self._exports_to_keep)
        return written


def _loss_smaller(best_eval_result, current_eval_result):
    """Whether the loss became smaller; ValueError where there is none."""
    for name, found in zip(_COMPARED, (best_eval_result, current_eval_result)):
        if not found or "loss" not in found:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return best_eval_result["loss"] > current_eval_result["loss"]


def _check_compare_fn(compare_fn):
    names = list(inspect.signature(compare_fn).parameters)
    for needed in _COMPARED:
        if needed not in names:
            raise ValueError(
                f"compare_fn ({compare_fn}) must include {needed} argument."
            )
    unknown = [n for n in names if n not in _COMPARED]
    if unknown:
        raise ValueError(
            f"compare_fn ({compare_fn}) has following not expected args: {unknown}"
        )


class BestExporter(_Saving):
    """Writes the model after evaluations that are better than all before.

    `compare_fn(best_eval_result, current_eval_result)` says whether the latter is
    better, by default whether its loss is smaller. `event_file_pattern`: where, below
    the estimator's folder, events of earlier evaluations lie. Of its models the
    `exports_to_keep` newest stay. ValueError for another function or number.
    """

    def __init__(
        self,
        name="best_exporter",
        serving_input_receiver_fn=None,
        event_file_pattern="eval/*.tfevents.*",
        compare_fn=_loss_smaller,
        assets_extra=None,
        as_text=False,
        exports_to_keep=5,
    ):
        if compare_fn is None:
            raise ValueError("`compare_fn` must not be None.")
        _check_compare_fn(compare_fn)
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._compare_fn, self._pattern = compare_fn, event_file_pattern
        self._exports_to_keep = _checked_count(exports_to_keep)
        self._best, self._model_dir = None, None

    def export(
        self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
    ):
        if self._model_dir != estimator.model_dir:
            self._model_dir = estimator.model_dir
            if self._pattern:
                pattern = os.path.join(estimator.model_dir, self._pattern)
                self._best = self._best_before(pattern, eval_result)
        if not self._is_best(eval_result):
            return None
        logging.info("Performing best model export.")
        self._best = eval_result
        written = self._save(estimator, export_path, checkpoint_path)
        _keep_newest(export_path, self._exports_to_keep)
        return written

    def _is_best(self, found):
        return self._best is None or self._compare_fn(
            best_eval_result=self._best, current_eval_result=found
        )

    def _best_before(self, pattern, current):
        """The best of the evaluations in event files, but for the current one."""
        best, step = None, (current or {}).get("global_step")
        for path in gfile.glob(pattern):
            for event in tf_record.summary_iterator(path):
                values = {
                    v.tag: v.simple_value
                    for v in event.summary.value
                    if v.HasField("simple_value")
                }
                if not values or event.step == step:
                    continue
                if best is None or self._compare_fn(
                    best_eval_result=best, current_eval_result=values
                ):
                    best = values
        return best


def checked(exporters):
    """A tuple of the exporters; TypeError for what is none, ValueError for names that
    are missing or come twice."""
    if not exporters:
        return ()
    if isinstance(exporters, Exporter):
        exporters = [exporters]
    is_many = isinstance(exporters, (list, tuple, set))
    if not is_many or not all(isinstance(x, Exporter) for x in exporters):
        raise TypeError(
            "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found "
            f"{exporters}."
        )
    names = [x.name for x in exporters]
    if not all(names):
        raise ValueError(
            "An Exporter cannot have a name that is `None` or empty. All exporter "
            f"names: {names}"
        )
    if len(set(names)) != len(names):
        raise ValueError(
            "`exporters` must have unique names. Such a name cannot be `None`. All "
            f"exporter names: {names}"
        )
    return tuple(exporters)
