"""Models for the server that TensorFlow writes: `models.py FOLDER`, run with
TensorFlow, made tests/golden/serving."""

import sys


def examples(tf, folder):
    """Signatures of tf.Examples with features x and k (10): to regress (x/2 + 2; in a
    matrix, x/2 + k; one too wide), to classify (both of classes and scores; scores
    alone), and one to predict."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        features = v1.io.parse_example(
            serialized,
            {
                "x": v1.io.FixedLenFeature([], tf.float32),
                "k": v1.io.FixedLenFeature([], tf.float32, default_value=10.0),
            },
        )
        a = v1.get_variable("a", initializer=0.5, use_resource=True)
        b = v1.get_variable("b", initializer=2.0, use_resource=True)
        y = tf.identity(a * features["x"] + b, name="y")
        matrix = tf.expand_dims(a * features["x"] + features["k"], 1)
        labels = tf.tile([["small", "large"]], [tf.size(serialized), 1])
        scores = tf.stack([y, features["k"]], 1)
        x = v1.placeholder(tf.float32, [None], name="x")

        def signature(inputs, outputs, method):
            info = v1.saved_model.utils.build_tensor_info
            return v1.saved_model.signature_def_utils.build_signature_def(
                {k: info(t) for k, t in inputs.items()},
                {k: info(t) for k, t in outputs.items()},
                "tensorflow/serving/" + method,
            )

        given = {"inputs": serialized}
        signatures = {
            "regress": signature(given, {"outputs": y}, "regress"),
            "regress_matrix": signature(given, {"outputs": matrix}, "regress"),
            "wide": signature(given, {"outputs": scores}, "regress"),
            "classify": signature(
                given, {"classes": labels, "scores": scores}, "classify"
            ),
            "scores": signature(given, {"scores": scores}, "classify"),
            "serving_default": signature({"x": x}, {"y": a * x + b}, "predict"),
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()


if __name__ == "__main__":
    import tensorflow

    examples(tensorflow, sys.argv[1] + "/examples")
