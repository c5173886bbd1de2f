"""Writes tests/golden/keras/applications.json with a Python that has TensorFlow 2.21 and
tf_keras: TF_USE_LEGACY_KERAS=1 python application_cases.py [NAME ...].

Of each network of tf.keras.applications [parameters, layers, digest of the layers'
names, output shape], and of some what they make of an image with weights of a seeded
generator.
"""

import hashlib
import json
import os
import sys

import numpy as np

GOLDEN = os.path.join(
    os.path.dirname(__file__), "../../../tests/golden/keras/applications.json"
)
# Arguments beside weights and classes, where the shares are not just 0 and 1.
OUTPUTS = {
    "MobileNet": {"input_shape": (64, 64, 3), "alpha": 0.25},
    "MobileNetV2": {"input_shape": (64, 64, 3), "alpha": 0.35},
    "MobileNetV3Small": {"input_shape": (64, 64, 3)},
    "EfficientNetB0": {"input_shape": (64, 64, 3)},
    "EfficientNetV2B0": {"input_shape": (64, 64, 3)},
    "RegNetX002": {"input_shape": (64, 64, 3)},
    "RegNetY002": {"input_shape": (64, 64, 3)},
    "InceptionV3": {"input_shape": (75, 75, 3)},
    "Xception": {"input_shape": (71, 71, 3)},
}


def facts(model):
    names = "\n".join(layer.name for layer in model.layers)
    digest = hashlib.sha256(names.encode()).hexdigest()[:16]
    return [model.count_params(), len(model.layers), digest, list(model.output_shape)]


def output(tf, name):
    """What the network of that name gives for an image, ten shares."""
    model = getattr(tf.keras.applications, name)(
        weights=None, classes=10, **OUTPUTS[name]
    )
    random, values = np.random.RandomState(0), []
    for weight in model.weights:
        shape = weight.shape.as_list()
        value = random.standard_normal(shape).astype("float32")
        if "variance" in weight.name or "gamma" in weight.name:
            value = 1.0 + 0.2 * np.abs(value)
        elif len(shape) > 1:
            value = value * (2.0 / np.prod(shape[:-1])) ** 0.5
        else:
            value = 0.1 * value
        values.append(value)
    model.set_weights(values)
    image = random.uniform(0, 255, (1, *model.input_shape[1:])).astype("float32")
    return model(image).numpy()[0].tolist()


def main(names):
    import tensorflow as tf

    found = {"networks": {}, "outputs": {}}
    if os.path.exists(GOLDEN):
        with open(GOLDEN) as file:
            found = json.load(file)
    networks = tf.keras.applications
    for name in names or [n for n in dir(networks) if n[0].isupper()]:
        tf.keras.backend.clear_session()
        model = getattr(networks, name)(weights=None)
        found["networks"][name] = facts(model)
        if name in OUTPUTS:
            found["outputs"][name] = output(tf, name)
        with open(GOLDEN, "w") as file:
            json.dump(found, file, sort_keys=True, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
