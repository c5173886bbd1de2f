"""Weights in HDF5 files: those that tf_keras and Keras 3 wrote, and our own."""

import os
import pathlib
import sys

import headrace as tf
import numpy as np
import pytest
import weights_cases

FOLDER = pathlib.Path(__file__).parents[3] / "tests" / "golden" / "keras" / "weights"
FILES = sorted(p.name for p in FOLDER.glob("*.h5"))
L = tf.keras.layers


def test_says_so_without_h5py(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    model = tf.keras.Sequential([L.Input((2,)), L.Dense(1)])
    for call in (model.save_weights, model.load_weights):
        with pytest.raises(ImportError, match="need the package h5py"):
            call(tmp_path / "x.weights.h5")
    with pytest.raises(NotImplementedError, match="whole models"):
        model.save_weights(tmp_path / "x.keras")


class TestFiles:
    @pytest.fixture(autouse=True)
    def h5py(self):
        self.h5py = pytest.importorskip("h5py")

    @pytest.mark.parametrize("name", FILES)
    def test_reads_what_keras_wrote(self, name):
        case, kind = name.split(".")[0].split("_")
        model, x = weights_cases.CASES[case](tf)
        model(x)
        model.load_weights(FOLDER / name)
        expected = np.load(FOLDER / f"{case}_{kind}.npz")["arr_0"]
        found = model.predict(x, verbose=0)
        if case == "blocks" and name.endswith("keras2.weights.h5"):
            return  # lists in lists: tf_keras leaves them out
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("case", weights_cases.CASES)
    @pytest.mark.parametrize("ending", [".h5", ".weights.h5"])
    def test_reads_its_own(self, case, ending, tmp_path):
        model, x = weights_cases.make(tf, case)
        model.save_weights(tmp_path / f"w{ending}")
        other, _ = weights_cases.CASES[case](tf)
        other(x)
        other.load_weights(tmp_path / f"w{ending}")
        for a, b in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("case", weights_cases.CASES)
    def test_paths_are_those_of_keras(self, case, tmp_path):
        model, _ = weights_cases.make(tf, case)
        model.save_weights(tmp_path / "w.weights.h5")

        def datasets(path):
            found = {}

            def note(name, x):
                if hasattr(x, "shape"):
                    found[name] = x.shape

            with self.h5py.File(path) as file:
                file.visititems(note)
            return found

        with self.h5py.File(tmp_path / "w.weights.h5") as ours:
            for kind in ("keras2", "keras3"):
                golden = FOLDER / f"{case}_{kind}.weights.h5"
                for name, shape in datasets(golden).items():
                    assert ours[name].shape == shape, (kind, name)

    def test_by_name_and_mismatches(self, tmp_path):
        def model(width, last):
            layers = [L.Input((2,)), L.Dense(width, name="a"), L.Dense(1, name=last)]
            return tf.keras.Sequential(layers)

        first, path = model(3, "b"), str(tmp_path / "w.h5")
        first.save_weights(path)
        same, wide = model(3, "c"), model(4, "b")
        before = same.get_weights()
        same.load_weights(path, by_name=True)
        np.testing.assert_array_equal(same.get_weights()[0], first.get_weights()[0])
        np.testing.assert_array_equal(same.get_weights()[2], before[2])
        before = wide.get_weights()
        for by_name in (False, True):
            with pytest.raises(ValueError, match="Shape mismatch in layer 'a'"):
                wide.load_weights(path, by_name=by_name)
        wide.load_weights(path, by_name=True, skip_mismatch=True)
        for a, b in zip(wide.get_weights(), before):
            np.testing.assert_array_equal(a, b)
        with pytest.raises(ValueError, match="Layer count mismatch"):
            tf.keras.Sequential([L.Input((2,)), L.Dense(3)]).load_weights(path)
        with pytest.raises(ValueError, match="has not created its variables yet"):
            tf.keras.Sequential([L.Dense(3)]).load_weights(path)

    def test_callback(self, tmp_path):
        model = tf.keras.Sequential([L.Input((2,)), L.Dense(1)])
        model.compile("sgd", "mse")
        path = str(tmp_path / "{epoch}.weights.h5")
        saving = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        x = np.ones((4, 2), "f")
        model.fit(x, x[:, :1], epochs=2, callbacks=[saving], verbose=0)
        assert sorted(os.listdir(tmp_path)) == ["1.weights.h5", "2.weights.h5"]
        expected = model.get_weights()
        model.load_weights(tmp_path / "1.weights.h5")
        assert not np.array_equal(model.get_weights()[0], expected[0])
        model.load_weights(tmp_path / "2.weights.h5")
        np.testing.assert_array_equal(model.get_weights()[0], expected[0])


class TestOptimizers:
    @pytest.fixture(autouse=True)
    def h5py(self):
        self.h5py = pytest.importorskip("h5py")

    def _model(self, optimizer="adam", steps=0):
        tf.keras.utils.set_random_seed(3)
        model = tf.keras.Sequential([L.Input((3,)), L.Dense(2), L.Dense(1)])
        model.compile(optimizer, "mse")
        if steps:
            model.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=steps, verbose=0)
        return model

    def _state(self, model):
        return [np.asarray(v) for v in model.optimizer.variables]

    @pytest.mark.parametrize(
        "optimizer, count",
        [
            (lambda: "adam", 9),
            (lambda: tf.keras.optimizers.Adam(amsgrad=True), 13),
            (lambda: tf.keras.optimizers.SGD(momentum=0.9), 5),
            (lambda: tf.keras.optimizers.SGD(), 1),
            (lambda: "ftrl", 9),
        ],
    )
    def test_state_comes_back(self, optimizer, count, tmp_path):
        path = tmp_path / "w.weights.h5"
        model = self._model(optimizer(), steps=3)
        model.save_weights(path)
        with self.h5py.File(path) as file:
            group = file["optimizer/vars"]
            assert sorted(group, key=int) == [str(i) for i in range(count)]
            assert group["0"][()] == 3 and group["0"].dtype == np.int64
        other = self._model(optimizer(), steps=1)
        other.load_weights(path)
        for a, b in zip(self._state(model), self._state(other), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_keras_3_lists_the_learning_rate_too(self, tmp_path):
        path = tmp_path / "w.weights.h5"
        model = self._model(steps=2)
        model.save_weights(path)
        with self.h5py.File(path, "a") as file:
            group = file["optimizer/vars"]
            for i in range(8, 0, -1):
                group.move(str(i), str(i + 1))
            group["1"] = np.float32(0.25)
        other = self._model(steps=1)
        other.load_weights(path)
        assert float(other.optimizer.learning_rate) == 0.25
        for a, b in zip(self._state(model), self._state(other), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_state_of_another_optimizer_is_left(self, tmp_path, caplog):
        path = tmp_path / "w.weights.h5"
        model = self._model(steps=2)
        model.save_weights(path)
        other = self._model("ftrl", steps=1)
        before = self._state(other)
        with self.h5py.File(path, "a") as file:
            del file["optimizer/vars/8"]
        with caplog.at_level("WARNING"):
            other.load_weights(path)
        assert "Skipping variable loading for optimizer 'Ftrl'" in caplog.text
        for a, b in zip(before, self._state(other), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])

    def test_untrained_and_uncompiled_models(self, tmp_path):
        path = tmp_path / "w.weights.h5"
        self._model().save_weights(path)
        with self.h5py.File(path) as file:
            assert list(file["optimizer/vars"]) == ["0"]
        plain = tf.keras.Sequential([L.Input((3,)), L.Dense(2), L.Dense(1)])
        plain.load_weights(path)
        plain.save_weights(path)
        with self.h5py.File(path) as file:
            assert "optimizer" not in file
        trained = self._model(steps=1)
        trained.load_weights(path)
        assert int(trained.optimizer.iterations) == 1
