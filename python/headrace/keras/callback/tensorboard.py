"""Writes what TensorBoard shows."""

import contextlib
import json
import os
import time

from headrace import _api as tf
from headrace.context import late, stack
from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.callback.base import Callback
from headrace.keras.classes import OfConstructor, takes
from headrace.keras.layer.embedding import Embedding
from headrace.summary import metadata


def _batches_of(profile_batch):
    """(first, last) of profile_batch, counted from 1; (0, 0) for none."""
    given = profile_batch
    if isinstance(given, str):
        given = [int(n) for n in given.split(",")]
    pair = (given, given) if isinstance(given, int) else given
    if not (
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(isinstance(n, int) for n in pair)
        and 0 <= pair[0] <= pair[1]
    ):
        raise ValueError(
            "profile_batch must be a non-negative integer or 2-tuple of positive "
            "integers. A pair of positive integers signifies a range of batches to "
            f"profile. Found: {profile_batch}"
        )
    return tuple(pair)


def _at_once():
    """A context whose operations run at once, also beside a graph."""
    in_graph = stack.plain_graph() is not None
    return stack.entering(None) if in_graph else contextlib.nullcontext()


def as_pictures(weight, channels_last=True):
    """A weight as pictures, [k, height, width, 1]: a matrix is one that is wider than
    high, of three dimensions the last, or else the first, is the pictures'; None for
    more."""
    pixels = tf.squeeze(weight)
    rank = pixels.shape.rank
    if rank == 1:
        return tf.reshape(pixels, [1, -1, 1, 1])
    if rank == 2:
        wide = pixels.shape[0] <= pixels.shape[1]
        return (pixels if wide else tf.transpose(pixels))[None, ..., None]
    if rank == 3 and channels_last:
        pixels = tf.transpose(pixels, [2, 0, 1])
    return pixels[..., None] if rank == 3 else None


@takes(
    "log_dir='logs', histogram_freq=0, write_graph=True, write_images=False, "
    "write_steps_per_second=False, update_freq='epoch', profile_batch=0, "
    "embeddings_freq=0, embeddings_metadata=None, **kwargs"
)
class TensorBoard(Callback):
    """Scalars of epochs and batches as event files, and more where it is asked for.

    Every `histogram_freq` epochs histograms of the weights, with `write_images`
    pictures of them; every `embeddings_freq` epochs a checkpoint of the weights, with
    the configuration of TensorBoard's projector for layers of embeddings, whose rows'
    names lie in the files `embeddings_metadata`: one path, or {layer's name: path}.

    In a graph of TensorFlow 1 it is that of tf.compat.v1.keras, whose arguments it takes
    there.
    """

    __signature__ = OfConstructor()

    def __new__(cls, *args, **kwargs):
        if cls is TensorBoard and stack.plain_graph() is not None:
            return late.tensor_board_of_v1(*args, **kwargs)
        return super().__new__(cls)

    def _further(self, arguments):
        if arguments:
            raise ValueError(f"Unrecognized arguments in `TensorBoard`: {arguments}")

    def _begin(self):
        self.log_dir = os.fspath(self.log_dir)
        self.update_freq = 1 if self.update_freq == "batch" else self.update_freq
        self._first_profiled, self._last_profiled = _batches_of(self.profile_batch)
        self._profiling = False
        self._batch = 0  # of the training, from 1
        self._writers = {}
        self._step = 0
        self._graph_is_due = False

    def _writer(self, name):
        if name not in self._writers:
            self._writers[name] = tf.summary.create_file_writer(
                os.path.join(self.log_dir, name)
            )
        return self._writers[name]

    @contextlib.contextmanager
    def _writing(self, name, step=None):
        """A context whose summaries go to a writer at once, also beside a graph."""
        with _at_once(), self._writer(name).as_default(step=step):
            yield

    def _iterations(self):
        return int(settings.get_value(self.model.optimizer.iterations))

    def on_train_begin(self, logs=None):
        """Writes the model's config, with write_graph."""
        self._graph_is_due = self.write_graph
        self._batch = 0
        if self.embeddings_freq:
            self._write_projector()
        if self.write_graph:
            self._write_model()

    def _write_model(self):
        """The configuration of models that have one."""
        if getattr(self.model, "_layer_graph", None) is None:
            return
        try:
            text = self.model.to_json()
        except NotImplementedError as e:
            logging.warn("Model failed to serialize as JSON. Ignoring... %s", e)
            return
        info = metadata.encode("graph_keras_model", b"1")
        with self._writing("train"):
            tf.summary.write("keras", text, step=0, metadata=info)

    def _write_projector(self):
        """projector_config.pbtxt: what checkpoints call the embeddings, and the files
        that say what their rows stand for."""
        layers = {x.name: x for x in self.model.layers if isinstance(x, Embedding)}
        files = self.embeddings_metadata or {}
        if isinstance(files, (str, os.PathLike)):
            files = dict.fromkeys(layers, files)
        if set(files) - set(layers):
            raise ValueError(
                "Unrecognized `Embedding` layer names passed to "
                "`keras.callbacks.TensorBoard` `embeddings_metadata` argument: "
                f"{(files.keys() - layers.keys())}"
            )
        weighted = [x for x in self.model.layers if x.weights]
        text = ""
        for name, layer in layers.items():
            place = next(i for i, x in enumerate(weighted) if x is layer)
            key = f"layer_with_weights-{place}/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
            text += f'embeddings {{\n  tensor_name: "{key}"\n'
            if name in files:
                text += f"  metadata_path: {json.dumps(os.fspath(files[name]))}\n"
            text += "}\n"
        tf.io.gfile.makedirs(self.log_dir)
        path = os.path.join(self.log_dir, "projector_config.pbtxt")
        with tf.io.gfile.GFile(path, "w") as file:
            file.write(text)

    def _write_graph(self):
        """The graph of the step, once it was traced."""
        self._graph_is_due = False
        graph = self.model._steps("train").graph
        if graph is not None:
            with self._writing("train"):
                tf.summary.graph(graph)

    def on_train_batch_begin(self, batch, logs=None):
        """Notes the time, with write_steps_per_second; begins the profile."""
        self._batch += 1
        if self.write_steps_per_second:
            self._batch_began = time.time()
        if self._first_profiled and self._batch == self._first_profiled:
            tf.profiler.experimental.start(self.log_dir)
            tf.summary.trace_on(graph=True)
            self._profiling = True

    def _end_profile(self, step):
        """Writes the profile, and the graphs of what ran, as "batch_STEP"."""
        self._profiling = False
        try:
            with self._writing("train"):
                tf.summary.trace_export(f"batch_{step}", step=step)
        finally:
            tf.profiler.experimental.stop()

    def on_train_batch_end(self, batch, logs=None):
        """Writes scalars at every update_freq-th batch, the graph once, the profile."""
        if self._profiling and self._batch >= self._last_profiled:
            self._end_profile(self._batch)
        if self._graph_is_due:
            self._write_graph()
        if self.update_freq == "epoch":
            return
        self._step += 1
        if self._step % self.update_freq:
            return
        values = dict(logs or {})
        if self.write_steps_per_second:
            rate = 1 / max(time.time() - self._batch_began, 1e-9)
            values = {"steps_per_second": rate, **values}
        self._write("train", "batch_{}", values, self._step)

    def _write(self, writer, title, values, step):
        with self._writing(writer):
            for name, value in values.items():
                tf.summary.scalar(title.format(name), value, step=step)

    def on_test_end(self, logs=None):
        """Writes the metrics of an evaluation by the optimizer's step count."""
        optimizer = getattr(self.model, "optimizer", None)
        if optimizer is not None and logs:
            step = self._iterations()
            self._write("validation", "evaluation_{}_vs_iterations", logs, step)

    def on_epoch_begin(self, epoch, logs=None):
        """Notes the time and the step count."""
        self._began = time.time()
        self._steps_before = self._iterations()

    def _scalars(self, epoch, logs):
        train = {k: v for k, v in logs.items() if not k.startswith("val_")}
        schedule = getattr(self.model.optimizer, "_schedule", None)
        if schedule is not None:
            train["learning_rate"] = float(
                settings.get_value(schedule(self.model.optimizer.iterations))
            )
        if self.write_steps_per_second:
            steps = self._iterations() - self._steps_before
            train["steps_per_second"] = steps / max(time.time() - self._began, 1e-9)
        shown = {"train": train}
        validation = {k[4:]: v for k, v in logs.items() if k.startswith("val_")}
        if validation:
            shown["validation"] = validation
        for writer, values in shown.items():
            self._write(writer, "epoch_{}", values, epoch)

    def on_epoch_end(self, epoch, logs=None):
        """Writes the epoch's scalars and, every histogram_freq epochs, all weights."""
        self._scalars(epoch, logs or {})
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            weights = [w for layer in self.model.layers for w in layer.weights]
            values = settings.batch_get_value(weights)
            with self._writing("train", epoch):
                for weight, value in zip(weights, values):
                    self._write_weight(weight.name, tf.convert_to_tensor(value))
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            path = os.path.join(self.log_dir, "train", f"keras_embedding.ckpt-{epoch}")
            self.model.save_weights(path)

    def _write_weight(self, name, weight):
        name = name.replace(":", "_")
        tf.summary.histogram(f"{name}/histogram", weight)
        pictures = as_pictures(weight) if self.write_images else None
        if pictures is not None:
            tf.summary.image(f"{name}/image", pictures)

    def on_train_end(self, logs=None):
        """Closes the files."""
        if self._profiling:
            self._end_profile(self._last_profiled)
        with _at_once():
            for writer in self._writers.values():
                writer.close()
        self._writers = {}
