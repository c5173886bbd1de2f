"""tf.keras.callbacks.Callback and lists of them."""

from headrace import _api as tf


class Callback:
    """Called at the beginning and end of training, epochs and batches."""

    def __init__(self):
        self.validation_data = None
        self.model = None

    def set_params(self, params):
        """Keeps what fit, evaluate or predict runs with: {"verbose", "epochs",
        "steps"}, in graphs of TensorFlow 1 "batch_size", "samples", "do_validation" and
        the names of "metrics" as well.
        """
        self.params = params

    def set_model(self, model):
        """Keeps the model as the attribute `model`, before anything begins."""
        self.model = model

    def on_batch_begin(self, batch, logs=None):
        """The older name of on_train_batch_begin."""

    def on_batch_end(self, batch, logs=None):
        """The older name of on_train_batch_end."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before the epoch of that number, from 0. Does nothing here."""

    def on_epoch_end(self, epoch, logs=None):
        """After an epoch: `logs` has losses and metrics, those of validation as
        "val_...".

        Does nothing here. What is added to `logs` reaches the callbacks that come
        later.
        """

    def on_train_batch_begin(self, batch, logs=None):
        """Before the batch of that number, counted from 0 in each epoch,
        is trained on."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch, logs=None):
        """After a batch: `logs` has the epoch's losses and metrics so far."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch, logs=None):
        """Before the batch of that number is evaluated. Does nothing here."""

    def on_test_batch_end(self, batch, logs=None):
        """After a batch was evaluated: `logs` has the metrics so far. Does nothing
        here.
        """

    def on_predict_batch_begin(self, batch, logs=None):
        """Before outputs of the batch of that number are computed.
        Does nothing here."""

    def on_predict_batch_end(self, batch, logs=None):
        """After a batch: `logs` has its "outputs". Does nothing here."""

    def on_train_begin(self, logs=None):
        """Before fit's first epoch. Does nothing here."""

    def on_train_end(self, logs=None):
        """After fit's last epoch. Does nothing here."""

    def on_test_begin(self, logs=None):
        """Before evaluate's first batch, or fit's validation. Does nothing here."""

    def on_test_end(self, logs=None):
        """After evaluate's last batch: `logs` has the metrics. Does nothing here."""

    def on_predict_begin(self, logs=None):
        """Before predict's first batch. Does nothing here."""

    def on_predict_end(self, logs=None):
        """After predict's last batch. Does nothing here."""


def _overrides(callback, method):
    """Whether the callback does something at that moment."""
    own = getattr(type(callback), method, None)
    if own is not getattr(Callback, method) or method in vars(callback):
        return True
    if method.startswith("on_train_batch"):
        return _overrides(callback, method.replace("_train", ""))
    return False


class CallbackList:
    """Hands every call on to its callbacks.

    `history` is a class, `progress` a function that makes a callback, or None: made
    unless the user gave one of that class.
    """

    def __init__(
        self,
        callbacks=None,
        add_history=False,
        add_progbar=False,
        model=None,
        history=None,
        progress=None,
        params=None,
        **kwargs,
    ):
        given = callbacks if callbacks is not None else []
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        self.callbacks = given
        if add_history or history is not None:
            self._add_history(history)
        made = None if progress is None else progress()
        if made is not None and not any(isinstance(c, type(made)) for c in given):
            given.append(made)
        self.params = dict(params or {}, **kwargs)
        if model is not None:
            self.set_model(model)
        self.set_params(self.params)

    def _add_history(self, history):
        history = history or tf.keras.callbacks.History
        own = [c for c in self.callbacks if isinstance(c, history)]
        if not own:
            own = [history()]
            self.callbacks.append(own[0])
        self._history = own[0]

    def __iter__(self):
        return iter(self.callbacks)

    def append(self, callback):
        """Puts a callback behind the others."""
        self.callbacks.append(callback)

    def set_params(self, params):
        """Tells all callbacks what the run is made with."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model):
        """Tells all callbacks the model; the model's `history` is that of this list."""
        self.model = model
        if hasattr(self, "_history"):
            object.__setattr__(model, "history", self._history)
        for callback in self.callbacks:
            callback.set_model(model)

    def batch_hooks(self, kind):
        """What to call at a batch's begin and at its end; None for nothing."""
        return tuple(
            self._batch_hook(f"on_{kind}_batch_{when}") for when in ("begin", "end")
        )

    def _batch_hook(self, name):
        called = [c for c in self.callbacks if _overrides(c, name)]
        hooks = [
            (getattr(c, name), getattr(c, "_takes_tensors", False)) for c in called
        ]

        def call(batch, logs=None):
            numbers = None
            for hook, takes_tensors in hooks:
                if takes_tensors:
                    hook(batch, logs)
                    continue
                if numbers is None:
                    numbers = _numbers(logs)  # one dict: a callback may add to it
                hook(batch, numbers)

        return call if hooks else None


def _numbers(logs):
    """Logs for callbacks: numbers in place of tensors; of a worker, waited for."""
    logs = logs.get() if hasattr(logs, "fetch") else logs
    if not logs:
        return {}
    told = {**getattr(logs, "described", {}), **logs}
    return tf.nest.map_structure(_number, told)


def _number(value):
    if not isinstance(value, tf.Tensor):
        return value
    return value.numpy() if value.shape.rank else value.numpy().item()


def _forward(name):
    if "_batch_" in name:

        def call(self, index, logs=None):
            hook = self._batch_hook(name)
            if hook is not None:
                hook(index, logs)

    elif "epoch" in name:

        def call(self, index, logs=None):
            numbers = _numbers(logs)
            for callback in self.callbacks:
                getattr(callback, name)(index, numbers)

    else:

        def call(self, logs=None):
            for callback in self.callbacks:
                getattr(callback, name)(_numbers(logs))

    call.__name__ = name
    call.__doc__ = f"Calls {name} of the callbacks."
    return call


_MOMENTS = ("epoch", "train_batch", "test_batch", "predict_batch", "batch")
for _what in (*_MOMENTS, "train", "test", "predict"):
    for _when in ("begin", "end"):
        _method = f"on_{_what}_{_when}"
        setattr(CallbackList, _method, _forward(_method))
