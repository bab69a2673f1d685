"""Build the graph that graycert ships, `wordnet_nouns`, from Debian's package `wordnet-base`.

    python scripts/build_wordnet_graph.py            # write src/graycert/data/embedded/
    python scripts/build_wordnet_graph.py --check    # exit status 1 if the shipped files differ

A node is a noun synset of WordNet 3.0 from one of seven lexicographer files, an edge is any pointer between
two such synsets (direction dropped), the largest connected component is kept, the label is the lexicographer
file, and the features say which frequent words occur in the definition. Nodes have the names that NLTK uses:
first lemma, "n", sense number, e.g. `happiness.n.02`. File formats: wndb(5WN) and lexnames(5WN),
https://wordnet.princeton.edu/documentation/wndb5wn.
"""

import argparse
import io
import re
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

LEXICOGRAPHER_FILES = {
    8: "body",
    11: "event",
    12: "feeling",
    13: "food",
    25: "shape",
    27: "substance",
    28: "time",
}
VOCABULARY_SIZE = 500
MIN_WORD_LENGTH = 3
# Words without meaning of their own; every one of them would otherwise enter the vocabulary.
STOP_WORDS = frozenset(
    [
        "and",
        "any",
        "are",
        "for",
        "from",
        "has",
        "have",
        "her",
        "his",
        "into",
        "its",
        "one",
        "other",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "they",
        "this",
        "those",
        "through",
        "very",
        "was",
        "were",
        "when",
        "where",
        "which",
        "who",
        "whose",
        "with",
        "you",
        "your",
    ]
)
EMBEDDED = Path(__file__).parents[1] / "src" / "graycert" / "data" / "embedded"
GRAPH_FILE = "wordnet_nouns.npz"
LICENSE_FILE = "WORDNET-LICENSE.txt"
LICENSE_PREFACE = (
    "The graph wordnet_nouns.npz in this folder is derived from WordNet 3.0: noun synsets of seven\n"
    "lexicographer files, the pointers between them, and the frequent words of their definitions (see\n"
    "scripts/build_wordnet_graph.py). WordNet's licence, which applies to it, follows.\n\n"
)


@dataclass(frozen=True, kw_only=True)
class Synset:
    """One line of data.noun."""

    offset: int
    lexicographer_file: int
    first_lemma: str
    noun_pointers: tuple[int, ...]
    definition: str


def parse_synset(line: str) -> Synset:
    """Read one line: offset, lex_filenum, ss_type, w_cnt, words, p_cnt, pointers, '|', gloss."""
    body, gloss = line.rstrip().split(" | ", 1)
    fields = body.split(" ")
    num_words = int(fields[3], 16)
    start = 4 + 2 * num_words
    num_pointers = int(fields[start])
    pointers = [fields[start + 1 + 4 * i : start + 5 + 4 * i] for i in range(num_pointers)]
    return Synset(
        offset=int(fields[0]),
        lexicographer_file=int(fields[1]),
        first_lemma=fields[4].lower(),
        noun_pointers=tuple(int(offset) for _, offset, part, _ in pointers if part == "n"),
        definition=gloss.split('"', 1)[0],  # what follows the first quotation mark are example sentences
    )


def read_synsets(data_noun: Path) -> list[Synset]:
    """Return the synsets of the kept lexicographer files in the order of the file."""
    with data_noun.open(encoding="ascii") as lines:
        synsets = [parse_synset(line) for line in lines if not line.startswith("  ")]
    return [synset for synset in synsets if synset.lexicographer_file in LEXICOGRAPHER_FILES]


def read_sense_numbers(index_noun: Path) -> dict[tuple[str, int], int]:
    """Return {(lemma, offset): sense number}; index.noun lists the senses of a lemma in their order."""
    senses = {}
    with index_noun.open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("  "):
                continue
            fields = line.split()
            for sense, offset in enumerate(fields[-int(fields[2]) :], start=1):
                senses[fields[0], int(offset)] = sense
    return senses


def read_license(data_noun: Path) -> str:
    """Return WordNet's licence, which the file has in its first lines, each after its line number."""
    with data_noun.open(encoding="ascii") as lines:
        header = [line for line in lines if line.startswith("  ")]
    return LICENSE_PREFACE + "\n".join(re.sub(r"^ +\d+ ?", "", line).rstrip() for line in header) + "\n"


def largest_component(synsets: list[Synset]) -> tuple[list[Synset], sp.csr_array]:
    """Return the synsets of the largest connected component and their symmetric adjacency."""
    position = {synset.offset: i for i, synset in enumerate(synsets)}
    edges = {
        (position[synset.offset], position[other])
        for synset in synsets
        for other in synset.noun_pointers
        if other in position and other != synset.offset
    }
    pairs = np.array(sorted(edges | {(w, v) for v, w in edges}), dtype=np.int64)
    shape = (len(synsets), len(synsets))
    adjacency = sp.csr_array((np.ones(len(pairs), dtype=np.uint8), (pairs[:, 0], pairs[:, 1])), shape=shape)
    _, component = connected_components(adjacency, directed=False)
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    return [synsets[i] for i in kept], sp.csr_array(adjacency[kept][:, kept])


def definition_words(synset: Synset) -> set[str]:
    """Return the distinct lower-case words of the definition."""
    return {word for word in re.findall("[a-z]+", synset.definition.lower()) if len(word) >= MIN_WORD_LENGTH}


def word_features(synsets: list[Synset], *, vocabulary_size: int) -> tuple[sp.csr_array, list[str]]:
    """Return a 0/1 matrix (num_nodes, vocabulary_size) and its words: the most frequent, in a-z order."""
    words_of = [definition_words(synset) - STOP_WORDS for synset in synsets]
    frequency = Counter(word for words in words_of for word in sorted(words))
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
    vocabulary = sorted(ranked[:vocabulary_size])
    column = {word: i for i, word in enumerate(vocabulary)}
    entries = np.array([(row, column[word]) for row, words in enumerate(words_of) for word in words if word in column])
    ones = np.ones(len(entries), dtype=np.uint8)
    features = sp.csr_array((ones, (entries[:, 0], entries[:, 1])), shape=(len(synsets), len(vocabulary)))
    features.sort_indices()
    return features, vocabulary


def build_graph(wordnet: Path, *, vocabulary_size: int = VOCABULARY_SIZE) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of the graph file, with the keys that `torch_geometric.io.read_npz` reads."""
    synsets, adjacency = largest_component(read_synsets(wordnet / "data.noun"))
    senses = read_sense_numbers(wordnet / "index.noun")
    features, vocabulary = word_features(synsets, vocabulary_size=vocabulary_size)
    # The largest component has no synset of "feeling", so six of the seven files are classes.
    files = sorted({synset.lexicographer_file for synset in synsets})
    names = [f"{s.first_lemma}.n.{senses[s.first_lemma, s.offset]:02d}" for s in synsets]
    if len(set(names)) != len(names):
        raise SystemExit("the node names are not unique")
    arrays: dict[str, NDArray[np.generic]] = {}
    for prefix, matrix in (("adj", adjacency), ("attr", features)):
        arrays[f"{prefix}_data"] = matrix.data.astype(np.uint8)
        arrays[f"{prefix}_indices"] = matrix.indices.astype(np.int16)
        arrays[f"{prefix}_indptr"] = matrix.indptr.astype(np.int32)
        arrays[f"{prefix}_shape"] = np.array(matrix.shape, dtype=np.int64)
    arrays["labels"] = np.array([files.index(s.lexicographer_file) for s in synsets], dtype=np.int8)
    arrays["node_names"] = np.array(names)
    arrays["class_names"] = np.array([LEXICOGRAPHER_FILES[number] for number in files])
    arrays["attr_names"] = np.array(vocabulary)
    return arrays


def npz_bytes(arrays: dict[str, NDArray[np.generic]]) -> bytes:
    """Return a compressed .npz with fixed time stamps, so that the same arrays give the same bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            members.writestr(member, content.getvalue(), compresslevel=9)
    return archive.getvalue()


def differences(embedded: Path, arrays: dict[str, NDArray[np.generic]], license_text: str) -> list[str]:
    """Say how the shipped files differ; arrays are compared, as zlib versions compress differently."""
    found = []
    if not (embedded / LICENSE_FILE).is_file() or (embedded / LICENSE_FILE).read_text("utf-8") != license_text:
        found.append(f"{LICENSE_FILE} is missing or differs")
    if not (embedded / GRAPH_FILE).is_file():
        return [*found, f"{GRAPH_FILE} is missing"]
    with np.load(embedded / GRAPH_FILE, allow_pickle=False) as shipped:
        if sorted(shipped.files) != sorted(arrays):
            return [*found, f"{GRAPH_FILE} has the keys {sorted(shipped.files)}"]
        for name, array in arrays.items():
            if shipped[name].dtype != array.dtype or not np.array_equal(shipped[name], array):
                found.append(f"{GRAPH_FILE}: the array {name} differs")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder with data.noun")
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="folder for the graph and the licence")
    parser.add_argument("--check", action="store_true", help="write nothing, compare with the files in --out")
    arguments = parser.parse_args()
    if not (arguments.wordnet / "data.noun").is_file():
        print(f"{arguments.wordnet / 'data.noun'} is missing: apt-get install wordnet-base", file=sys.stderr)
        return 2
    arrays = build_graph(arguments.wordnet)
    license_text = read_license(arguments.wordnet / "data.noun")
    if arguments.check:
        found = differences(arguments.out, arrays, license_text)
        print("\n".join(found) or "The shipped graph is what this script builds.")
        return 1 if found else 0
    content = npz_bytes(arrays)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / GRAPH_FILE).write_bytes(content)
    (arguments.out / LICENSE_FILE).write_text(license_text, encoding="utf-8")
    num_nodes, num_features = arrays["attr_shape"]
    num_edges = arrays["adj_data"].size // 2
    print(f"{num_nodes:,} nodes, {num_edges:,} edges, {num_features:,} features, {len(content) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
