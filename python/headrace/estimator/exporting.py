"""Estimator.export_saved_model: the latest checkpoint as a model to be served."""

import os
import time

from headrace import _api as tf
from headrace.estimator import evaluation, export_outputs
from headrace.estimator.mode_keys import ModeKeys
from headrace.framework.settings import logging
from headrace.saved_model import constants
from headrace.v1.collections import GraphKeys
from headrace.v1.saved.builder import SavedModelBuilder
from headrace.v1.saver import Saver
from headrace.v1.session import Session

_TAGS = {
    ModeKeys.PREDICT: [constants.SERVING],
    ModeKeys.TRAIN: [constants.TRAINING],
    ModeKeys.EVAL: ["eval"],
}
# The order in which graphs are added: the first one writes the variables.
_ORDER = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
_ATTEMPTS = 10  # to find a name that is free


def new_folder(base):
    """A path under `base` named after the second, that is not there yet."""
    for _ in range(_ATTEMPTS):
        path = os.path.join(base, str(int(time.time())))
        if not tf.io.gfile.exists(path):
            return path
        time.sleep(1)
    raise RuntimeError(
        f"Failed to obtain a unique export directory name after {_ATTEMPTS} attempts."
    )


def export(estimator, base, receiver_fns, assets_extra, as_text, checkpoint_path):
    """Writes a SavedModel with a graph for each mode of {mode: receiver function}; its
    path, as bytes."""
    modes = [m for m in _ORDER if receiver_fns.get(m) is not None]
    if not modes:
        raise ValueError(
            f"No valid modes for exporting found. Got {receiver_fns.keys()}."
        )
    path = checkpoint_path or estimator.latest_checkpoint()
    if not path:
        raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
    final = new_folder(os.fsdecode(base))
    folder, name = os.path.split(final)
    written = os.path.join(folder, f"temp-{name}")
    builder = SavedModelBuilder(written)
    for mode in modes:
        _add_graph(estimator, builder, mode, receiver_fns[mode], path, mode == modes[0])
    builder.save(as_text)
    for name, source in (assets_extra or {}).items():
        target = os.path.join(written, "assets.extra", name)
        tf.io.gfile.makedirs(os.path.dirname(target))
        tf.io.gfile.copy(source, target)
    tf.io.gfile.rename(written, final)
    return os.fsencode(final)


def _add_graph(estimator, builder, mode, receiver_fn, path, is_first):
    graph = estimator._new_graph()
    with graph.as_default():
        receiver = receiver_fn()
        labels = getattr(receiver, "labels", None)
        spec = estimator._call_model_fn(
            receiver.features, labels, mode, estimator.config
        )
        signatures = _signatures(_outputs(spec, mode), receiver, mode)
        saver = spec.scaffold.saver or Saver(sharded=True)
        local_init = spec.scaffold.local_init_op
        if local_init is None:
            local_init = tf.compat.v1.train.Scaffold.default_local_init_op()
        with Session(config=estimator._session_config) as session:
            given = {
                "tags": _TAGS[mode],
                "signature_def_map": signatures,
                "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
                "main_op": local_init,
                "saver": saver,
                "strip_default_attrs": True,
            }
            saver.restore(session, path)
            if is_first:
                builder.add_meta_graph_and_variables(session, **given)
            else:
                builder.add_meta_graph(**given)


def _outputs(spec, mode):
    """{signature's name: ExportOutput} of a mode."""
    if mode == ModeKeys.PREDICT:
        return spec.export_outputs
    if mode == ModeKeys.TRAIN:
        return {
            "train": export_outputs.TrainOutput(spec.loss, spec.predictions or None)
        }
    metrics = evaluation.values_and_updates(spec.eval_metric_ops)
    return {
        "eval": export_outputs.EvalOutput(spec.loss, spec.predictions or None, metrics)
    }


def _signatures(outputs, receiver, mode):
    """{name: SignatureDef}; what cannot be served is told and left out."""
    tensors = [("", receiver.receiver_tensors)]
    others = getattr(receiver, "receiver_tensors_alternatives", None)
    tensors += [(f"{name}:", given) for name, given in (others or {}).items()]
    made, refused = {}, {}
    for prefix, given in tensors:
        for name, output in outputs.items():
            key = f"{prefix}{name or 'None'}"
            try:
                made[key] = output.as_signature_def(given)
            except ValueError as e:
                refused[key] = str(e)
    _tell(made, refused, mode == ModeKeys.PREDICT)
    return made


def _tell(made, refused, serves):
    for name, method in export_outputs.METHODS.items():
        keys = [k for k, s in made.items() if s.method_name == method]
        logging.info("Signatures INCLUDED in export for %s: %s", name, keys or None)
    if refused:
        logging.info(
            "Signatures EXCLUDED from export because they cannot be be served via "
            "TensorFlow Serving APIs:"
        )
        for name, reason in refused.items():
            logging.info("'%s' : %s", name, reason)
    if not made:
        logging.warn("Export includes no signatures!")
    elif serves and constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY not in made:
        logging.warn("Export includes no default signature!")
