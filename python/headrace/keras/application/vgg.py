"""VGG: Simonyan and Zisserman (2014), https://arxiv.org/abs/1409.1556."""

from headrace.keras.application.model import architecture

_BLOCKS = (64, 128, 256, 512, 512)


def _vgg(name, sizes):
    file = f"{name}_weights_tf_dim_ordering_tf_kernels{{top}}.h5"

    def body(net, wanted):
        for i, (filters, count) in enumerate(zip(_BLOCKS, sizes), 1):
            for j in range(1, count + 1):
                net.conv(
                    *(filters, 3),
                    activation="relu",
                    padding="same",
                    name=f"block{i}_conv{j}",
                )
            net.max(2, strides=2, name=f"block{i}_pool")
        if not wanted.include_top:
            return wanted.pooled(net)
        net.flatten(name="flatten")
        net.dense(4096, activation="relu", name="fc1")
        net.dense(4096, activation="relu", name="fc2")
        return wanted.classify(net)

    body.__name__ = name.upper()
    return architecture(224, name=name, file=file)(body)


VGG16 = _vgg("vgg16", (2, 2, 3, 3, 3))
VGG19 = _vgg("vgg19", (2, 2, 4, 4, 4))
