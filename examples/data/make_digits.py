"""Writes digits.bin from the copy of the data that scikit-learn carries.

Usage, in an environment that has scikit-learn: python make_digits.py
"""

import os

import numpy as np
from sklearn.datasets import load_digits


def main():
    digits = load_digits()
    rows = np.column_stack([digits.data, digits.target]).astype(np.uint8)
    assert rows.shape == (1797, 65) and rows[:, :64].max() == 16
    folder = os.path.dirname(os.path.abspath(__file__))
    rows.tofile(os.path.join(folder, "digits.bin"))


if __name__ == "__main__":
    main()
