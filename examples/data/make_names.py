"""Writes surnames.txt from the lists of surnames that Faker carries.

Usage, in an environment that has Faker (40.54.0 wrote the file): python make_names.py
"""

import collections
import importlib
import os
import unicodedata

LANGUAGES = {
    "Croatian": ["hr_HR"],
    "Dutch": ["nl_NL"],
    "Finnish": ["fi_FI"],
    "French": ["fr_FR", "fr_QC"],
    "German": ["de_DE", "de_AT"],
    "Irish": ["ga_IE"],
    "Italian": ["it_IT"],
    "Polish": ["pl_PL"],
    "Slovak": ["sk_SK"],
    "Spanish": ["es_ES"],
}
MOST = 1200  # names of one language
LONGEST = 20  # characters


def is_name(text):
    """Whether it is a plain surname: the lists hold a few whole persons too."""
    letters = text.replace(" ", "").replace("-", "").replace("'", "")
    return letters.isalpha() and len(text) <= LONGEST and text.count(" ") <= 2


def surnames(locale):
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    lists = [a for a in vars(provider) if "last_names" in a]
    names = {str(name).strip() for a in lists for name in getattr(provider, a)}
    return {unicodedata.normalize("NFC", name) for name in names if is_name(name)}


def thinned(names):
    """At most MOST of them, evenly from the whole alphabet."""
    names = sorted(names)
    count = min(MOST, len(names))
    return [names[i * len(names) // count] for i in range(count)]


def main():
    names = {k: set().union(*map(surnames, v)) for k, v in LANGUAGES.items()}
    owners = collections.Counter(n for own in names.values() for n in own)
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "surnames.txt"), "w", encoding="utf-8") as out:
        for language, own in names.items():
            kept = thinned(n for n in own if owners[n] == 1)
            print(f"{language}: {len(kept)}")
            out.writelines(f"{language}\t{name}\n" for name in kept)


if __name__ == "__main__":
    main()
