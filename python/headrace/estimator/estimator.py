"""tf.estimator.Estimator."""

import copy
import os
import tempfile

from headrace.context.properties import read_only
from headrace.estimator import (
    evaluation,
    exporting,
    inputs,
    prediction,
    training,
    warm_start,
)
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.checkpoints import step_of
from headrace.estimator.run_config import RunConfig, default_session_config
from headrace.estimator.spec import EstimatorSpec
from headrace.framework.settings import logging
from headrace.graph.graph import Graph
from headrace.train import checkpoint_reader, checkpoint_state
from headrace.v1.train import basic_hooks, global_step, session_creators
from headrace.v1.train.saver_hooks import CheckpointSaverListener
from headrace.v1.train.session_run_hook import SessionRunHook

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}


class Estimator:
    """Trains, evaluates and uses a model that a function makes anew each time; what
    it learns is in the checkpoints of a folder."""

    def __init__(
        self, model_fn, model_dir=None, config=None, params=None, warm_start_from=None
    ):
        if type(self) is not Estimator:
            _refuse_overrides(self)
        self._config = _config_for(config, model_dir)
        self._model_dir = self._config.model_dir
        logging.info("Using config: %s", str(vars(self._config)))
        self._session_config = self._config.session_config
        if self._session_config is None:
            self._session_config = default_session_config()
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        _check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings = warm_start.settings_of(warm_start_from)

    model_dir = read_only("_model_dir", "The folder of checkpoints and events.")

    @property
    def config(self):
        """A copy of the RunConfig."""
        return copy.deepcopy(self._config)

    @property
    def params(self):
        """A copy of the parameters that model_fn gets: a dict."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self):
        """The function, as it is called: (features, labels, mode, config)."""

        def public_model_fn(features, labels, mode, config):
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    # --- what it has learned ---

    def _require_checkpoint(self):
        if self.latest_checkpoint() is None:
            raise ValueError(f"Estimator has not been trained yet: {self._model_dir}")

    def get_variable_value(self, name):
        """A variable's value in the latest checkpoint, as an array."""
        self._require_checkpoint()
        return checkpoint_reader.load_variable(self._model_dir, name)

    def get_variable_names(self):
        """The names that the latest checkpoint holds."""
        self._require_checkpoint()
        return [n for n, _ in checkpoint_reader.list_variables(self._model_dir)]

    def latest_checkpoint(self):
        """The newest checkpoint of the folder, or None."""
        return checkpoint_state.latest_checkpoint(self._model_dir)

    def eval_dir(self, name=None):
        """Where summaries of an evaluation are written."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    # --- the three modes ---

    def train(
        self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None
    ):
        """Trains `steps` steps more, or until step `max_steps`, or as long as there is
        input."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"Must specify {name} > 0, given: {value}")
        if max_steps is not None and max_steps <= step_of(self._model_dir):
            logging.info("Skipping training since max_steps has already saved.")
            return self
        hooks = checked_hooks(hooks)
        if steps is not None or max_steps is not None:
            hooks.append(basic_hooks.StopAtStepHook(steps, max_steps))
        listeners = list(saving_listeners or [])
        for listener in listeners:
            if not isinstance(listener, CheckpointSaverListener):
                raise TypeError(
                    "saving_listeners must be a list of CheckpointSaverListener, "
                    f"given: {listener}"
                )
        loss = training.train(self, input_fn, hooks, listeners)
        logging.info("Loss for final step: %s.", loss)
        return self

    def evaluate(
        self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None
    ):
        """{metric: value} over the input; `loss` and `global_step` are among them."""
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        return evaluation.evaluate(
            self, input_fn, steps, checked_hooks(hooks), checkpoint_path, name
        )

    def predict(
        self,
        input_fn,
        predict_keys=None,
        hooks=None,
        checkpoint_path=None,
        yield_single_examples=True,
    ):
        """Yields what the model predicts for each example (or batch) of the input."""
        how = (checked_hooks(hooks), checkpoint_path, yield_single_examples)
        return prediction.predict(self, input_fn, predict_keys, *how)

    def _checkpoint_for(self, checkpoint_path, what):
        """The checkpoint to use, None where there is none to be found."""
        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization "
                "to %s.",
                self._model_dir,
                what,
            )
        return path

    # --- making the graph ---

    def _new_graph(self, devices=None):
        """A graph with its step, which lies where the device function says, to be
        entered."""
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with graph.as_default(), graph.device(devices):
            step = self._create_global_step(graph)
        assert step is global_step.get_global_step(graph)
        return graph

    def _create_global_step(self, graph):
        return global_step.create_global_step(graph)

    def _call_input_fn(self, input_fn, mode):
        return inputs.call_input_fn(input_fn, mode, self.params, self.config)

    def _call_model_fn(self, features, labels, mode, config):
        names = inputs.argument_names(self._model_fn)
        arguments = {}
        if "labels" in names:
            arguments["labels"] = labels
        elif labels is not None:
            raise ValueError(
                "model_fn does not take labels, but input_fn returns labels."
            )
        known = {"mode": mode, "params": self.params, "config": config}
        arguments.update({n: v for n, v in known.items() if n in names})
        logging.info("Calling model_fn.")
        result = self._model_fn(features=features, **arguments)
        logging.info("Done calling model_fn.")
        if not isinstance(result, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return result

    def _spec_and_hooks(self, input_fn, mode):
        """(EstimatorSpec, hooks of the input) of a mode, in the current graph."""
        result = self._call_input_fn(input_fn, mode)
        features, labels, hooks = inputs.features_and_labels(result, mode)
        return self._call_model_fn(features, labels, mode, self.config), hooks

    def _creator_of_sessions(self, scaffold, path):
        """What makes sessions that a checkpoint, or without one the scaffold, starts."""
        return session_creators.ChiefSessionCreator(
            scaffold=scaffold,
            checkpoint_filename_with_path=path,
            master=self._config.master,
            config=self._session_config,
        )

    # --- writing models ---

    def export_saved_model(
        self,
        export_dir_base,
        serving_input_receiver_fn,
        assets_extra=None,
        as_text=False,
        checkpoint_path=None,
        experimental_mode=ModeKeys.PREDICT,
    ):
        """Writes the latest checkpoint, or another, as a SavedModel in a new folder of
        `export_dir_base`, named after the second; its path, as bytes.

        `serving_input_receiver_fn` gives what the model is fed; `assets_extra` are
        {path below assets.extra: file} to copy. ValueError for no function and where
        nothing has been trained.
        """
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        return self.experimental_export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base,
        input_receiver_fn_map,
        assets_extra=None,
        as_text=False,
        checkpoint_path=None,
    ):
        """As export_saved_model, with a graph for each mode of {mode: function that
        gives what it is fed}."""
        how = assets_extra, as_text, checkpoint_path
        return exporting.export(self, export_dir_base, input_receiver_fn_map, *how)


_OVERRIDABLE = {
    "_call_input_fn",
    "_call_model_fn",
    "_create_global_step",
    "_config_for",
}


def _refuse_overrides(estimator):
    """Subclasses say what differs in their model_fn, not by other methods."""
    own = {
        n
        for cls in type(estimator).__mro__
        if issubclass(cls, Estimator) and cls is not Estimator
        for n in vars(cls)
    }
    taken = {n for n in own & set(vars(Estimator)) if not n.startswith("__")}
    taken -= _OVERRIDABLE
    if taken:
        raise ValueError(
            f"Subclasses of Estimator cannot override members of Estimator. "
            f"{estimator} does override {sorted(taken)}"
        )


def checked_hooks(hooks):
    hooks = list(hooks or [])
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return hooks


def _check_model_fn(model_fn, params):
    names = set(inputs.argument_names(model_fn))
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params "
            f"({params}) is passed to Estimator."
        )
    if params is None and "params" in names:
        logging.warn(
            "Estimator's model_fn (%s) includes params argument, but params are not "
            "passed to Estimator.",
            model_fn,
        )
    unknown = sorted(names - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(
            f"model_fn ({model_fn}) has following not expected args: {unknown}"
        )


def _config_for(config, model_dir):
    """The configuration, with the folder that it or the constructor names."""
    model_dir = None if model_dir is None else os.fspath(model_dir)
    if config is None:
        config = RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise ValueError(
            f"config must be an instance of `RunConfig`, but provided {config}."
        )
    if model_dir is None and config.model_dir is None:
        model_dir = tempfile.mkdtemp()
        logging.warn("Using temporary folder as model directory: %s", model_dir)
    if model_dir is None:
        return config
    if config.model_dir not in (None, model_dir):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with "
            f"different values. In constructor: '{model_dir}', in `RunConfig`: "
            f"'{config.model_dir}' "
        )
    return config.replace(model_dir=model_dir)
