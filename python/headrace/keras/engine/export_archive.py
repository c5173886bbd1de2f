"""tf.keras.export.ExportArchive: SavedModels of a model's functions, for serving alone."""

from headrace import _api as tf
from headrace.framework.trackable import AutoTrackable, Trackable
from headrace.keras.base.base_layer import Layer
from headrace.keras.engine import export

_DEFAULT = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_NO_SIGNATURE = """If the `fn` argument provided is not a `tf.function`, you must provide an \
`input_signature` argument to specify the shape and dtype of the function arguments. Example:

export_archive.add_endpoint(
    name='call',
    fn=model.call,
    input_signature=[
        tf.TensorSpec(
            shape=(None, 224, 224, 3),
            dtype=tf.float32,
        )
    ],
)"""


class ExportArchive(AutoTrackable):
    """Gathers functions, "endpoints", that a SavedModel is to have, and what they use.

    archive = tf.keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, [tf.TensorSpec((None, 3))])
    archive.write_out(folder)
    """

    def __init__(self):
        self._endpoint_names = []
        self._tracked = []
        self.tensorflow_version = tf.version.VERSION
        self.variables = []
        self.trainable_variables = []
        self.non_trainable_variables = []

    def track(self, resource):
        """Has a layer, model, table or other Trackable saved along.

        ValueError for other objects and for layers that are not built.
        """
        if not isinstance(resource, Trackable):
            raise ValueError(
                "Invalid resource type. Expected an instance of a TensorFlow `Trackable` "
                "(such as a TF-Keras `Layer` or `Model`). Received instead an object of "
                f"type '{type(resource)}'. Object received: {resource}"
            )
        if isinstance(resource, Layer):
            if not resource.built:
                raise ValueError(
                    "The layer provided has not yet been built. It must be built before "
                    "export."
                )
            self.variables += resource.variables
            self.trainable_variables += resource.trainable_variables
            self.non_trainable_variables += resource.non_trainable_variables
        self._tracked.append(resource)

    def add_endpoint(self, name, fn, input_signature=None):
        """Adds a function.

        Args:
          name: what it is called in the SavedModel, also among its signatures.
          fn: a function; a tf.function that has run needs no `input_signature`.
          input_signature: the specs of its arguments.

        Raises:
          ValueError: the name is taken, or nobody knows what the function takes.
        """
        if name in self._endpoint_names:
            raise ValueError(f"Endpoint name '{name}' is already taken.")
        if input_signature is not None:
            fn = tf.function(fn, input_signature=input_signature)
        elif not isinstance(fn, tf.types.experimental.PolymorphicFunction):
            raise ValueError(_NO_SIGNATURE)
        elif not fn._list_all_concrete_functions():
            raise ValueError(
                f"The provided tf.function '{fn}' has never been called. To specify the "
                "expected shape and dtype of the function's arguments, you must either "
                "provide a function that has been called at least once, or alternatively "
                "pass an `input_signature` argument in `add_endpoint()`."
            )
        setattr(self, name, fn)
        self._endpoint_names.append(name)

    def add_variable_collection(self, name, variables):
        """Has the SavedModel list variables under a name.

        ValueError for what is no list, tuple or set of tf.Variables.
        """
        if not isinstance(variables, (list, tuple, set)):
            raise ValueError(
                "Expected `variables` to be a list/tuple/set. Received instead object of "
                f"type '{type(variables)}'."
            )
        wrong = {type(v) for v in variables if not isinstance(v, tf.Variable)}
        if wrong:
            raise ValueError(
                "Expected all elements in `variables` to be `tf.Variable` instances. "
                f"Found instead the following types: {list(wrong)}"
            )
        setattr(self, name, list(variables))

    def write_out(self, filepath, options=None):
        """Saves it in a folder; the first endpoint is also "serving_default".

        `options` is a tf.saved_model.SaveOptions. ValueError where there is no endpoint.
        """
        if not self._endpoint_names:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        signatures = {name: self._concrete(name) for name in self._endpoint_names}
        # What functions use is saved, even if nobody tracked it.
        self._used = [v for f in signatures.values() for v in f.variables]
        shown = "\n\n".join(
            f"* Endpoint '{name}'\n{_told(f)}" for name, f in signatures.items()
        )
        signatures.setdefault(_DEFAULT, signatures[self._endpoint_names[0]])
        tf.saved_model.save(self, filepath, signatures=signatures, options=options)
        print(
            f"Saved artifact at '{filepath}'. The following endpoints are available:\n\n"
            f"{shown}"
        )

    def _concrete(self, name):
        function = getattr(self, name)
        if function.input_signature is not None:
            return function.get_concrete_function()
        return function._list_all_concrete_functions()[0]


def export_model(model, filepath):
    """Model.export()."""
    archive = ExportArchive()
    archive.track(model)
    if getattr(model, "_layer_graph", None) is not None:
        specs = tf.nest.flatten(export.specs_of(model))
        signature = [specs] if len(specs) > 1 else specs
    else:
        seen = model.save_spec()
        if seen is None:
            raise ValueError(
                "The model provided has never called. It must be called at least once "
                "before export."
            )
        signature = seen[0][:1]
    archive.add_endpoint("serve", model.__call__, signature)
    archive.write_out(filepath)


def _told(concrete):
    """The parameters, results and captures of a function, without their first heading."""
    text = concrete.function_type.pretty(concrete.captured_inputs)
    return text.partition("\n")[2]
