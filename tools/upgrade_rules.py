"""Measures what TensorFlow's tf_upgrade_v2 does with every name of TensorFlow 1.x:

    PYTHONPATH=python PYTHON_WITH_TENSORFLOW tools/upgrade_rules.py

Writes tests/golden/upgrade/names.txt (name, new name) and, of what our own tables of
names do not say, python/headrace/upgrade/rules.txt. Each name is converted alone, in a
call with all its arguments by position and in one with all by keyword; what comes out
is the rule. Run it with TF_USE_LEGACY_KERAS=1.
"""

import collections
import contextlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
import types

import tensorflow as tf
from tensorflow.tools.compatibility import tf_upgrade_v2_main

from headrace.upgrade import names as our_names

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Names that no module of today has, and modules that are renamed themselves.
OLD = """
app.flags flags contrib logging layers gfile losses metrics
keras.optimizers.Adam keras.optimizers.SGD keras.optimizers.RMSprop
keras.optimizers.Adagrad keras.optimizers.Adadelta keras.optimizers.Adamax
keras.optimizers.Nadam keras.optimizers.Ftrl keras.optimizers.Optimizer
keras.backend.get_session keras.backend.set_session
keras.experimental.export_saved_model keras.experimental.load_from_saved_model
keras.initializers.Zeros keras.initializers.Ones keras.initializers.Constant
keras.initializers.RandomNormal keras.initializers.RandomUniform
keras.initializers.TruncatedNormal keras.initializers.VarianceScaling
keras.initializers.Orthogonal keras.initializers.Identity
keras.initializers.glorot_normal keras.initializers.glorot_uniform
keras.initializers.he_normal keras.initializers.he_uniform
keras.initializers.lecun_normal keras.initializers.lecun_uniform
keras.initializers.zeros keras.initializers.ones keras.initializers.constant
keras.layers.CuDNNGRU keras.layers.CuDNNLSTM keras.layers.GRU keras.layers.LSTM
keras.layers.GRUCell keras.layers.LSTMCell keras.layers.BatchNormalization
keras.layers.DenseFeatures keras.losses.cosine keras.losses.cosine_proximity
keras.metrics.cosine keras.metrics.cosine_proximity
keras.metrics.CosineProximity keras.utils.plot_model
contrib.distribute contrib.distribute.MirroredStrategy
contrib.distribute.CollectiveAllReduceStrategy contrib.distribute.OneDeviceStrategy
contrib.distribute.ParameterServerStrategy contrib.distribute.TPUStrategy
contrib.summary contrib.summary.audio contrib.summary.create_file_writer
contrib.summary.generic contrib.summary.histogram contrib.summary.image
contrib.summary.scalar contrib.summary.flush contrib.summary.graph
contrib.summary.import_event contrib.summary.initialize
contrib.summary.all_summary_ops contrib.summary.should_record_summaries
contrib.summary.create_db_writer contrib.summary.create_summary_file_writer
contrib.summary.event contrib.summary.eval_dir contrib.summary.eval
contrib.summary.always_record_summaries contrib.summary.never_record_summaries
contrib.summary.record_summaries_every_n_global_steps
nn.rnn_cell.BasicLSTMCell nn.rnn_cell.BasicRNNCell nn.rnn_cell.DeviceWrapper
nn.rnn_cell.DropoutWrapper nn.rnn_cell.GRUCell nn.rnn_cell.LSTMCell
nn.rnn_cell.LSTMStateTuple nn.rnn_cell.MultiRNNCell nn.rnn_cell.RNNCell
nn.rnn_cell.ResidualWrapper test.mock
contrib.rnn.BasicLSTMCell contrib.rnn.BasicRNNCell contrib.rnn.GRUCell
contrib.rnn.LSTMCell contrib.rnn.MultiRNNCell contrib.rnn.RNNCell
contrib.rnn.LSTMStateTuple contrib.rnn.DropoutWrapper contrib.rnn.static_rnn
contrib.rnn.static_state_saving_rnn contrib.rnn.static_bidirectional_rnn
contrib.rnn.stack_bidirectional_dynamic_rnn contrib.rnn.LayerRNNCell
contrib.eager.defun contrib.eager.py_func contrib.eager.Iterator
contrib.framework.argsort contrib.framework.sort contrib.framework.nest
contrib.framework.nest.flatten contrib.framework.nest.map_structure
contrib.framework.nest.pack_sequence_as contrib.framework.CriticalSection
contrib.framework.is_tensor contrib.framework.load_variable
contrib.framework.nest.assert_same_structure contrib.framework.nest.is_nested
contrib.framework.constant_value contrib.util.constant_value
contrib.util.constant_value_as_shape contrib.util.make_tensor_proto
contrib.util.make_ndarray contrib.data.AUTOTUNE contrib.data.Counter
contrib.data.CheckpointInputPipelineHook contrib.data.CsvDataset
contrib.data.Optional contrib.data.RandomDataset contrib.data.Reducer
contrib.data.SqlDataset contrib.data.StatsAggregator contrib.data.TFRecordWriter
contrib.data.assert_element_shape contrib.data.batch_and_drop_remainder
contrib.data.bucket_by_sequence_length contrib.data.choose_from_datasets
contrib.data.copy_to_device contrib.data.dense_to_sparse_batch
contrib.data.enumerate_dataset contrib.data.get_next_as_optional
contrib.data.get_single_element contrib.data.group_by_reducer
contrib.data.group_by_window contrib.data.ignore_errors contrib.data.latency_stats
contrib.data.make_batched_features_dataset contrib.data.make_csv_dataset
contrib.data.make_saveable_from_iterator contrib.data.map_and_batch
contrib.data.padded_batch_and_drop_remainder contrib.data.parallel_interleave
contrib.data.parse_example_dataset contrib.data.prefetch_to_device
contrib.data.read_batch_features contrib.data.reduce_dataset
contrib.data.rejection_resample contrib.data.sample_from_datasets contrib.data.scan
contrib.data.set_stats_aggregator contrib.data.shuffle_and_repeat
contrib.data.sliding_window_batch contrib.data.sloppy_interleave
contrib.data.unbatch contrib.data.unique
contrib.estimator.make_early_stopping_hook
contrib.estimator.stop_if_higher_hook contrib.estimator.stop_if_lower_hook
contrib.estimator.stop_if_no_decrease_hook contrib.estimator.stop_if_no_increase_hook
contrib.estimator.make_stop_at_checkpoint_step_hook
contrib.estimator.InMemoryEvaluatorHook contrib.estimator.add_metrics
contrib.estimator.BaselineEstimator contrib.estimator.DNNEstimator
contrib.estimator.LinearEstimator contrib.estimator.DNNLinearCombinedEstimator
contrib.metrics.f1_score contrib.metrics.confusion_matrix
contrib.cluster_resolver.TPUClusterResolver
contrib.cluster_resolver.GceClusterResolver
contrib.cluster_resolver.KubernetesClusterResolver
contrib.cluster_resolver.SimpleClusterResolver
contrib.cluster_resolver.SlurmClusterResolver
contrib.cluster_resolver.TFConfigClusterResolver
contrib.cluster_resolver.UnionClusterResolver
contrib.tpu.TPUEstimator contrib.tpu.RunConfig contrib.tpu.initialize_system
contrib.tpu.shutdown_system contrib.tpu.CrossShardOptimizer
contrib.saved_model.load_keras_model contrib.saved_model.save_keras_model
contrib.image.angles_to_projective_transforms contrib.image.rotate
contrib.image.translate contrib.image.transform contrib.image.adjust_hsv_in_yiq
contrib.image.random_hsv_in_yiq contrib.image.dense_image_warp
contrib.image.interpolate_spline contrib.image.sparse_image_warp
contrib.image.connected_components contrib.image.matrices_to_flat_transforms
contrib.image.compose_transforms contrib.image.flat_transforms_to_matrices
contrib.layers.GDN contrib.layers.maxout contrib.layers.poincare_normalize
contrib.layers.layer_norm contrib.layers.instance_norm contrib.layers.group_norm
contrib.opt.AdamWOptimizer contrib.opt.LazyAdamOptimizer contrib.opt.MomentumWOptimizer
contrib.opt.MovingAverageOptimizer contrib.opt.LARSOptimizer contrib.opt.NadamOptimizer
contrib.opt.ScipyOptimizerInterface contrib.opt.ShampooOptimizer
contrib.opt.GGTOptimizer contrib.opt.DecoupledWeightDecayExtension
contrib.opt.ElasticAverageOptimizer contrib.opt.ConditionalGradientOptimizer
contrib.rnn.LayerNormBasicLSTMCell contrib.rnn.NASCell contrib.rnn.SRUCell
contrib.rnn.LayerNormLSTMCell contrib.rnn.PeepholeLSTMCell
contrib.seq2seq.BeamSearchDecoder contrib.seq2seq.BasicDecoder
contrib.seq2seq.AttentionWrapper contrib.seq2seq.LuongAttention
contrib.seq2seq.BahdanauAttention contrib.seq2seq.TrainingHelper
contrib.seq2seq.dynamic_decode contrib.seq2seq.sequence_loss
contrib.seq2seq.tile_batch contrib.text.skip_gram_sample contrib.text.parse_time
contrib.crf.crf_decode contrib.crf.crf_log_likelihood contrib.crf.viterbi_decode
contrib.crf.crf_log_norm contrib.crf.crf_sequence_score contrib.crf.crf_unary_score
contrib.losses.metric_learning.contrastive_loss
contrib.losses.metric_learning.lifted_struct_loss
contrib.losses.metric_learning.npairs_loss
contrib.losses.metric_learning.npairs_loss_multilabel
contrib.losses.metric_learning.triplet_semihard_loss
"""
# The arguments of old functions, which no module says.
OLD_CALLS = {
    "contrib.summary.audio": "name tensor sample_rate max_outputs family step",
    "contrib.summary.create_file_writer": "logdir max_queue flush_millis filename_suffix "
    "name",
    "contrib.summary.generic": "name tensor metadata family step",
    "contrib.summary.histogram": "name tensor family step",
    "contrib.summary.image": "name tensor bad_color max_images family step",
    "contrib.summary.scalar": "name tensor family step",
}


def parameters():
    """{name: names of its parameters, or None} of tf.compat.v1."""
    found = {}

    def walk(module, prefix, depth):
        for name in sorted(set(dir(module))):
            if name.startswith("_") or name in ("v1", "v2"):
                continue
            try:
                value = getattr(module, name)
            except Exception:  # lazy modules that this build does not have
                continue
            full = prefix + name
            if isinstance(value, types.ModuleType):
                if "_api" in value.__name__ and full != "compat" and depth < 5:
                    walk(value, full + ".", depth + 1)
                continue
            found[full] = None
            if callable(value):
                with contextlib.suppress(ValueError, TypeError):
                    found[full] = [
                        p.name
                        for p in inspect.signature(value).parameters.values()
                        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                    ]

    walk(tf.compat.v1, "", 0)
    for name in OLD.split():
        found.setdefault(name, None)
    for name, args in OLD_CALLS.items():
        found[name] = args.split()
    return {n: p for n, p in found.items() if not n.startswith("raw_ops.")}


def convert(lines, folder):
    """(new line, [(level, text), ...]) of each."""
    paths = [os.path.join(folder, name) for name in ("in.py", "out.py", "report.txt")]
    with open(paths[0], "w", encoding="utf8") as f:
        f.write("import tensorflow as tf\n" + "".join(line + "\n" for line in lines))
    flags = zip(("--infile", "--outfile", "--reportfile"), paths, strict=True)
    sys.argv = ["tf_upgrade_v2", *(word for pair in flags for word in pair)]
    with contextlib.redirect_stdout(io.StringIO()):
        tf_upgrade_v2_main.main()
    with open(paths[1], encoding="utf8") as f:
        out = f.read().split("\n")[1:-1]
    notes = collections.defaultdict(list)
    with open(paths[2], encoding="utf8") as f:
        log = f.read().split("Detailed log follows")[1].rsplit("-" * 80, 1)[0]
        parts = re.split(r"^(\d+):\d+: ([A-Z]+): ", log, flags=re.MULTILINE)[1:]
        for at, level, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            text = text.removesuffix("\n").replace("\n", "\\n")
            notes[int(at) - 2].append((level, text))
    if len(out) != len(lines):
        raise ValueError("lines were added")
    return [(line, notes[i]) for i, line in enumerate(out)]


def convert_all(lines, folder):
    results = []
    for i in range(0, len(lines), 60):
        some = lines[i : i + 60]
        try:
            results += convert(some, folder)
        except Exception:  # upstream's own failures at some calls
            for line in some:
                try:
                    results += convert([line], folder)
                except Exception:
                    results.append((None, []))  # the last argument may be to blame
                    if line.count(",") > 1:
                        shorter = line.rpartition(",")[0] + ")"
                        with contextlib.suppress(Exception):
                            results[-1:] = convert([shorter], folder)
    return results


def call_rules(found, by_position, by_keyword):
    """Rows "name first argument...": from argument `first` on ('-': never) keywords are
    written; "a>b" is renamed, "a>" removed, "a>>b" renamed without a word."""
    rows = []
    for name, params in found.items():
        if params is None or name not in by_keyword or by_keyword[name][0] is None:
            continue
        notes = {text for _, text in by_keyword[name][1] + by_position[name][1]}
        new = {}
        for text in notes:
            if m := re.match(
                r"Renamed keyword argument for \S+ from (\w+) to (\w+)", text
            ):
                new[m[1]] = m[2]
            if m := re.match(r"Removed argument (\w+) for function", text):
                new[m[1]] = ""
        silent = set()
        for key, i in re.findall(r"(\w+)=a(\d+)\b", by_keyword[name][0]):
            if key not in (params[int(i)], new.get(params[int(i)])):
                new[params[int(i)]] = key
                silent.add(params[int(i)])
        first = "-"
        out = by_position[name][0]
        if out and any(t.startswith("Added keywords") for t in notes):
            kept = [p for p in params if new.get(p) != ""]
            values = re.findall(r"(?:(\w+)=)?(?:[\w.]+\()?a(\d+)", out.split("(", 1)[1])
            keyed = [int(i) for key, i in values if key]
            first = str(min(keyed))
            # A removed one before it would have been kept in its place.
            while int(first) > 0 and params[int(first) - 1] not in kept:
                first = str(int(first) - 1)
        if new or first != "-":
            args = [
                p + (">>" if p in silent else ">") + new[p] if p in new else p
                for p in params
            ]
            rows.append(" ".join([name, first, *args]))
    return rows


def note_blocks(found, results, by_keyword):
    """[(head, [name, ...])]: notes of names, and of arguments that calls give."""
    blocks = collections.defaultdict(list)
    for name in found:
        for level, text in results[name][1]:
            if text.startswith(("Renamed '", "Using member")):
                continue
            general = text.replace(f"tf.{name}", "<function name>")
            blocks[f"{level} * {general}"].append(name)
        if name not in by_keyword:
            continue
        for level, text in by_keyword[name][1]:
            match = re.match(r"(\S+) called with (\w+) argument, requires", text)
            if match:
                general = text.replace(f"tf.{name}", "<function name>")
                blocks[f"{level} {match[2]} {general}"].append(name)
    return sorted(blocks.items())


def main():
    found = parameters()
    names = list(found)
    called = [n for n in names if found[n] is not None]
    with tempfile.TemporaryDirectory() as folder:
        plain = convert_all(["tf." + n for n in names], folder)
        results = dict(zip(names, plain, strict=True))
        calls = []
        for spell in ("a{}", "{}=a{}"):
            lines = []
            for n in called:
                args = [
                    spell.format(p, i) if "=" in spell else spell.format(i)
                    for i, p in enumerate(found[n])
                ]
                lines.append(f"tf.{n}({', '.join(args)})")
            calls.append(dict(zip(called, convert_all(lines, folder), strict=True)))
    new = {n: results[n][0].removeprefix("tf.") for n in names}
    golden = os.path.join(ROOT, "tests/golden/upgrade/names.txt")
    with open(golden, "w", encoding="utf8") as f:
        f.writelines(f"{n} {new[n]}\n" for n in sorted(new))
    with open(os.path.join(ROOT, "python/headrace/upgrade/rules.txt"), "w") as f:
        f.write(
            "# What tf_upgrade_v2 does, as far as the tables of names do not say it;\n"
            "# measured by tools/upgrade_rules.py. [names] old new; [calls] function,\n"
            "# first argument that gets a keyword, arguments (a>b renamed, a> removed);\n"
            "# [notes] LEVEL argument-or-* text, below it the names that it is of.\n"
        )
        f.write("[names]\n")
        for n in sorted(new):
            if our_names.derived(n) != new[n]:
                f.write(f"{n} {new[n]}\n")
        f.write("[calls]\n")
        f.writelines(row + "\n" for row in call_rules(found, *calls))
        f.write("[notes]\n")
        for head, of in note_blocks(found, results, calls[1]):
            f.write(f"{head}\n  {' '.join(of)}\n")
    print(json.dumps({"names": len(names), "calls": len(called)}))


if __name__ == "__main__":
    main()
