"""Callbacks that stop training or change the learning rate."""

import numpy as np

from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.callback.base import Callback
from headrace.keras.classes import takes


class Monitor:
    """Says whether a value is better than another, by the metric's name."""

    def __init__(self, monitor, mode, min_delta=0.0):
        if mode not in ("auto", "min", "max"):
            logging.warn("Mode %s is unknown, fallback to auto mode.", mode)
            mode = "auto"
        if mode == "auto":
            last = monitor.removeprefix("val_")
            rising = last.endswith(("acc", "accuracy", "auc")) or last.startswith(
                "fmeasure"
            )
            mode = "max" if rising else "min"
        self.name, self.mode = monitor, mode
        self._delta = abs(min_delta)
        self.worst = np.inf if mode == "min" else -np.inf

    def current(self, logs, warning):
        """The value in the logs; None, and a warning, where there is none."""
        if self.name not in logs:
            logging.warn(warning, self.name, ",".join(logs))
        return logs.get(self.name)

    def better(self, value, than):
        if self.mode == "min":
            return np.less(value + self._delta, than)
        return np.greater(value - self._delta, than)


@takes(
    "monitor='val_loss', min_delta=0, patience=0, verbose=0, mode='auto', "
    "baseline=None, restore_best_weights=False, start_from_epoch=0"
)
class EarlyStopping(Callback):
    """Stops when a metric no longer improves."""

    def _begin(self):
        self.min_delta = abs(self.min_delta)
        self._monitor = Monitor(self.monitor, self.mode, self.min_delta)
        self.wait = self.stopped_epoch = 0
        self.best_weights = None

    def on_train_begin(self, logs=None):
        """Forgets earlier runs."""
        self.wait = self.stopped_epoch = 0
        self.best, self.best_weights = self._monitor.worst, None
        self.best_epoch = 0

    def get_monitor_value(self, logs):
        """The number that is watched; None, and a warning, where `logs` has it not."""
        return self._monitor.current(
            logs or {},
            "Early stopping conditioned on metric `%s` which is not available. "
            "Available metrics are: %s",
        )

    def on_epoch_end(self, epoch, logs=None):
        """Stops the model where the metric was no better for `patience` epochs.

        A metric that `logs` does not have is warned of.
        """
        current = self.get_monitor_value(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights = self.model.get_weights()
            self.best_epoch = epoch
        self.wait += 1
        if self._monitor.better(current, self.best):
            self.best, self.best_epoch = current, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._monitor.better(current, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        """Puts the best weights back, with restore_best_weights."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose > 0:
                print(
                    "Restoring model weights from the end of the best epoch: "
                    f"{self.best_epoch + 1}."
                )
            self.model.set_weights(self.best_weights)


def _rate(optimizer):
    return float(settings.get_value(optimizer.learning_rate))


def _set_rate(callback, epoch, rate, done):
    callback.model.optimizer.learning_rate = float(rate)
    if callback.verbose > 0:
        print(f"\nEpoch {epoch + 1}: {done} learning rate to {rate}.")


@takes("schedule, verbose=0")
class LearningRateScheduler(Callback):
    """Sets the rate of each epoch: schedule(epoch) or schedule(epoch, rate)."""

    def on_epoch_begin(self, epoch, logs=None):
        """Sets the rate of the epoch; ValueError where the schedule gives no float."""
        optimizer = self.model.optimizer
        try:
            rate = self.schedule(epoch, _rate(optimizer))
        except TypeError:
            rate = self.schedule(epoch)
        if hasattr(rate, "numpy"):
            rate = rate.numpy()
        if not isinstance(rate, (float, np.float32, np.float64, np.ndarray)):
            raise ValueError(
                f'The output of the "schedule" function should be float. Got: {rate}'
            )
        _set_rate(self, epoch, rate, "LearningRateScheduler setting")

    def on_epoch_end(self, epoch, logs=None):
        """Adds the rate to the logs, as "lr"."""
        if logs is not None:
            logs["lr"] = _rate(self.model.optimizer)


@takes(
    "monitor='val_loss', factor=0.1, patience=10, verbose=0, mode='auto', "
    "min_delta=1e-4, cooldown=0, min_lr=0, **kwargs"
)
class ReduceLROnPlateau(Callback):
    """Lowers the rate when a metric no longer improves."""

    def _further(self, arguments):
        """Older arguments are let pass, as upstream."""

    def _begin(self):
        if self.factor >= 1.0:
            raise ValueError(
                f"ReduceLROnPlateau does not support a factor >= 1.0. Got {self.factor}"
            )
        self._monitor = Monitor(self.monitor, self.mode, self.min_delta)
        self._reset()

    def _reset(self):
        self.best = self._monitor.worst
        self.cooldown_counter = self.wait = 0

    def on_train_begin(self, logs=None):
        """Forgets earlier runs."""
        self._reset()

    def on_epoch_end(self, epoch, logs=None):
        """Lowers the rate where the metric was no better for `patience` epochs.

        Adds the rate to the logs, as "lr". A metric that `logs` does not have is warned
        of.
        """
        logs = {} if logs is None else logs
        logs["lr"] = _rate(self.model.optimizer)
        current = self._monitor.current(
            logs,
            "Learning rate reduction is conditioned on metric `%s` which is not "
            "available. Available metrics are: %s",
        )
        if current is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._monitor.better(current, self.best):
            self.best, self.wait = current, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower(epoch)

    def in_cooldown(self):
        """Whether the rate was lowered less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def _lower(self, epoch):
        old = np.float32(_rate(self.model.optimizer))
        if old <= np.float32(self.min_lr):
            return
        rate = max(old * self.factor, self.min_lr)
        _set_rate(self, epoch, rate, "ReduceLROnPlateau reducing")
        self.cooldown_counter, self.wait = self.cooldown, 0
