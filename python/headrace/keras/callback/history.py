"""Callbacks that record."""

import collections
import csv
import json
import math
import os
import urllib.parse
import urllib.request

import numpy as np

from headrace.framework.settings import logging
from headrace.keras.callback.base import Callback
from headrace.keras.classes import takes


class History(Callback):
    """The logs of all epochs; fit returns one.

    Attributes:
      history: {name: [value of each epoch]}.
      epoch: the epochs' numbers.
    """

    def __init__(self):
        super().__init__()
        self.history = {}
        self.epoch = []

    def on_train_begin(self, logs=None):
        """Forgets the numbers of epochs; `history` goes on."""
        self.epoch = []

    def on_epoch_end(self, epoch, logs=None):
        """Appends the logs; the model's `history` is this one."""
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)
        object.__setattr__(self.model, "history", self)


class CSVLogger(Callback):
    """Writes the logs of every epoch to a file, a row each."""

    def __init__(self, filename, separator=",", append=False):
        super().__init__()
        self.filename, self.sep, self.append = filename, separator, append
        self._file = self._writer = self._keys = None

    def on_train_begin(self, logs=None):
        """Opens the file: anew, or at its end with `append`."""
        more = self.append and os.path.exists(self.filename)
        self._has_header = more and os.path.getsize(self.filename) > 0
        self._file = open(self.filename, "a" if self.append else "w", newline="")

    def on_epoch_end(self, epoch, logs=None):
        """Writes a row: the epoch and the values of the first row's names, NA where
        absent.
        """
        logs = logs or {}
        if self._keys is None:
            # Validation may begin in a later epoch.
            told = any(key.startswith("val_") for key in logs)
            keys = sorted(logs)
            self._keys = keys if told else keys + [f"val_{key}" for key in keys]
            fields = ["epoch", *self._keys]
            self._writer = csv.DictWriter(
                self._file, fieldnames=fields, delimiter=self.sep
            )
            if not self._has_header:
                self._writer.writeheader()
        row = collections.OrderedDict(epoch=epoch)
        row.update((key, logs.get(key, "NA")) for key in self._keys)
        self._writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs=None):
        """Closes the file."""
        self._file.close()
        self._writer = self._keys = None


@takes(
    "on_epoch_begin=None, on_epoch_end=None, on_batch_begin=None, on_batch_end=None, "
    "on_train_begin=None, on_train_end=None, **kwargs"
)
class LambdaCallback(Callback):
    """Calls the functions it is given where their names say: on_epoch_end(epoch, logs)."""

    def _before(self, given):
        self.__dict__.update({k: v for k, v in given.items() if v is not None})
        given.clear()


class BaseLogger(Callback):
    """Puts the means of an epoch's batches, by their sizes, into its logs; of
    `stateful_metrics` the last values."""

    def __init__(self, stateful_metrics=None):
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or [])

    def on_epoch_begin(self, epoch, logs=None):
        """Begins with nothing seen."""
        self.seen, self.totals = 0, {}

    def on_batch_end(self, batch, logs=None):
        """Adds the values of a batch of `size` in the logs, 0 where it does not say."""
        logs = logs or {}
        size = logs.get("size", 0) * logs.get("num_steps", 1)
        self.seen += size
        for name, value in logs.items():
            if name in self.stateful_metrics:
                self.totals[name] = value
            else:
                self.totals[name] = self.totals.get(name, 0) + value * size

    def on_epoch_end(self, epoch, logs=None):
        """Writes the means of the metrics that set_params() names into the logs."""
        for name in self.params["metrics"] if logs is not None else ():
            if name in self.totals:
                stateful = name in self.stateful_metrics
                value = self.totals[name]
                logs[name] = value if stateful else value / self.seen


@takes(
    "root='http://localhost:9000', path='/publish/epoch/end/', field='data', "
    "headers=None, send_as_json=False"
)
class RemoteMonitor(Callback):
    """Posts each epoch's logs to a server at root + path: JSON, by itself with
    `send_as_json`, else as a form's field."""

    def on_epoch_end(self, epoch, logs=None):
        """Posts {"epoch": epoch, ...logs}; a warning where nobody is there."""
        sent = {"epoch": epoch}
        for name, value in (logs or {}).items():
            sent[name] = value.item() if isinstance(value, _NUMPY) else value
        text = json.dumps(sent)
        kind = "json" if self.send_as_json else "x-www-form-urlencoded"
        if not self.send_as_json:
            text = urllib.parse.urlencode({self.field: text})
        headers = {"Content-Type": f"application/{kind}", **(self.headers or {})}
        url, data = self.root + self.path, text.encode()
        try:
            request = urllib.request.Request(url, data, headers)
            urllib.request.urlopen(request).close()
        except OSError:
            logging.warn(
                f"Warning: could not reach RemoteMonitor root server at {self.root}"
            )


_NUMPY = (np.ndarray, np.generic)


class TerminateOnNaN(Callback):
    """Stops training when the loss is no number."""

    def on_batch_end(self, batch, logs=None):
        """Stops the model where "loss" in `logs` is infinite or no number."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True
