"""tf.keras.utils.experimental.DatasetCreator."""

from headrace import _api as tf
from headrace.context import late, strategies


class DatasetCreator:
    """A function of a tf.distribute.InputContext that gives a dataset, in its place in
    fit(), evaluate() and predict(), which call it where the strategy wants batches.

    `input_options`, a tf.distribute.InputOptions, are the strategy's.
    """

    def __init__(self, dataset_fn, input_options=None):
        if not callable(dataset_fn):
            raise TypeError(
                "`dataset_fn` for `DatasetCreator` must be a `callable`. Received: "
                f"{dataset_fn}"
            )
        if input_options and not isinstance(input_options, late.InputOptions):
            raise TypeError(
                "`input_options` for `DatasetCreator` must be a "
                f"`tf.distribute.InputOptions`. Received: {input_options}"
            )
        self.dataset_fn, self.input_options = dataset_fn, input_options

    def __call__(self, *args, **kwargs):
        """The function's dataset; TypeError where it gives none."""
        dataset = self.dataset_fn(*args, **kwargs)
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                "The `callable` provided to `DatasetCreator` must return a Dataset. It "
                f'returns "{dataset}"'
            )
        return dataset

    def _dataset(self, steps):
        """What the strategy's replicas read, of a known number of steps."""
        if steps is None:
            raise ValueError(
                "When using a `tf.keras.utils.experimental.DatasetCreator`, "
                "`steps_per_epoch`, `validation_steps`, `steps`, or "
                "`pss_evaluation_shards` argument must be provided in `Model.fit`, "
                "`Model.evaluate`, or `Model.predict`."
            )
        strategy = strategies.strategy() or late.default_strategy()
        return strategy.distribute_datasets_from_function(self, self.input_options)
