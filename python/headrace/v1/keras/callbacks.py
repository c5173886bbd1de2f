"""tf.compat.v1.keras.callbacks.TensorBoard: one event file, as TensorFlow 1 wrote it."""

from headrace import _api as tf
from headrace.context import stack
from headrace.framework.support import protos
from headrace.keras import settings
from headrace.keras.callback.base import Callback
from headrace.keras.callback.tensorboard import as_pictures
from headrace.keras.classes import takes
from headrace.v1.file_writer import FileWriter


@takes(
    "log_dir='./logs', histogram_freq=0, batch_size=32, write_graph=True, "
    "write_grads=False, write_images=False, embeddings_freq=0, "
    "embeddings_layer_names=None, embeddings_metadata=None, embeddings_data=None, "
    "update_freq='epoch', profile_batch=2"
)
class TensorBoard(Callback):
    """Scalars of epochs, or of batches too, in an event file of `log_dir`.

    `write_graph` adds the default graph. Every `histogram_freq` epochs, in a graph, each
    batch of validation adds histograms of weights and of layers' outputs, with
    `write_grads` of weights' gradients, with `write_images` weights as pictures.
    `update_freq` is "epoch", "batch", or after how many samples batches are written; then
    steps are counted in samples. `profile_batch` is the batch, counted from 1, of which a
    profile is written; 0 for none. `batch_size` changes nothing: batches of validation are
    those of fit(). NotImplementedError for embeddings, and for histograms outside of graphs.
    """

    def _begin(self):
        if self.embeddings_freq:
            raise NotImplementedError(
                "compat.v1.keras.callbacks.TensorBoard: embeddings are not supported, use "
                "tf.keras.callbacks.TensorBoard of TensorFlow 2"
            )
        if self.update_freq == "batch":
            self.update_freq = 1
        self._writer = self._merged = None
        self._samples = self._written = self._batches = self._tests = 0
        self._profiling = False

    def set_model(self, model):
        """Takes the model, and begins the file."""
        self.model = model
        graph = stack.plain_graph()
        if self.histogram_freq and graph is None:
            raise NotImplementedError(
                "compat.v1.keras.callbacks.TensorBoard: histograms outside of graphs are "
                "not supported, use tf.keras.callbacks.TensorBoard of TensorFlow 2"
            )
        if self._writer is None:
            with tf.Graph().as_default():  # in which writers of files may be made
                kept = graph if self.write_graph else None
                self._writer = FileWriter(self.log_dir, kept)

    def _write(self, prefix, logs, step):
        for name, value in logs.items():
            if name in ("batch", "size", "num_steps"):
                continue
            summary = protos.Summary()
            summary.value.add(tag=prefix + name, simple_value=float(value))
            self._writer.add_summary(summary, step)
        self._writer.flush()

    # --- histograms ---

    def _summaries(self):
        """One operation for all of them, made once."""
        if self._merged is None:
            found = []
            for layer in self.model.layers:
                for weight in layer.weights:
                    found += self._of_weight(weight)
                if self.write_grads:
                    found += self._of_slopes(layer.trainable_weights)
                if layer.inbound_nodes:
                    outputs = tf.nest.flatten(layer.output)
                    names = [f"{layer.name}_out"]
                    if len(outputs) > 1:
                        names = [f"{names[0]}_{i}" for i in range(len(outputs))]
                    found += map(_histogram, names, outputs)
            self._merged = tf.compat.v1.summary.merge(found)
        return self._merged

    def _of_weight(self, weight):
        name = weight.name.replace(":", "_")
        yield _histogram(name, weight)
        if self.write_images:
            last = settings.image_data_format() == "channels_last"
            picture = as_pictures(tf.convert_to_tensor(weight), last)
            if picture is not None:
                yield tf.compat.v1.summary.image(name, picture)

    def _of_slopes(self, weights):
        slopes = tf.gradients(self.model.total_loss, weights) if weights else []
        for weight, slope in zip(weights, slopes):
            if slope is not None:
                name = weight.name.replace(":", "_")
                yield _histogram(f"{name}_grad", tf.convert_to_tensor(slope))

    def _take(self, summary):
        self._writer.add_summary(summary, self._tests)
        self._tests += 1

    # --- moments ---

    def on_epoch_begin(self, epoch, logs=None):
        """Asks the steps of validation for histograms, where it is their turn."""
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            beside = self.model._steps("test").beside
            beside.append((self._summaries(), self._take))

    def on_train_batch_begin(self, batch, logs=None):
        """Begins the profile."""
        self._batches += 1
        if self._batches == self.profile_batch:
            tf.profiler.experimental.start(self.log_dir)
            self._profiling = True

    def on_train_batch_end(self, batch, logs=None):
        """Writes the batch's scalars, where that is asked for; ends the profile."""
        logs = logs or {}
        self._samples += logs.get("size", 1)
        due = self.update_freq != "epoch"
        if due and self._samples - self._written >= self.update_freq:
            self._write("batch_", logs, self._batches - 1)
            self._written = self._samples
        self._end_profile()

    def on_epoch_end(self, epoch, logs=None):
        """Writes the epoch's scalars."""
        self.model._steps("test").beside.clear()
        step = epoch if self.update_freq == "epoch" else self._samples
        self._write("epoch_", logs or {}, step)

    def on_train_end(self, logs=None):
        """Closes the file."""
        self._end_profile()
        self._writer.close()
        self._writer = None

    def _end_profile(self):
        if self._profiling:
            self._profiling = False
            tf.profiler.experimental.stop()


def _histogram(name, tensor):
    return tf.compat.v1.summary.histogram(name, tensor)
