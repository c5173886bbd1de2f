"""tf.keras.utils.SidecarEvaluator."""

from headrace import _api as tf
from headrace.framework.settings import logging

_SECONDS = 600  # after which somebody is told that no checkpoint comes


class SidecarEvaluator:
    """Evaluates each new checkpoint of a model that another task trains.

    Args:
      model: the compiled model, of the same layers as the one that is trained.
      data: what `evaluate` takes: a dataset, or arrays.
      checkpoint_dir: where the checkpoints come: those of
        tf.train.Checkpoint(model=model, optimizer=optimizer) with a
        tf.train.CheckpointManager, or of a ModelCheckpoint of weights.
      steps: of each evaluation; None: all of `data`.
      max_evaluations: start() returns once a checkpoint of this number, which its name
        ends with, or a later one is evaluated; None: never.
      callbacks: of the evaluations.
    """

    def __init__(
        self,
        model,
        data,
        checkpoint_dir,
        steps=None,
        max_evaluations=None,
        callbacks=None,
    ):
        self.model, self.data, self.checkpoint_dir = model, data, checkpoint_dir
        self.steps, self.max_evaluations = steps, max_evaluations
        self.callbacks = [] if callbacks is None else callbacks

    def start(self):
        """Waits for checkpoints and evaluates them.

        AssertionError for one that holds nothing of the model.
        """
        for path in tf.train.checkpoints_iterator(
            self.checkpoint_dir, timeout=_SECONDS, timeout_fn=self._still_waiting
        ):
            self._restore(path)
            logging.info(
                "Evaluation starts: Model weights loaded from latest checkpoint file %s",
                path,
            )
            self.model.evaluate(
                self.data, steps=self.steps, callbacks=self.callbacks, verbose=2
            )
            if self._is_last(path):
                logging.info("Last checkpoint evaluated. SidecarEvaluator stops.")
                return

    def _still_waiting(self):
        logging.info(
            "No checkpoints appear to be found after %s seconds. Please check if you are "
            "properly using a `tf.train.Checkpoint/CheckpointManager` or "
            "`tf.keras.callbacks.ModelCheckpoint(save_weights_only=True)` to save "
            "checkpoints by the training. See `tf.keras.SidecarEvaluator` doc for "
            "recommended flows of saving checkpoints.",
            _SECONDS,
        )
        return False

    def _restore(self, path):
        """Of tf.train.Checkpoint, or of the model's weights."""
        names = [name for name, _ in tf.train.list_variables(path)]
        if any(name.startswith("model/") for name in names):
            parts = {"model": self.model, "optimizer": self.model.optimizer}
            read = tf.train.Checkpoint(**parts).read(path)
        else:
            read = self.model.load_weights(path)
        read.expect_partial().assert_nontrivial_match()

    def _is_last(self, path):
        number = path.rpartition("-")[2]
        if self.max_evaluations is None or not number.isdecimal():
            return False
        return int(number) >= self.max_evaluations


class SidecarEvaluatorExperimental(SidecarEvaluator):
    """The older name of tf.keras.utils.SidecarEvaluator."""

    def __init__(self, *args, **kwargs):
        logging.warning(
            "`tf.keras.experimental.SidecarEvaluator` endpoint is deprecated and will be "
            "removed in a future release. Please use `tf.keras.utils.SidecarEvaluator`."
        )
        super().__init__(*args, **kwargs)
